"""Which units a pruned model keeps, and how many parameters are left (paper 3, section 6.1)."""

import numpy as np

from neuronkit import InputError
from neuronkit.metrics.perturbation import top_share


def kept_units(scores, widths, keep: float, layers) -> np.ndarray:
    """Boolean (N,): the top int(keep · units) of each of `layers`, and all units of the others.

    scores: as for `perturbation.top_share`. layers: how many, from the top, or their indices (0 is the lowest).
    Raises InputError for keep outside (0, 1], a share that leaves a layer without units, and layers that aren't there.
    """
    chosen = _layers(layers, len(widths))
    _check(keep, [widths[i] for i in chosen])
    kept = top_share(scores, widths, keep)
    of_layer = np.repeat(np.arange(len(widths)), widths)
    return kept | ~np.isin(of_layer, chosen)


def parameter_fraction(config, keep: float, layers) -> float:
    """Parameters of a pruned model as a share of the whole one's, counted on the class that a config names.

    config: a transformers config of a BERT-like encoder; its model is laid out without memory. keep, layers: as for
    `kept_units`. A unit has a row of W1, its bias and a column of W2.

    Raises InputError like `kept_units`.
    """
    import torch
    import transformers

    chosen = _layers(layers, config.num_hidden_layers)
    _check(keep, [config.intermediate_size])
    masked = any("ForMaskedLM" in name for name in config.architectures or ())
    kind = transformers.AutoModelForMaskedLM if masked else transformers.AutoModel
    with torch.device("meta"):
        whole = sum(p.numel() for p in kind.from_config(config).parameters())
    gone = config.intermediate_size - _count(keep, config.intermediate_size)
    return 1 - len(chosen) * gone * (2 * config.hidden_size + 1) / whole


def _layers(layers, there: int) -> list[int]:
    chosen = list(range(there - layers, there)) if isinstance(layers, int) else sorted(set(layers))
    if not chosen or not all(0 <= i < there for i in chosen):
        raise InputError(
            f"layers is {layers}: the model has {there}, numbered 0 to {there - 1}; name 1 or more of them."
        )
    return chosen


def _check(keep: float, widths) -> None:
    if not 0 < keep <= 1:
        raise InputError(f"keep is {keep}: it must be above 0 and at most 1.")
    if min(_count(keep, w) for w in widths) < 1:
        raise InputError(f"keep is {keep}: that is less than one of {min(widths)} units; keep more.")


def _count(keep: float, width: int) -> int:
    return int(round(keep * width, 9))
