"""A small decoder-only Transformer with ReLU units, and its training with a record of unit use (paper 2, section 2).

Pre-LN, learned positions, tied head, no dropout; the two dense kernels of each MLP are LeCun normal, as in the paper.
What the paper's text leaves open is a guess, and those that matter are parameters: the standard deviation of the
embeddings, weight decay (on matrices and embeddings). Adam's betas are .9 and .98, the gradient's norm is cut at 1.

Shapes: B sequences, T tokens, D width, H heads, F hidden units of an MLP, L layers, V tokens in the vocabulary.
"""

import contextlib
import math
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.adam import adam

from neuronkit import InputError
from neuronkit.metrics import sparsity
from neuronkit.models.activations import UseRecorder
from neuronkit.models.text import sequences

PERCENTILES = (25, 50, 65, 75, 90)  # of frequency, kept at each recorded step
CHECKPOINT_SECONDS = 20.0


@dataclass(frozen=True)
class Shape:
    """The shape of a decoder; hidden has one number of MLP units per layer."""

    vocabulary: int
    positions: int
    width: int
    heads: int
    hidden: tuple[int, ...]
    embedding_std: float


class Block(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, width: int, heads: int, hidden: int):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.mlp = Attention(width, heads), MLP(width, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, T, D) -> (B, T, D)."""
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, T, D) -> (B, T, D)."""
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, H, T, D / H)
            for part in self.qkv(x).chunk(3, -1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    """Up, ReLU, down: the hidden units are what leaves `act`."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.up, self.act, self.down = nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, T, D) -> (B, T, D)."""
        return self.down(self.act(self.up(x)))  # (B, T, F) in between


class Decoder(nn.Module):
    """Tokens in, logits of the next token out. Raises InputError for a sequence longer than its positions."""

    def __init__(self, shape: Shape, *, seed: int):
        super().__init__()
        self.shape = shape
        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.positions = nn.Embedding(shape.positions, shape.width)
        self.blocks = nn.ModuleList(Block(shape.width, shape.heads, hidden) for hidden in shape.hidden)
        self.norm = nn.LayerNorm(shape.width)
        initialise(self, seed)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """(B, T) -> (B, T, V)."""
        if ids.shape[1] > self.shape.positions:
            raise InputError(
                f"sequences of {ids.shape[1]} tokens are longer than the {self.shape.positions} positions."
            )
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.tokens.weight.T


def initialise(model: Decoder, seed: int) -> None:
    """LeCun normal kernels (truncated at two standard deviations), zero biases, normal embeddings."""
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            # Cutting the tails narrows the distribution; the factor makes up for it.
            std = module.in_features**-0.5 / 0.87962566103423978
            nn.init.trunc_normal_(module.weight, std=std, a=-2 * std, b=2 * std, generator=generator)
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=model.shape.embedding_std, generator=generator)


def device(name: str) -> str:
    """The device that a name stands for; "auto" is cuda where there is one, else cpu. Raises InputError."""
    there = torch.cuda.is_available()
    if name == "auto":
        return "cuda" if there else "cpu"
    if name not in ("cpu", "cuda") or (name == "cuda" and not there):
        raise InputError(f'device is "{name}": use "auto", "cpu"' + (' or "cuda".' if there else "; there is no cuda."))
    return name


def learning_rate(step: int, *, peak: float, warmup: int, steps: int) -> float:
    """The rate of update `step` (from 1): linear to the peak at `warmup`, then half a cosine to 0 at `steps`."""
    if step <= warmup:
        return peak * step / warmup
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


def record_at(steps: int, n: int = 48) -> list[int]:
    """About n steps to record at, 0 and the last among them: half evenly spaced, half closer the earlier."""
    late = np.linspace(0, steps, n // 2 + 1)
    early = np.geomspace(1, max(1, steps), n // 2)
    return sorted({round(s) for s in (*late, *early)} & set(range(steps + 1)))


def train(
    tokens,
    evaluation,
    *,
    vocabulary: int,
    length: int,
    batch: int,
    width: int,
    heads: int,
    layers: int,
    hidden: int | list[int],
    embedding_std: float,
    steps: int,
    rate: float,
    warmup: int,
    weight_decay: float,
    evaluated: int,
    seed: int,
    records: int = 48,
    device: str = "cpu",
    progress=lambda steps, what: steps,
    checkpoint: Path | None = None,
) -> dict:
    """Train a decoder on a stream of tokens and record the use of its hidden units. [paper 2, section 2]

    tokens, evaluation: streams (N,), (M,) int, of other documents. Sequences have `length` tokens, a training batch
    and an evaluation batch `batch` sequences. hidden: units of each MLP, or a list with one number per layer.
    evaluated: evaluation sequences, the same at every step; a multiple of `batch`. records: about how often to record,
    step 0, before the first update, and the last among them. steps may be 0: what initialisation alone does.
    seed: of the weights, of the order of sequences and of the choice of evaluation sequences.
    progress, checkpoint: as for `mlp.train_ensemble`. On cuda the arithmetic is bfloat16 where autocast has it so.

    Returns, with R records: {"step": (R,), "loss": (R,) on the evaluation sequences, "rate": (R,), "token", "sequence",
    "batch": (R, L) use, "percentiles": (R, L, 5) at PERCENTILES, "used": [(R, F), …] which units the first evaluation
    batch uses, "counts": [(evaluated, F), …] at the last step, "weights": {name: array}}.
    Raises InputError for values out of range, a list of another length than the layers, and a loss or activation that
    is not finite (with the step).
    """
    hidden = [hidden] * layers if isinstance(hidden, int) else list(hidden)
    _check(locals())
    shape = Shape(vocabulary, length, width, heads, tuple(hidden), embedding_std)
    rows = sequences(tokens, length)
    shown = torch.tensor(chosen(evaluation, length=length, n=evaluated, seed=seed), dtype=torch.int64, device=device)
    model = Decoder(shape, seed=seed).to(device)
    optimiser = AdamW(model, weight_decay)
    done, found = _resume(model, optimiser, checkpoint)
    moments, saved = set(record_at(steps, records)), time.monotonic()
    if done == 0 and not found:
        found.append({"step": 0, "rate": 0.0} | _recorded(model, shown, batch, 0))
    for step in progress(range(done + 1, steps + 1), f"training {layers} layers"):
        now = learning_rate(step, peak=rate, warmup=warmup, steps=steps)
        picked = torch.tensor(_batch(rows, step - 1, batch, seed), dtype=torch.int64, device=device)
        loss = _loss(model, picked)
        loss.backward()
        if not torch.isfinite(loss):
            raise InputError(f"the loss is not finite at step {step}: use a smaller learning rate.")
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step(now)
        if step in moments:
            found.append({"step": step, "rate": now} | _recorded(model, shown, batch, step))
        if checkpoint is not None and time.monotonic() - saved > CHECKPOINT_SECONDS and step < steps:
            _save(model, optimiser, step, found, checkpoint)
            saved = time.monotonic()
    return _gathered(found) | {"counts": _counts(model, shown, batch)[0], "weights": _arrays(model)}


class AdamW:
    """Decoupled weight decay on matrices and embeddings, none on biases and norms."""

    def __init__(self, model: nn.Module, weight_decay: float):
        self.decayed = [p for p in model.parameters() if p.ndim > 1]
        self.others = [p for p in model.parameters() if p.ndim == 1]
        self.weight_decay = weight_decay
        parameters = self.decayed + self.others
        self.mean = [torch.zeros_like(p) for p in parameters]
        self.square = [torch.zeros_like(p) for p in parameters]
        self.steps = [torch.zeros((), device=p.device) for p in parameters]

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """One update with the gradients there are, which are cleared."""
        split = len(self.decayed)
        for group, part, decay in (
            (self.decayed, slice(split), self.weight_decay),
            (self.others, slice(split, None), 0.0),
        ):
            # The functional form: an Optimizer object brings seconds of imports to each process that makes one.
            adam(
                group,
                [p.grad for p in group],
                self.mean[part],
                self.square[part],
                [],
                self.steps[part],
                fused=True,
                amsgrad=False,
                beta1=0.9,
                beta2=0.98,
                lr=rate,
                weight_decay=decay,
                eps=1e-8,
                maximize=False,
                decoupled_weight_decay=True,
            )
        for p in self.decayed + self.others:
            p.grad = None

    def state(self) -> dict:
        """All that the next update depends on, beside the weights, as tensors by name."""
        kinds = {"mean": self.mean, "square": self.square, "steps": self.steps}
        return {f"{kind}.{i}": t for kind, tensors in kinds.items() for i, t in enumerate(tensors)}

    def load_state(self, state: dict) -> None:
        """Take over a `state`."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])


def chosen(evaluation, *, length: int, n: int, seed: int) -> np.ndarray:
    """n evaluation sequences (n, length + 1), drawn without replacement. Raises InputError where there are fewer."""
    rows = sequences(evaluation, length)
    if len(rows) < n:
        raise InputError(
            f"the held-out text has {len(rows)} sequences of {length} tokens, {n} were asked for: ask fewer."
        )
    return rows[np.sort(np.random.default_rng(seed).permutation(len(rows))[:n])]


def loaded(weights: dict, *, heads: int) -> Decoder:
    """The decoder of the weights that `train` returned, in eval mode."""
    hidden = [w.shape[0] for name, w in weights.items() if name.endswith("mlp.up.weight")]
    (vocabulary, width), positions = weights["tokens.weight"].shape, len(weights["positions.weight"])
    model = Decoder(Shape(vocabulary, positions, width, heads, tuple(hidden), 1.0), seed=0)
    model.load_state_dict({name: torch.tensor(w) for name, w in weights.items()})
    return model.eval()


def _batch(rows: np.ndarray, number: int, batch: int, seed: int) -> np.ndarray:
    """Batch `number` of an endless series of passes, each in its own order: resuming needs the number only."""
    per_pass = max(1, len(rows) // batch)
    turn, at = divmod(number, per_pass)
    order = np.random.default_rng([seed, turn]).permutation(len(rows))
    return rows[order[at * batch : (at + 1) * batch]]


def _loss(model: Decoder, rows: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of the next token, rows (B, T + 1)."""
    bfloat16 = torch.autocast("cuda", torch.bfloat16) if rows.is_cuda else contextlib.nullcontext()
    with bfloat16:
        logits = model(rows[:, :-1])
    return F.cross_entropy(logits.float().flatten(0, 1), rows[:, 1:].flatten())


def _counts(model: Decoder, shown: torch.Tensor, batch: int) -> tuple[list[np.ndarray], float]:
    """(active counts of each layer, [(S, F), …], mean loss) on the evaluation sequences."""
    model.eval()
    with torch.no_grad(), UseRecorder(model) as recorder:
        losses = [_loss(model, part) for part in shown.split(batch)]
    model.train()
    return recorder.counts, float(torch.stack(losses).mean())


def _recorded(model: Decoder, shown: torch.Tensor, batch: int, step: int) -> dict:
    """Loss and use on the evaluation sequences; "used" holds one boolean (F,) per layer."""
    try:
        counts, loss = _counts(model, shown, batch)
    except InputError as error:
        raise InputError(f"at step {step}, {error}") from error
    lengths = np.full(len(shown), shown.shape[1] - 1)
    uses = [sparsity.hidden_unit_use(c, lengths, batch=batch) for c in counts]
    return {
        "loss": loss,
        **{name: np.array([getattr(use, name) for use in uses]) for name in ("token", "sequence", "batch")},
        "percentiles": np.array([sparsity.frequency_percentiles(c, lengths, PERCENTILES) for c in counts]),
        "used": [c[:batch].any(0) for c in counts],
    }


def _gathered(found: list[dict]) -> dict:
    """The records as arrays, one row per recorded step; "used" stays a list over layers."""
    names = ("step", "loss", "rate", "token", "sequence", "batch", "percentiles")
    layers = zip(*(record["used"] for record in found), strict=True)
    return {name: np.array([record[name] for record in found]) for name in names} | {
        "used": [np.array(layer) for layer in layers]
    }


def _arrays(model: Decoder) -> dict:
    return {name: tensor.detach().float().cpu().numpy() for name, tensor in model.state_dict().items()}


def _save(model: Decoder, optimiser: AdamW, step: int, found: list[dict], checkpoint: Path) -> None:
    from safetensors.torch import save_file

    records = _gathered(found)
    records |= {f"used.{layer}": used for layer, used in enumerate(records.pop("used"))}
    state = {f"model.{name}": t for name, t in model.state_dict().items()} | optimiser.state()
    state |= {f"record.{name}": torch.from_numpy(values) for name, values in records.items()}
    checkpoint.mkdir(parents=True, exist_ok=True)
    aside = checkpoint / "state.new"
    save_file(state | {"done": torch.tensor(step)}, aside)
    aside.replace(checkpoint / "state.safetensors")


def _resume(model: Decoder, optimiser: AdamW, checkpoint: Path | None) -> tuple[int, list[dict]]:
    """(steps that are done, their records) of the checkpoint, taken over; (0, []) where there is none."""
    from safetensors.torch import load_file

    if checkpoint is None or not (checkpoint / "state.safetensors").exists():
        return 0, []
    state = load_file(checkpoint / "state.safetensors")
    model.load_state_dict({name.removeprefix("model."): t for name, t in state.items() if name.startswith("model.")})
    optimiser.load_state(state)
    records = {name.removeprefix("record."): t.numpy() for name, t in state.items() if name.startswith("record.")}
    used = [records.pop(f"used.{layer}") for layer in range(len(model.blocks))]
    found = [{name: values[r] for name, values in records.items()} for r in range(len(records["step"]))]
    return int(state["done"]), [record | {"used": [u[r] for u in used]} for r, record in enumerate(found)]


def _check(given: dict) -> None:
    least = ("vocabulary", "length", "batch", "width", "heads", "layers", "evaluated", "warmup")
    for name, low in [*((name, 1) for name in least), ("steps", 0), ("records", 2)]:
        if given[name] < low:
            raise InputError(f"{name} is {given[name]}: it must be at least {low}.")
    if given["width"] % given["heads"]:
        raise InputError(f"width {given['width']} can't be shared by {given['heads']} heads: use a multiple of them.")
    if len(given["hidden"]) != given["layers"]:
        raise InputError(f"hidden has {len(given['hidden'])} widths for {given['layers']} layers: give one per layer.")
    if min(given["hidden"]) < 1:
        raise InputError(f"hidden is {given['hidden']}: each layer needs at least 1 unit.")
    if not given["rate"] > 0 or not given["embedding_std"] > 0:
        raise InputError(f"rate is {given['rate']} and embedding_std {given['embedding_std']}: both must be above 0.")
    if not given["weight_decay"] >= 0:
        raise InputError(f"weight_decay is {given['weight_decay']}: it must be 0 or more.")
    if given["evaluated"] % given["batch"]:
        raise InputError(f"evaluated is {given['evaluated']}: it must be a multiple of the batch, {given['batch']}.")
    for name in ("tokens", "evaluation"):
        highest = np.max(given[name], initial=0)
        if highest >= given["vocabulary"]:
            raise InputError(f"{name} has token {highest}, outside the vocabulary of {given['vocabulary']}.")
