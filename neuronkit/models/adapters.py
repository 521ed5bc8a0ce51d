"""Two ways to tune an encoder without its neurons' weights: all biases (BitFit), or small added layers (paper 3, 5).

Neither has prompts: the text is read alone. An adapter follows the second matrix of each feed-forward block,
h + up(relu(down(h))), and begins with up = 0, so that it changes nothing before it is trained.
"""

from pathlib import Path

import numpy as np
import torch
from torch import nn

from neuronkit import InputError
from neuronkit.models.encoders import Encoder, loaded, read_with
from neuronkit.models.fitting import fit, put
from neuronkit.models.prompts import perturb

METHODS = ("bitfit", "adapters")
INITIAL_STD = 0.02


class Adapter(nn.Module):
    """h + up(relu(down(h))) on the last axis; `width` units in between."""

    def __init__(self, size: int, width: int, generator: torch.Generator):
        super().__init__()
        self.down, self.up = nn.Linear(size, width), nn.Linear(width, size)
        with torch.no_grad():
            self.down.weight.copy_(INITIAL_STD * torch.randn(width, size, generator=generator))
            for zero in (self.down.bias, self.up.weight, self.up.bias):
                zero.zero_()

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        """h (..., size)."""
        return h + self.up(self.down(h).relu())


def biases(encoder: Encoder) -> dict[str, torch.Tensor]:
    """Every bias of the encoder by name, and those of its head: what BitFit trains."""
    parts = {"": encoder.body} | ({} if encoder.head is None else {"head.": encoder.head})
    return {
        f"{prefix}{name}": tensor
        for prefix, part in parts.items()
        for name, tensor in part.named_parameters()
        if name.endswith("bias")
    }


def add_adapters(encoder: Encoder, width: int, seed: int) -> dict[str, torch.Tensor]:
    """Put an adapter behind each feed-forward block, in place; returns its weights by name.

    Raises InputError for a width below 1, and an encoder whose blocks are not BERT's.
    """
    if width < 1:
        raise InputError(f"width is {width}: an adapter needs at least 1 unit.")
    generator, added = torch.Generator().manual_seed(seed), {}
    for i, site in enumerate(encoder.sites):
        output = getattr(encoder.body.get_submodule(site.rpartition(".")[0]), "output", None)
        if not isinstance(getattr(output, "dense", None), nn.Linear):
            raise InputError(f"{site} is no block as BERT and RoBERTa have them: adapters need such a model.")
        adapter = Adapter(output.dense.out_features, width, generator)
        output.dense = nn.Sequential(output.dense, adapter)
        added |= {f"{i}.{name}": tensor for name, tensor in adapter.named_parameters()}
    return added


def trainable(encoder: Encoder, method: str, *, width: int, seed: int) -> dict[str, torch.Tensor]:
    """What a method trains, by name; adapters are put in. Raises InputError for another method."""
    if method not in METHODS:
        raise InputError(f'method is "{method}": use "bitfit" or "adapters".')
    return biases(encoder) if method == "bitfit" else add_adapters(encoder, width, seed)


def tune(
    model: Path | str,
    *,
    method: str,
    width: int,
    readout: str,
    verbalisers: list[str],
    seed: int,
    progress=lambda steps, what: steps,
    checkpoint: Path | None = None,
    **training,
) -> dict:
    """Tune an encoder by "bitfit" or by "adapters" of so many units; the weights of its neurons stay. [paper 3, 5]

    training: what `fitting.fit` takes. Returns what `fit` does.
    """
    encoder = loaded(model)
    classes = read_with(encoder, readout, verbalisers)
    training |= {"seed": seed, "progress": progress, "checkpoint": checkpoint}
    return fit(encoder, classes, trainable(encoder, method, width=width, seed=seed), **training)


def perturbed(
    model: Path | str,
    *,
    method: str,
    width: int,
    trained: dict,
    readout: str,
    verbalisers: list[str],
    texts: list[str],
    masks,
    how: str,
    values=0.0,
    length: int,
    seed: int = 0,
    progress=lambda batches, what: batches,
) -> dict:
    """{"logits": (M, n, C)} of a tuned encoder with the units of each mask (M, N) perturbed, as `prompts.perturbed`.

    trained: what `tune` found. Raises InputError where it is of another method or width.
    """
    encoder = loaded(model)
    classes = read_with(encoder, readout, verbalisers)
    put(trainable(encoder, method, width=width, seed=0), trained)
    settings = {"length": length, "seed": seed, "progress": progress}
    return {"logits": perturb(encoder, classes, None, texts, np.asarray(masks), how, values, **settings)}
