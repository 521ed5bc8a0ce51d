"""Encoders without most of their hidden units: really smaller matrices, and prompts tuned for them (paper 3, 6.1).

A unit that goes is frozen at its mean: its output weight times the mean is added to the bias of the layer's second
matrix, and its row and column are taken out. The outputs are those of the whole model with these units set to their
means.
"""

import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

from neuronkit import InputError
from neuronkit.models import prompts as soft
from neuronkit.models.encoders import Encoder, classify, loaded, read_with


def pruned(encoder: Encoder, kept, mean, *, variant: str = "text") -> Encoder:
    """The encoder with the units `kept` (N,) only, changed in place; the others are frozen at `mean` (N,).

    variant: "text": the means of the units that go are merged into the bias; "authors": those of all units of the
    layer, as the published code does, so that the kept ones count twice. A layer that keeps all is left alone.

    Raises InputError for masks or means of another size, a layer without a unit, another variant, and an encoder whose
    blocks are not two dense layers.
    """
    kept, mean = np.asarray(kept, dtype=bool), np.asarray(mean, dtype=np.float32)
    n = sum(encoder.widths)
    if kept.shape != (n,) or mean.shape != (n,):
        raise InputError(f"kept is {kept.shape} and mean {mean.shape}: the model has {n} hidden units.")
    if variant not in ("text", "authors"):
        raise InputError(f'variant is "{variant}": use "text" or "authors".')
    ends = np.cumsum(encoder.widths)[:-1]
    widths = []
    for site, mask, means in zip(encoder.sites, np.split(kept, ends), np.split(mean, ends), strict=True):
        first, second = _dense(encoder.body, site)
        if not mask.any():
            raise InputError(f"{site} would keep no unit: keep at least one in each layer.")
        widths.append(int(mask.sum()))
        if mask.all():
            continue
        rows = torch.tensor(np.flatnonzero(mask))
        merged = torch.tensor(means if variant == "authors" else np.where(mask, 0, means))
        with torch.no_grad():
            second.bias += second.weight @ merged
        first.weight, first.bias = _part(first.weight[rows]), _part(first.bias[rows])
        second.weight = _part(second.weight[:, rows])
        first.out_features = second.in_features = len(rows)
    return Encoder(encoder.body, encoder.head, encoder.tokenizer, encoder.sites, tuple(widths), encoder.positions)


def tune(
    model: Path | str,
    *,
    kept,
    mean,
    variant: str = "text",
    readout: str,
    verbalisers: list[str],
    prompts: int,
    seed: int,
    progress=lambda steps, what: steps,
    checkpoint: Path | None = None,
    **training,
) -> dict:
    """Tune soft prompts for a pruned model, from random ones; returns what `prompts.tune` does, and kept (N,)."""
    encoder = pruned(loaded(model), kept, mean, variant=variant)
    classes = read_with(encoder, readout, verbalisers)
    training |= {"progress": progress, "checkpoint": checkpoint}
    return {"kept": np.asarray(kept, dtype=bool)} | soft.tuned(encoder, classes, prompts=prompts, seed=seed, **training)


def classified(
    model: Path | str,
    *,
    kept,
    mean,
    variant: str = "text",
    tuned: dict,
    readout: str,
    verbalisers: list[str],
    texts: list[str],
    length: int,
) -> dict:
    """{"logits": (n, C)} of a pruned model with the prompts that `tune` found for it, or with those of the whole model.

    tuned: what `tune` or `prompts.tune` returned. Raises InputError where `tune` kept other units.
    """
    if "kept" in tuned and not np.array_equal(tuned["kept"], kept):
        raise InputError("these prompts were tuned for a model that keeps other units: tune them for this one.")
    encoder = pruned(loaded(model), kept, mean, variant=variant)
    classes = read_with(encoder, readout, verbalisers)
    given = torch.tensor(np.asarray(tuned["prompts"]))
    return {"logits": classify(encoder, classes, given, texts, length=length, batch=64)}


def times(
    model: Path | str,
    *,
    kept,
    mean,
    prompts,
    readout: str,
    verbalisers: list[str],
    texts: list[str],
    length: int,
    repeats: int,
    progress=lambda repeats, what: repeats,
) -> dict:
    """{"full": (repeats,), "pruned": (repeats,)} seconds to classify the texts, taken in turn, one thread.

    A first run of each is not counted. Run it on a machine that does nothing else.
    """
    encoders = {"full": loaded(model), "pruned": pruned(loaded(model), kept, mean)}
    classes = {name: read_with(encoder, readout, verbalisers) for name, encoder in encoders.items()}
    given, found = torch.tensor(np.asarray(prompts)), {name: [] for name in encoders}
    for _ in progress(range(repeats + 1), "timing"):
        for name, encoder in encoders.items():
            start = time.perf_counter()
            classify(encoder, classes[name], given, texts, length=length, batch=64)
            found[name].append(time.perf_counter() - start)
    return {name: np.array(seconds[1:]) for name, seconds in found.items()}


def _dense(body: nn.Module, site: str) -> tuple[nn.Linear, nn.Linear]:
    """The dense layers before and after the hidden units of a BERT-like block, by the name of its site."""
    modules = dict(body.named_modules())
    block = site.rpartition(".")[0]
    first, second = modules.get(f"{site}.dense"), modules.get(f"{block}.output.dense")
    if not (isinstance(first, nn.Linear) and isinstance(second, nn.Linear)):
        raise InputError(f"{site} is no block of two dense layers as BERT and RoBERTa have them: use such a model.")
    return first, second


def _part(weight: torch.Tensor) -> nn.Parameter:
    return nn.Parameter(weight.detach().clone(), requires_grad=False)
