"""The multi-layer perceptrons of paper 1, trained as one ensemble.

One *run* of the paper is 30 networks that differ in their regularisation only: they share the seed, and so the
initial weights, the split and (here) the batches and the dropout draws. They can therefore be trained together:
layer l of M networks is one tensor (M, in, out) and a step is three batched matrix products, with no loop
over networks. Each network ends with the weights that it would have if it were trained alone.

Network: Linear(784, 64) - ReLU - dropout(p) - Linear(64, 64) - ReLU - dropout(p) - Linear(64, 10).
Loss: mean cross-entropy + l1 Σ|W| + l2 ΣW² over the three weight matrices (no ½, biases free); the penalty passes
through Adam like the rest of the gradient. [paper 1, section 3]
"""

import contextlib
import itertools
import time
from pathlib import Path

import numba
import numpy as np
import torch

from neuronkit import InputError

HIDDEN = (64, 64)
SEED = 286436723  # of the paper's run 0; run r has SEED + r, the untrained network u SEED + 1000 + u
ACCURATE = 0.8  # test accuracy below which a network is discarded
CHECKPOINT_SECONDS = 20.0


def table1() -> list[dict]:
    """The 30 regularisation settings of the paper's Table 1, in its order: l2 (9), l1 (7), dropout (14).

    Each is {"varied": "l2" | "l1" | "dropout", "l2": float, "l1": float, "dropout": float}; what is varied beside
    l2 has l2 = 1e-5.
    """
    l2 = [{"varied": "l2", "l2": float(s), "l1": 0.0, "dropout": 0.0} for s in np.logspace(-5, -1, 9)]
    l1 = [{"varied": "l1", "l2": 1e-5, "l1": float(s), "dropout": 0.0} for s in np.logspace(-5, -2, 7)]
    dropout = [{"varied": "dropout", "l2": 1e-5, "l1": 0.0, "dropout": k / 20} for k in range(1, 15)]
    return l2 + l1 + dropout


def jobs(images, labels, *, runs: int, seed: int, epochs: int, early_stopping: bool = False) -> list[dict]:
    """The arguments of `train_ensemble` for `runs` runs of Table 1, in two parts each so that two cores share a run.

    The same arguments find the same networks in the store, whichever notebook asks for them.
    """
    settings = table1()
    parts = [[s for s in settings if s["varied"] != "dropout"], [s for s in settings if s["varied"] == "dropout"]]
    how = {"epochs": epochs, "early_stopping": early_stopping}
    return [
        {"images": images, "labels": labels, "settings": part, "seed": seed + run, **how}
        for run in range(runs)
        for part in parts
    ]


def at_strengths(strengths: dict) -> list[int]:
    """Indices into `table1` of the settings whose varied regulariser has one of the strengths, {varied: [float, …]}."""
    return [
        i
        for i, setting in enumerate(table1())
        if np.isclose(setting[setting["varied"]], strengths[setting["varied"]], rtol=1e-3, atol=0).any()
    ]


def retrained(job: dict, at: list[int], *, epochs: int) -> list[dict]:
    """The arguments that train the settings `at` (indices into `table1`) of a job's run for another number of epochs.

    In two parts, which two cores share; their networks follow the order of `at`.
    """
    half = (len(at) + 1) // 2
    parts = [[table1()[i] for i in part] for part in (at[:half], at[half:])]
    return [{**job, "settings": part, "epochs": epochs} for part in parts if part]


def initial_weights(seed: int, sizes=(784, *HIDDEN, 10)) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """PyTorch's default initialisation: [(W (out, in), b (out,)), …], the same as seeding nn.Linear in a row."""
    generator = torch.Generator().manual_seed(seed)
    layers = []
    for fan_in, fan_out in itertools.pairwise(sizes):
        weight = torch.empty(fan_out, fan_in)
        torch.nn.init.kaiming_uniform_(weight, a=5**0.5, generator=generator)
        bias = torch.empty(fan_out).uniform_(-(fan_in**-0.5), fan_in**-0.5, generator=generator)
        layers.append((weight, bias))
    return layers


def split(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the train and validation parts, 9 : 1, as torch.utils.data.random_split draws them with `seed`."""
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed)).numpy()
    return order[: n - n // 10], order[n - n // 10 :]


def train_ensemble(
    images,
    labels,
    *,
    settings: list[dict],
    seed: int,
    epochs: int,
    early_stopping: bool = False,
    batch: int = 200,
    lr: float = 1e-3,
    progress=lambda steps, what: steps,
    checkpoint: Path | None = None,
) -> dict:
    """Train one network per setting on the train part of the images, all at once. [paper 1, section 3]

    images: (N, D) or (N, side, side), uint8 (divided by 255) or float; labels (N,) int.
    settings: dicts with l1, l2 ≥ 0 and 0 ≤ dropout < 1, as in `table1`.
    seed: of initial weights, split, batches and dropout.
    early_stopping: each network keeps its best weights and stops when its validation loss stalls, see `Stopping`;
    `epochs` is then the most that any is trained.
    progress: wraps the range of epochs. checkpoint: a folder; what is there is resumed, and the state is saved
    there between epochs, so that a killed training loses at most `CHECKPOINT_SECONDS` and one epoch.

    Returns {"weights": [{"W": (M, out, in), "b": (M, out)}, …], "loss": (epochs, M), "epochs": (M,)}: the loss is the
    mean cross-entropy of the training batches without the penalty, epochs those that made the weights.
    Raises InputError for settings out of range, epochs < 1, fewer images than a batch, or a loss that is not
    finite (with the epoch).
    """
    _check(settings, epochs, batch, len(images))
    images, labels = np.asarray(images), np.asarray(labels)
    (x, y), held_out = (
        (pixels(images[i]), torch.tensor(labels[i], dtype=torch.int64)) for i in split(len(images), seed)
    )
    layers = initial_weights(seed, (x.shape[1], *HIDDEN, int(np.max(labels)) + 1))
    ensemble = Ensemble(layers, settings, batch=batch, lr=lr)
    stopping = Stopping(ensemble) if early_stopping else None
    losses, saved = _resume(ensemble, stopping, checkpoint), time.monotonic()
    with _without_denormals():
        for epoch in progress(range(len(losses), epochs), f"training {len(settings)} networks"):
            if stopping and stopping.done():
                break
            losses.append(_epoch(ensemble, x, y, batch, seed, epoch))
            if stopping:
                stopping.update(ensemble, cross_entropy(ensemble.weights(), *held_out), epoch)
            if checkpoint is not None and time.monotonic() - saved > CHECKPOINT_SECONDS and epoch + 1 < epochs:
                _save(ensemble, stopping, losses, checkpoint)
                saved = time.monotonic()
    if stopping:
        ensemble.take(stopping.best)
    ended = stopping.epochs.numpy() if stopping else np.full(len(settings), epochs)
    return {"weights": ensemble.weights(), "loss": np.stack(losses), "epochs": ended}


def _epoch(ensemble, x, y, batch: int, seed: int, epoch: int) -> np.ndarray:
    """One pass over x, y; the mean loss of each network (M,)."""
    # One stream per epoch, so that a resumed training draws what an uninterrupted one would.
    random = np.random.default_rng([seed, epoch])
    batches = torch.from_numpy(random.permutation(len(x))[: len(x) // batch * batch].reshape(-1, batch))
    loss = torch.stack([ensemble.step(x[b], y[b], random) for b in batches]).mean(0)
    if not torch.isfinite(loss).all():
        network = int((~torch.isfinite(loss)).nonzero()[0])
        raise InputError(f"the loss of network {network} is not finite in epoch {epoch}: use a smaller learning rate.")
    return loss.numpy()


@contextlib.contextmanager
def _without_denormals():
    """Strong penalties drive weights and moments below the smallest normal float, where arithmetic is slow."""
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


class Ensemble:
    """M networks of one shape, the state of their training and one `step` of Adam for all of them."""

    STATE = ("parameters", "mean", "square", "steps")

    def __init__(self, layers, settings, *, batch: int, lr: float):
        def column(name):
            return torch.tensor([float(s[name]) for s in settings])[:, None, None]  # (M, 1, 1)

        m = len(settings)
        self.l1, self.l2, self.dropout = column("l1"), column("l2"), column("dropout")
        self.scale = 1 / (1 - self.dropout)
        self.rate = torch.ones(m, 1, 1)  # of the learning rate, per network; 0 where training has stopped
        self.W = [w.T.repeat(m, 1, 1) for w, _ in layers]  # (M, in, out)
        self.b = [b.repeat(m, 1, 1) for _, b in layers]  # (M, 1, out)
        self.parameters = self.W + self.b
        # Reused in every step: fresh tensors of this size cost more in page faults than the arithmetic on them.
        self.gW, self.gb = ([torch.zeros_like(p) for p in group] for group in (self.W, self.b))
        self.room = [torch.zeros_like(self.W[0]) for _ in range(2)]  # for rows of W[0], and of its gradient
        self.mean = [torch.zeros_like(p) for p in self.parameters]  # Adam's running averages
        self.square = [torch.zeros_like(p) for p in self.parameters]
        self.steps = [torch.zeros(())]
        self.lr = lr
        self.h = [torch.empty(m, batch, w.shape[2]) for w in self.W]  # hidden, hidden, logits
        self.one_hot = torch.eye(self.W[-1].shape[2])

    def step(self, x: torch.Tensor, y: torch.Tensor, random: np.random.Generator) -> torch.Tensor:
        """One step of Adam on the batch x (B, D), y (B,); returns the mean cross-entropy of each network (M,)."""
        loss = self.gradients(x, y, random)
        self.steps[0] += 1
        rate = (self.lr * self.rate).flatten().numpy()
        for i, tensors in enumerate(zip(self.parameters, self.gW + self.gb, self.mean, self.square, strict=True)):
            penalties = [(t if i < len(self.W) else torch.zeros_like(t)).flatten().numpy() for t in (self.l1, self.l2)]
            arrays = (t.numpy() for t in tensors)
            at = self.at if i == 0 else np.arange(tensors[0].shape[1])
            _adam(*arrays, at, *penalties, rate, int(self.steps[0]))
        return loss

    def gradients(self, x, y, random) -> torch.Tensor:
        """Fill the gradients of the mean cross-entropy, written out by hand; returns the loss (M,).

        That of W[0] has the rows of the pixels that are not 0 in the whole batch, three in four of MNIST: row r of the
        matrix is row at[r] of it, and where at[r] is -1 the gradient is 0.
        """
        m, batch = len(self.l1), len(x)
        lit = x.abs().amax(0).nonzero().flatten()
        self.at = np.full(x.shape[1], -1)
        self.at[lit.numpy()] = np.arange(len(lit))
        near, self.gW[0] = (t.flatten()[: m * len(lit) * t.shape[2]].view(m, len(lit), -1) for t in self.room)
        torch.index_select(self.W[0], 1, lit, out=near)
        x = x.index_select(1, lit).expand(m, batch, len(lit))  # (M, B, D), without a copy for each network
        drops = bool(self.dropout.any())
        # Dropout's scale belongs to the activations, but the matrices that they meet are smaller.
        W = [near, *(w * self.scale if drops else w for w in self.W[1:])]
        a = x
        for layer, h in enumerate(self.h):
            torch.baddbmm(self.b[layer], a, W[layer], out=h)
            if layer < 2:
                h.relu_()
                if drops:
                    draw = random.random((batch, h.shape[2]), dtype=np.float32)
                    _drop(h.numpy(), draw, self.dropout.flatten().numpy())
            a = h
        log_p = torch.log_softmax(a, -1)  # (M, B, classes)
        loss = -log_p[:, torch.arange(batch), y].mean(1)
        delta = log_p.exp_().sub_(self.one_hot[y]).div_(batch)
        for layer in (2, 1, 0):
            below = self.h[layer - 1] if layer else x
            torch.bmm(below.transpose(1, 2), delta, out=self.gW[layer])
            torch.sum(delta, 1, keepdim=True, out=self.gb[layer])
            if layer:
                if drops:
                    self.gW[layer].mul_(self.scale)
                # A unit that ReLU or dropout silenced is 0 here.
                delta = torch.bmm(delta, W[layer].transpose(1, 2))
                delta = torch.ops.aten.threshold_backward(delta, below, 0)
        return loss

    def weights(self) -> list[dict]:
        """[{"W": (M, out, in), "b": (M, out)}, …] as NumPy arrays in PyTorch's orientation."""
        return [
            {"W": w.transpose(1, 2).contiguous().numpy(), "b": b.squeeze(1).numpy().copy()}
            for w, b in zip(self.W, self.b, strict=True)
        ]

    def take(self, parameters: list[torch.Tensor]) -> None:
        """Take over the values of these parameters."""
        for p, value in zip(self.parameters, parameters, strict=True):
            p.copy_(value)

    def state(self) -> dict:
        """Everything that the next step depends on, as a flat dict of tensors."""
        return {f"{kind}{i}": t for kind in self.STATE for i, t in enumerate(getattr(self, kind))} | {"rate": self.rate}

    def load_state(self, state: dict) -> None:
        """Take over a `state`."""
        for kind in self.STATE:
            for i, t in enumerate(getattr(self, kind)):
                t.copy_(state[f"{kind}{i}"])
        self.rate = state["rate"]


@numba.njit(cache=True)
def _drop(h, draw, dropout):
    """Dropout of h (M, B, units) in place: one draw (B, units) for all networks, each drops what is below its rate."""
    for m in range(len(h)):
        for b in range(h.shape[1]):
            for u in range(h.shape[2]):
                h[m, b, u] = h[m, b, u] if draw[b, u] >= dropout[m] else np.float32(0)


@numba.njit(cache=True, error_model="numpy")  # a check of each divisor would keep the loop from being vectorised
def _adam(weights, gradient, mean, square, at, l1, l2, rate, step):
    """One step of Adam (betas .9 and .999, epsilon 1e-8) on weights (M, R, C) in place, the penalties' gradient added.

    In one pass: the arithmetic is little, and each pass over the arrays of an ensemble costs a trip to memory.
    gradient: (M, R', C), that of row r is row at[r], or 0 where at[r] is -1. l1, l2, rate: of each network, (M,).
    """
    b1, b2, epsilon = np.float32(0.9), np.float32(0.999), np.float32(1e-8)
    new1, new2 = np.float32(1 - 0.9), np.float32(1 - 0.999)  # taken in double: 1 - b2 in single is off by 1e-5
    up_to_now1, up_to_now2 = np.float32(1 - 0.9**step), np.float32(np.sqrt(1 - 0.999**step))
    for m in range(len(weights)):
        pull, decay, size = l1[m], np.float32(2) * l2[m], rate[m] / up_to_now1
        for r in range(weights.shape[1]):
            there, row = np.float32(at[r] >= 0), max(at[r], 0)
            for c in range(weights.shape[2]):
                w = weights[m, r, c]
                sign = np.float32(w > 0) - np.float32(w < 0)
                g = there * gradient[m, row, c] + pull * sign + decay * w
                mean[m, r, c] = b1 * mean[m, r, c] + new1 * g
                square[m, r, c] = b2 * square[m, r, c] + new2 * g * g
                weights[m, r, c] = w - size * mean[m, r, c] / (np.sqrt(square[m, r, c]) / up_to_now2 + epsilon)


class Stopping:
    """Early stopping as in the authors' later version, for each network of an ensemble on its own.

    After 4 epochs in a row without a lower validation loss the learning rate is divided by 4, after 6 in a row the
    network stops; what counts are its weights of the epoch with the lowest validation loss.
    """

    CUT, CUT_AFTER, STOP_AFTER = 0.25, 4, 6
    STATE = ("lowest", "epochs", "stalled", "since_cut")

    def __init__(self, ensemble: Ensemble):
        m = len(ensemble.rate)
        self.lowest = torch.full((m,), torch.inf, dtype=torch.float64)
        self.epochs, self.stalled, self.since_cut = torch.zeros(3, m, dtype=torch.int64).unbind()
        self.best = [p.clone() for p in ensemble.parameters]

    def update(self, ensemble: Ensemble, loss: np.ndarray, epoch: int) -> None:
        """Take note of the validation losses (M,) after an epoch; sets the ensemble's `rate`."""
        loss, going = torch.from_numpy(loss), ensemble.rate.flatten() > 0
        better = going & (loss < self.lowest)
        self.lowest = torch.where(better, loss, self.lowest)
        self.epochs = torch.where(better, epoch + 1, self.epochs)
        for best, p in zip(self.best, ensemble.parameters, strict=True):
            best[better] = p[better]
        self.stalled = torch.where(better, 0, self.stalled + 1)
        self.since_cut = torch.where(better, 0, self.since_cut + 1)
        cut = self.since_cut == self.CUT_AFTER
        self.since_cut[cut] = 0
        rate = torch.where(cut, self.CUT, 1.0) * (self.stalled < self.STOP_AFTER)
        ensemble.rate = ensemble.rate * rate[:, None, None]

    def done(self) -> bool:
        """Whether every network has stopped."""
        return bool((self.stalled >= self.STOP_AFTER).all())

    def state(self) -> dict:
        """All that `update` depends on, as a flat dict of tensors."""
        best = {f"best{i}": p for i, p in enumerate(self.best)}
        return best | {name: getattr(self, name).clone() for name in self.STATE}

    def load_state(self, state: dict) -> None:
        """Take over a `state`."""
        self.best = [state[f"best{i}"] for i in range(len(self.best))]
        for name in self.STATE:
            setattr(self, name, state[name])


def logits(weights: list[dict], x: torch.Tensor):
    """The logits (M, B, classes) of M networks for rows x (N, D), in chunks of B rows; no dropout."""
    layers = [(torch.tensor(layer["W"]).transpose(1, 2), torch.tensor(layer["b"])[:, None]) for layer in weights]
    for chunk in x.split(2000):
        a = chunk.expand(len(layers[0][0]), -1, -1)
        for W, b in layers:
            a = torch.baddbmm(b, a.relu(), W)  # pixels are ≥ 0: relu leaves them
        yield a


def accuracy(weights: list[dict], images, labels) -> np.ndarray:
    """Fraction of images (N, …) that each of M networks gives its label (N,): (M,); no dropout."""
    y = torch.tensor(np.asarray(labels)).split(2000)
    right = sum((a.argmax(-1) == part).sum(1) for a, part in zip(logits(weights, pixels(images)), y, strict=True))
    return right.numpy() / len(labels)


def cross_entropy(weights: list[dict], x: torch.Tensor, y: torch.Tensor) -> np.ndarray:
    """Mean cross-entropy of each of M networks on rows x (N, D) with labels y (N,): (M,) float64; no dropout."""
    total = torch.zeros(len(weights[0]["b"]), dtype=torch.float64)
    for a, part in zip(logits(weights, x), y.split(2000), strict=True):
        total -= torch.log_softmax(a, -1)[:, torch.arange(len(part)), part].double().sum(1)
    return total.numpy() / len(x)


def statistics(networks: dict, train: dict, test: dict, *, seed: int) -> dict:
    """What Figure S1 shows of the networks of `train_ensemble`: accuracies and weight statistics, each (M,).

    train, test: {"image": (N, …), "label": (N,)}; the train accuracy is that of the part trained on with `seed`.
    """
    part, _ = split(len(train["label"]), seed)
    return {
        "train_accuracy": accuracy(networks["weights"], train["image"][part], train["label"][part]),
        "test_accuracy": accuracy(networks["weights"], test["image"], test["label"]),
        **weight_statistics(networks["weights"]),
    }


def table(jobs: list[dict], found: list[dict]):
    """DataFrame with a row per network: its setting, run (from 0) and statistics, in the order of the jobs.

    jobs: as `jobs` gives them; found: `statistics` of each. `kept` is whether the test accuracy reaches 80 %, the
    limit below which the paper discards a network. [paper 1, section 3]
    """
    import pandas as pd

    first = min(job["seed"] for job in jobs)
    parts = [
        pd.DataFrame(job["settings"]).assign(run=job["seed"] - first, **statistics)
        for job, statistics in zip(jobs, found, strict=True)
    ]
    rows = pd.concat(parts, ignore_index=True)
    return rows.assign(kept=rows["test_accuracy"] >= ACCURATE)


def series(networks, values: np.ndarray, varied: str) -> tuple[np.ndarray, np.ndarray]:
    """The values of one regulariser's networks by run and strength: strengths (S,) and values (R, S, …).

    networks: a `table` of M rows; values (M, …), one per network; nan where the network is not kept. The dropout
    series begins with p = 0, the weakest L2, which is what dropout is added to.
    """
    own = networks["varied"] == varied
    strength = networks[varied].where(own)
    if varied == "dropout":
        strength = strength.mask((networks["varied"] == "l2") & (networks["l2"] < 1.1e-5), 0.0)
    strengths = np.sort(strength.dropna().unique())
    at = strength.notna() & networks["kept"]
    found = np.full((networks["run"].max() + 1, len(strengths), *np.shape(values)[1:]), np.nan)
    found[networks["run"][at], np.searchsorted(strengths, strength[at])] = np.asarray(values)[at]
    return strengths, found


def untrained(images, labels, *, n: int, seed: int, part: int = 100) -> list[dict]:
    """n networks without training, of seeds seed … seed + n - 1, in parts shaped as `train_ensemble` returns them.

    images, labels: those that the networks will be shown; they give the sizes of the first and the last layer.
    part: networks per part, so that a sweep shares them out.
    """
    sizes = (int(np.prod(np.shape(images)[1:])), *HIDDEN, int(np.max(labels)) + 1)
    drawn = [initial_weights(seed + i, sizes) for i in range(n)]
    return [
        {"weights": [_stacked(layer) for layer in zip(*drawn[first : first + part], strict=True)]}
        for first in range(0, n, part)
    ]


def _stacked(layer) -> dict:
    """The (W, b) of one layer of several networks as {"W": (M, out, in), "b": (M, out)}."""
    return {name: torch.stack(parts).numpy() for name, parts in zip("Wb", zip(*layer, strict=True), strict=True)}


def weight_statistics(weights: list[dict], *, near_zero: float = 1e-3) -> dict[str, np.ndarray]:
    """Σ|W|, ΣW² and sparsity (the fraction with |W| < near_zero) over all weight matrices, each (M,). [paper 1, S1]"""
    flat = np.concatenate([layer["W"].reshape(len(layer["W"]), -1) for layer in weights], axis=1).astype(np.float64)
    return {
        "l1_norm": np.abs(flat).sum(1),
        "l2_norm": (flat**2).sum(1),
        "sparsity": (np.abs(flat) < near_zero).mean(1),
    }


def _check(settings, epochs, batch, n) -> None:
    for s in settings:
        if not (s["l1"] >= 0 and s["l2"] >= 0):
            raise InputError(f"a regularisation strength below 0 was given ({s}): use 0 or more.")
        if not 0 <= s["dropout"] < 1:
            raise InputError(f"dropout is {s['dropout']}: it must be at least 0 and below 1.")
    if not settings:
        raise InputError("no setting was given: there is nothing to train.")
    if epochs < 1:
        raise InputError(f"epochs is {epochs}: train for at least 1 epoch.")
    if n - n // 10 < batch:
        raise InputError(f"{n - n // 10} training images are fewer than one batch of {batch}: give more images.")


def pixels(images) -> torch.Tensor:
    """Images (N, …) as float32 rows (N, D); uint8 is divided by 255, floats are taken as they are."""
    images = np.asarray(images)
    flat = torch.tensor(images.reshape(len(images), -1))  # a copy: what comes from the store is read-only
    return flat.float().div_(255) if images.dtype == np.uint8 else flat.float()


def _resume(ensemble: Ensemble, stopping: Stopping | None, checkpoint: Path | None) -> list[np.ndarray]:
    """Load the checkpoint where there is one; returns the losses of the epochs that are done."""
    from safetensors.torch import load_file

    if checkpoint is None or not (checkpoint / "state.safetensors").exists():
        return []
    state = load_file(checkpoint / "state.safetensors")
    losses = list(state.pop("losses").numpy())
    ensemble.load_state(state)
    if stopping:
        stopping.load_state(state)
    return losses


def _save(ensemble: Ensemble, stopping: Stopping | None, losses: list[np.ndarray], checkpoint: Path) -> None:
    from safetensors.torch import save_file

    checkpoint.mkdir(parents=True, exist_ok=True)
    aside = checkpoint / "state.new"
    state = ensemble.state() | {"losses": torch.from_numpy(np.stack(losses))}
    save_file(state | (stopping.state() if stopping else {}), aside)
    aside.replace(checkpoint / "state.safetensors")
