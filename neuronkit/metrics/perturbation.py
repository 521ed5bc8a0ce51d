"""What perturbing units costs: which units to perturb, accuracy and AUC, and the area between curves (paper 3, 4.2)."""

import numpy as np
import scipy.special

from neuronkit import InputError
from neuronkit.metrics import roc
from neuronkit.metrics.predictivity import merge_subtasks, skill_neurons


def top_share(scores, widths, share: float, *, per_layer: bool = True) -> np.ndarray:
    """Boolean (N,): the top `share` of units, int(share · units) of each layer, or of the whole model.

    scores: (N,), or (subtasks, N), merged as `predictivity.merge_subtasks` does. widths: units of each layer, N in
    all. Of equal scores the lower index comes first. Raises InputError for a share outside 0 to 1 and for widths that
    don't add up to N.
    """
    scores = np.atleast_2d(np.asarray(scores, dtype=float))
    if not 0 <= share <= 1:
        raise InputError(f"share is {share}: it must be from 0 to 1.")
    if sum(widths) != scores.shape[1]:
        raise InputError(f"there are {scores.shape[1]} scores and {sum(widths)} units: give one score per unit.")
    found = np.zeros(scores.shape[1], dtype=bool)
    for part in np.split(np.arange(len(found)), np.cumsum(widths)[:-1] if per_layer else []):
        # Shares such as .29 are no binary fractions: int(.29 · 100) would be 28.
        k = int(round(share * len(part), 9))
        if k >= len(scores):
            found[part[merge_subtasks(list(scores[:, part]), k)]] = True
        elif k:
            found[part[skill_neurons(scores[0, part], k)]] = True
    return found


def accuracy(logits, labels) -> np.ndarray:
    """Share of items (...,) whose highest logit (..., n, C) is that of their label (n,)."""
    return (np.asarray(logits).argmax(-1) == np.asarray(labels)).mean(-1)


def roc_auc(logits, labels) -> np.ndarray:
    """Area under the ROC curve (...,) of logits (..., n, C): of class 1, or the mean over classes against the rest.

    The score of a class is its log-odds. Raises InputError where a class has no item.
    """
    logits, labels = np.asarray(logits, dtype=float), np.asarray(labels)
    classes = logits.shape[-1]
    odds = [logits[..., c] - scipy.special.logsumexp(np.delete(logits, c, -1), axis=-1) for c in range(classes)]
    return np.mean([roc.auc(odds[c], labels == c) for c in ([1] if classes == 2 else range(classes))], axis=0)


def neuronal_importance(rates, accuracy, random_accuracy) -> float:
    """Area between the curves of random order and of an order, signed: integral of random - accuracy over the rate.

    rates (S,): shares of perturbed units, ascending; accuracy, random_accuracy (S,). [paper 3, section 4.3; trapezoid]
    Raises InputError for other shapes, rates that don't ascend, and values that are not finite.
    """
    rates, accuracy, random_accuracy = (np.asarray(v, dtype=float) for v in (rates, accuracy, random_accuracy))
    if not (rates.ndim == 1 and rates.shape == accuracy.shape == random_accuracy.shape) or len(rates) < 2:
        raise InputError(
            f"rates and both accuracies must be (S,) with S of 2 or more: they are {rates.shape}, {accuracy.shape}, "
            f"{random_accuracy.shape}."
        )
    if not (np.diff(rates) > 0).all() or not np.isfinite([accuracy, random_accuracy]).all():
        raise InputError("rates must ascend and accuracies be finite.")
    return float(np.trapezoid(random_accuracy - accuracy, rates))


def standardised(importance) -> np.ndarray:
    """z-scores of importance (sources, tasks) over the sources of each task (population standard deviation).

    nan where all sources matter alike. [paper 3, Figure 6]
    """
    importance = np.asarray(importance, dtype=float)
    spread = importance.std(0)
    centred = importance - importance.mean(0)
    return np.divide(centred, spread, out=np.full_like(centred, np.nan), where=spread > 0)


def same_kind_contrast(values, kinds: list[str]) -> float:
    """Mean of values (n, n) over pairs of one kind minus that over pairs of two kinds; the diagonal is left out.

    nan where there is no pair of one of the two sorts, or none that is finite.
    """
    values, kinds = np.asarray(values, dtype=float), np.asarray(kinds)
    same, off = kinds[:, None] == kinds, ~np.eye(len(kinds), dtype=bool) & np.isfinite(values)
    within, across = values[same & off], values[~same & off]
    return float(within.mean() - across.mean()) if len(within) and len(across) else float("nan")
