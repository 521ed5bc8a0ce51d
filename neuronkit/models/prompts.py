"""Soft prompts before a frozen encoder: tuning them, tapping and perturbing hidden units (paper 3).

Input, readouts and shapes are those of `models.encoders`.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from neuronkit import InputError
from neuronkit.metrics import predictivity
from neuronkit.models.activations import intervene, stream
from neuronkit.models.encoders import (
    Classes,
    Encoder,
    by_length,
    classify,
    encoded,
    inputs,
    loaded,
    logits,
    read_with,
)
from neuronkit.models.fitting import fit

INITIAL_STD = 0.03


def random_prompts(encoder: Encoder, n: int, seed: int) -> torch.Tensor:
    """n vectors (n, D) from a normal distribution of standard deviation .03: where tuning begins."""
    if n < 1:
        raise InputError(f"prompts is {n}: at least 1 is needed.")
    generator = torch.Generator().manual_seed(seed)
    return INITIAL_STD * torch.randn(n, encoder.words.shape[1], generator=generator)


def hard_prompts(encoder: Encoder, sentence: str, n: int) -> torch.Tensor:
    """The word embeddings (n, D) of a sentence, begun again where it is shorter than n tokens."""
    ids = encoder.tokenizer(sentence, add_special_tokens=False)["input_ids"]
    if not ids:
        raise InputError(f'"{sentence}" has no token that the model knows: use another sentence.')
    return encoder.words[torch.tensor((ids * n)[:n])].clone()


def untuned(model: Path | str, *, n: int, sentence: str | None = None, seed: int = 0) -> dict:
    """{"prompts": (n, D)} that nothing has trained: random ones, or the words of a sentence. [paper 3, section 5]"""
    encoder = loaded(model)
    soft = random_prompts(encoder, n, seed) if sentence is None else hard_prompts(encoder, sentence, n)
    return {"prompts": soft.numpy()}


def tune(
    model: Path | str,
    *,
    readout: str,
    verbalisers: list[str],
    prompts: int,
    seed: int,
    progress=lambda steps, what: steps,
    checkpoint: Path | None = None,
    **training,
) -> dict:
    """Tune soft prompts; nothing else trains. [paper 3, sections 2 and 4.1]

    prompts: how many. training: the texts and labels, in the order of `verbalisers`, and how to train: what
    `fitting.fit` takes.

    Returns prompts (l, D), loss (steps,), evaluated (E,) steps, accuracy (E,), cut: texts that were too long.
    Raises InputError as `fit` does.
    """
    encoder = loaded(model)
    classes = read_with(encoder, readout, verbalisers)
    training |= {"progress": progress, "checkpoint": checkpoint}
    return tuned(encoder, classes, prompts=prompts, seed=seed, **training)


def tuned(encoder: Encoder, classes: Classes, *, prompts: int, seed: int, **settings) -> dict:
    """What `tune` returns, for an encoder at hand."""
    found = fit(encoder, classes, {"prompts": random_prompts(encoder, prompts, seed)}, seed=seed, **settings)
    return {"prompts": found.pop("trained")["prompts"], **found}


def classified(
    model: Path | str,
    *,
    prompts,
    readout: str,
    verbalisers: list[str],
    texts: list[str],
    length: int,
    batch: int = 64,
) -> dict:
    """{"logits": (n, C)} of the texts with given prompts (l, D)."""
    encoder = loaded(model)
    classes = read_with(encoder, readout, verbalisers)
    return {"logits": classify(encoder, classes, torch.tensor(np.asarray(prompts)), texts, length=length, batch=batch)}


def probe(
    model: Path | str,
    *,
    prompts,
    train: list[str],
    train_labels,
    texts: list[str],
    columns,
    length: int,
    batch: int = 64,
    random: int | None = None,
    progress=lambda batches, what: batches,
) -> dict:
    """Accuracy of every hidden unit at every prompt as a classifier, in two passes. [paper 3, eqs. 3-5]

    prompts: (l, D). columns: (len(texts), R) label columns (see `metrics.predictivity`). random: the seed of a model
    that was not pretrained.

    Returns accuracy (R, P, N) with position 0 the mask, std (P, N) and mean (P, N) over `train`, class_means (C, P, N)
    of the rectified activations; for the average and the maximum over the text's own tokens accuracy_average,
    accuracy_maximum (R, N), std_average, std_maximum (N,); widths: units per layer.
    """
    encoder = loaded(model, random=random)
    soft = torch.tensor(np.asarray(prompts))
    tap = _Tap(encoder, soft, length, batch)
    kinds = ("prompts", "average", "maximum")
    moments = {kind: predictivity.Moments() for kind in kinds}
    train_labels = np.asarray(train_labels)
    sums = torch.zeros(int(train_labels.max()) + 1, len(soft) + 1, sum(encoder.widths))
    for rows, seen in progress(tap.read(train), "baseline"):
        for kind in kinds:
            moments[kind].add(seen[kind])
        sums.index_add_(0, torch.tensor(train_labels[rows]), seen["prompts"].relu())
    hits = {kind: predictivity.Hits(moments[kind].mean, columns) for kind in kinds}
    for rows, seen in progress(tap.read(texts), "probing"):
        for kind in kinds:
            hits[kind].add(rows, seen[kind])
    of_class = torch.bincount(torch.tensor(train_labels))[:, None, None]
    found = {"mean": moments["prompts"].mean, "std": moments["prompts"].std, "class_means": sums / of_class}
    found["accuracy"] = hits["prompts"].accuracy()
    for kind in ("average", "maximum"):
        found |= {f"accuracy_{kind}": hits[kind].accuracy(), f"std_{kind}": moments[kind].std}
    return {name: tensor.numpy() for name, tensor in found.items()} | {"widths": list(encoder.widths)}


def activations(
    model: Path | str, *, prompts, texts: list[str], units, positions, length: int, batch: int = 64
) -> dict:
    """{"activations": (n, k)} of k hidden units, each at a position of its own (0 is the mask)."""
    encoder = loaded(model)
    soft, found = torch.tensor(np.asarray(prompts)), np.empty((len(texts), len(units)), dtype=np.float32)
    for rows, seen in _Tap(encoder, soft, length, batch).read(texts):
        found[rows] = seen["prompts"][:, np.asarray(positions), np.asarray(units)]
    return {"activations": found}


def perturbed(
    model: Path | str,
    *,
    prompts,
    readout: str,
    verbalisers: list[str],
    texts: list[str],
    masks,
    how: str,
    values=0.0,
    length: int,
    batch: int = 64,
    seed: int = 0,
    progress=lambda masks, what: masks,
) -> dict:
    """{"logits": (M, n, C)} with the units of each mask (M, N) perturbed at all positions. [paper 3, section 4.2]

    how: "noise" adds a normal number times `values` (a number, or (N,): one per unit), the same at all positions of a
    text, drawn by text, unit and `seed`; "set" puts `values` (a number, or (N,)) in place of the activation: 0, or
    means. Raises InputError for another `how`, masks of another width, and a negative or non-finite value for noise.
    """
    encoder = loaded(model)
    classes = read_with(encoder, readout, verbalisers)
    soft = torch.tensor(np.asarray(prompts))
    settings = {"length": length, "batch": batch, "seed": seed, "progress": progress}
    return {"logits": perturb(encoder, classes, soft, texts, masks, how, values, **settings)}


def perturb(
    encoder: Encoder,
    classes: Classes,
    prompts: torch.Tensor | None,
    texts: list[str],
    masks,
    how: str,
    values,
    *,
    length: int,
    batch: int = 64,
    seed: int,
    progress,
) -> np.ndarray:
    """Logits (M, n, C) as `perturbed` has them, for an encoder at hand; prompts as in `encoders.inputs`."""
    masks, n = np.asarray(masks, dtype=bool), sum(encoder.widths)
    values = np.broadcast_to(np.asarray(values, dtype=np.float32), n).copy()
    _check_perturbation(masks, n, how, values)
    ids, _ = encoded(encoder, texts, prompts=0 if prompts is None else len(prompts), length=length)
    batches = by_length([len(row) for row in ids], batch)
    found, ends = np.empty((len(masks), len(ids), len(classes)), dtype=np.float32), np.cumsum(encoder.widths)
    for rows in progress(batches, "perturbing"):
        given = inputs(encoder, prompts, [ids[r] for r in rows])
        noise = _noise(rows, n, seed) * torch.from_numpy(values) if how == "noise" else None
        with torch.no_grad(), _Lower(encoder) as lower:
            plain = logits(encoder, classes, given)
            for m, mask in enumerate(masks):
                if not mask.any():
                    found[m, rows] = plain
                    continue
                if how == "noise":
                    edit = _adding(noise * torch.from_numpy(mask), encoder.widths)
                else:
                    edit = _setting(torch.from_numpy(mask), torch.from_numpy(values), encoder.widths)
                with intervene(encoder.body, edit), lower.skipped(np.searchsorted(ends, mask.argmax(), "right")):
                    found[m, rows] = logits(encoder, classes, given)
    return found


def attribution(
    model: Path | str,
    *,
    prompts,
    readout: str,
    verbalisers: list[str],
    texts: list[str],
    labels,
    mean,
    length: int,
    batch: int = 32,
) -> dict:
    """{"score": (N,)}: mean over texts of |sum over prompts of gradient x (activation - baseline)|.

    The gradient is that of the log-probability of the right class; mean: (P, N), the baselines of `probe`.
    """
    encoder = loaded(model)
    classes = read_with(encoder, readout, verbalisers)
    soft, labels = torch.tensor(np.asarray(prompts)), np.asarray(labels)
    ids, _ = encoded(encoder, texts, prompts=len(soft), length=length)
    baseline = torch.tensor(np.asarray(mean)).split(encoder.widths, -1)
    total = torch.zeros(sum(encoder.widths))
    for rows in by_length([len(row) for row in ids], batch):
        given, nudges, seen = inputs(encoder, soft, [ids[r] for r in rows]), {}, {}

        def edit(site, h, nudges=nudges, seen=seen):
            nudges[site], seen[site] = torch.zeros_like(h, requires_grad=True), h.detach()
            return h + nudges[site]

        with intervene(encoder.body, edit):
            right = F.cross_entropy(logits(encoder, classes, given), torch.tensor(labels[rows]), reduction="sum")
        gradients = torch.autograd.grad(-right, [nudges[s] for s in range(len(encoder.sites))])
        at = slice(0, len(soft) + 1)
        products = [(g[:, at] * (seen[s][:, at] - baseline[s])).sum(1) for s, g in enumerate(gradients)]
        total += torch.cat(products, -1).abs().sum(0)
    return {"score": (total / len(ids)).numpy()}


class _Tap:
    """Reads the hidden units of texts with prompts before them, batch by batch."""

    def __init__(self, encoder: Encoder, prompts: torch.Tensor, length: int, batch: int):
        self._encoder, self._prompts, self._length, self._batch = encoder, prompts, length, batch

    def read(self, texts: list[str]) -> "_Batches":
        """Batches of (rows, {"prompts": (B, P, N), "average": (B, N), "maximum": (B, N)})."""
        ids, _ = encoded(self._encoder, texts, prompts=len(self._prompts), length=self._length)
        return _Batches(self._encoder, self._prompts, ids, by_length([len(row) for row in ids], self._batch))


class _Batches:
    """A sized iterable, so that progress can say how long it will take."""

    def __init__(self, encoder, prompts, ids, rows):
        self._encoder, self._prompts, self._ids, self._rows = encoder, prompts, ids, rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[tuple[np.ndarray, dict]]:
        positions = len(self._prompts) + 1
        for rows in self._rows:
            found = {"prompts": [], "average": [], "maximum": []}

            def keep(site, h, mask, found=found):
                text, is_text = h[:, positions:], mask[:, positions:, None]
                found["prompts"].append(h[:, :positions])
                found["average"].append((text * is_text).sum(1) / is_text.sum(1))
                found["maximum"].append(text.masked_fill(~is_text, -torch.inf).amax(1))

            given = inputs(self._encoder, self._prompts, [self._ids[r] for r in rows])
            stream(self._encoder.body, [given], keep)
            yield rows, {kind: torch.cat(parts, -1) for kind, parts in found.items()}


class _Lower:
    """Computes the layers below the lowest one that is perturbed once for a batch, and not for each perturbation."""

    def __init__(self, encoder: Encoder):
        place, _, _ = encoder.sites[0].partition(".0.")
        layers = dict(encoder.body.named_modules()).get(place)
        # Where blocks are not in one list (or there is a single one), nothing is skipped.
        self._layers = layers if isinstance(layers, nn.ModuleList) and len(layers) == len(encoder.sites) else []
        self._outputs: dict = {}

    def __enter__(self):
        """The first call of the model in the context is the unperturbed one; the outputs of its layers are kept."""
        keep = self._outputs.setdefault
        self._hooks = [
            layer.register_forward_hook(lambda _, __, output, i=i: (keep(i, output), None)[1])
            for i, layer in enumerate(self._layers)
        ]
        return self

    def __exit__(self, *error):
        for hook in self._hooks:
            hook.remove()

    @contextlib.contextmanager
    def skipped(self, n: int):
        """Within it the lowest n layers give what they gave in the unperturbed call."""
        kept = list(self._layers)
        for i in range(n if self._layers else 0):
            self._layers[i] = _Known(self._outputs[i])
        try:
            yield
        finally:
            for i, layer in enumerate(kept):
                self._layers[i] = layer


class _Known(nn.Module):
    def __init__(self, output):
        super().__init__()
        self._output = output

    def forward(self, *args, **kwargs):
        return self._output


def _noise(rows: np.ndarray, n: int, seed: int) -> torch.Tensor:
    """(B, N) standard normal numbers that depend on the text and the seed, not on its batch."""
    return torch.from_numpy(
        np.stack([np.random.default_rng([seed, int(row)]).standard_normal(n, dtype=np.float32) for row in rows])
    )


def _adding(noise: torch.Tensor, widths):
    parts = [part[:, None] for part in noise.split(widths, -1)]  # (B, 1, F)
    return lambda site, h: h + parts[site]


def _setting(mask: torch.Tensor, values: torch.Tensor, widths):
    masks, parts = mask.split(widths), values.split(widths)
    return lambda site, h: torch.where(masks[site], parts[site], h) if masks[site].any() else h


def _check_perturbation(masks: np.ndarray, n: int, how: str, values: np.ndarray) -> None:
    if masks.ndim != 2 or masks.shape[1] != n:
        raise InputError(f"masks are {masks.shape}, the model has {n} hidden units: give (masks, units).")
    if how not in ("noise", "set"):
        raise InputError(f'how is "{how}": use "noise" or "set".')
    if not np.isfinite(values).all() or (how == "noise" and (values < 0).any()):
        raise InputError("values must be finite, and for noise, as standard deviations, not negative.")
