"""Skill neurons: how well the activation of one unit at a soft prompt tells two classes apart (paper 3, section 3).

With the baseline b = mean activation over the training items, a unit predicts class 1 where a > b, strictly. Acc is
its accuracy on the dev items (eqs. 3, 4), Pred = max(Acc, 1 - Acc) (eq. 5), the maximum over prompts, the mean over
trials (eq. 6).

Two passes over a stream need no activations in memory: `Moments` sums up the training items, `Hits` counts, for any
number of weighted label columns at once, on the others. A label column holds +1 for class 1, -1 for class 0, 0 for an
item that doesn't count, or such values times a weight (bootstrap): with `on` the 0/1 matrix of a > b,

    sum of weights of right items = onᵀ z + sum of the weights of class 0.

Shapes: n items, P prompts, N units, R label columns.
"""

import itertools
from typing import NamedTuple

import numpy as np
import torch

from neuronkit import InputError

NEAR_CONSTANT = 1e-4  # below this std over the training items, whether a > b is a matter of rounding


class Moments:
    """Mean and standard deviation over the items of a stream."""

    def __init__(self):
        self.n, self._sum, self._squares, self._first = 0, 0.0, 0.0, None

    def add(self, activations: torch.Tensor) -> None:
        """Take in activations (n, ...) of more items. Raises InputError for NaN and infinite values."""
        if not torch.isfinite(activations).all():
            raise InputError("activations are not finite: check the model and its inputs.")
        if self._first is None:  # as a shift, so that a small spread does not drown in a large mean
            self._first = activations[0].double()
        shifted = activations.double() - self._first
        self.n += len(activations)
        self._sum = self._sum + shifted.sum(0)
        self._squares = self._squares + shifted.square().sum(0)

    @property
    def mean(self) -> torch.Tensor:
        """(...), float32. Raises InputError where no item came."""
        self._check()
        return (self._first + self._sum / self.n).float()

    @property
    def std(self) -> torch.Tensor:
        """(...), float32, of the population."""
        self._check()
        return (self._squares / self.n - (self._sum / self.n).square()).clamp(min=0).sqrt().float()

    def _check(self):
        if not self.n:
            raise InputError("there are no training items: the baseline is their mean.")


class Hits:
    """Accuracy of every unit as a classifier, for R label columns at once."""

    def __init__(self, baseline: torch.Tensor, columns):
        """baseline: (...) of a unit and prompt; columns: (items, R), a row of weights per item of the stream."""
        self._baseline = baseline
        self._columns = torch.as_tensor(np.asarray(columns), dtype=torch.float32)
        _check_columns(self._columns)
        self._on = torch.zeros(self._columns.shape[1], baseline.numel(), device=baseline.device)

    def add(self, rows, activations: torch.Tensor) -> None:
        """Take in activations (n, ...) of the items `rows` (n,). Raises InputError for another shape than the
        baseline's.
        """
        if activations.shape[1:] != self._baseline.shape:
            raise InputError(
                f"activations are {tuple(activations.shape[1:])} an item, the baseline {tuple(self._baseline.shape)}: "
                "use the same model and prompts."
            )
        on = (activations > self._baseline).flatten(1).float()
        self._on += self._columns[rows].to(on.device).T @ on

    def accuracy(self) -> torch.Tensor:
        """(R, ...): the weighted share of items that a > b gets right."""
        off = -self._columns.clamp(max=0).sum(0)
        total = self._columns.abs().sum(0)
        accuracy = (self._on + off.to(self._on.device)[:, None]) / total.to(self._on.device)[:, None]
        return accuracy.unflatten(1, self._baseline.shape)


def columns(labels, *, of: tuple[int, int] | None = None) -> np.ndarray:
    """A label column (n,): +1 for class 1, -1 for class 0; `of` names the ids of the two, others count 0.

    Raises InputError where one of the two is missing.
    """
    labels = np.asarray(labels)
    zero, one = (0, 1) if of is None else of
    column = (labels == one).astype(np.float32) - (labels == zero)
    if not ((column > 0).any() and (column < 0).any()):
        raise InputError("only one class is among the labels: predictivity needs items of two.")
    if of is None and (column == 0).any():
        raise InputError(f"labels must be 0 or 1; {labels[column == 0][0]} is among them.")
    return column


def dev_and_test(dev, test, *, shuffles: int, seed: int) -> np.ndarray:
    """Label columns (n_dev + n_test, 2 + shuffles): dev, test, and dev with its labels shuffled, again and again.

    dev, test: labels, 0 or 1; the items are those of dev, then those of test.
    """
    rng = np.random.default_rng(seed)
    on_dev = [columns(dev), *(columns(rng.permutation(dev)) for _ in range(shuffles))]
    found = np.zeros((len(dev) + len(test), 2 + shuffles), dtype=np.float32)
    found[: len(dev), [0, *range(2, 2 + shuffles)]] = np.stack(on_dev, 1)
    found[len(dev) :, 1] = columns(test)
    return found


def predictivity(train, dev, labels, *, strict: bool = True) -> np.ndarray:
    """Predictivity (N,) of each unit in one trial. [eqs. 3-5, maximum over prompts]

    train, dev: activations (samples, P, N) at the prompts. labels: of dev, 0 or 1. strict: a unit and prompt whose
    activation hardly varies over `train` (std below 1e-4) scores .5; with False it counts as the paper has it.

    Raises InputError for other shapes, NaN or infinite activations, and labels of one class.
    """
    train, dev = (torch.as_tensor(np.asarray(a)) for a in (train, dev))
    if train.ndim != 3 or dev.ndim != 3 or train.shape[1:] != dev.shape[1:]:
        raise InputError(
            f"train is {tuple(train.shape)}, dev {tuple(dev.shape)}: give (samples, prompts, units), alike."
        )
    if len(dev) != len(labels):
        raise InputError(f"dev has {len(dev)} samples, labels {len(labels)}: give one label each.")
    moments = Moments()
    moments.add(train)
    if not torch.isfinite(dev).all():
        raise InputError("activations are not finite: check the model and its inputs.")
    hits = Hits(moments.mean, columns(labels)[:, None])
    hits.add(np.arange(len(dev)), dev)
    accuracy = hits.accuracy()[0].numpy()
    return either_sign(accuracy, moments.std.numpy() if strict else None).max(0)


def either_sign(accuracy, std=None) -> np.ndarray:
    """Pred = max(Acc, 1 - Acc), of the same shape. [eq. 5]

    std: (as accuracy, or its last axes) over the training items; where it is below 1e-4 Pred is .5.
    """
    pred = np.maximum(accuracy, 1 - np.asarray(accuracy))
    return pred if std is None else np.where(np.asarray(std) < NEAR_CONSTANT, 0.5, pred)


class Chosen(NamedTuple):
    """Of each unit (N,): its predictivity on dev, the prompt where it is found, and what that is worth on test."""

    predictivity: np.ndarray
    position: np.ndarray
    test: np.ndarray


def chosen(dev, test, std=None, *, variant: str = "max") -> Chosen:
    """Choose a prompt and a sign for each unit on dev, and keep to them on test. [eqs. 5, 6, appendix G]

    dev, test: Acc (P, N). std: as for `either_sign`. variant: "max" over prompts, the standard; "mean" over prompts,
    each with its own sign (the position is then the best prompt all the same); "positive": the highest Acc, so that
    a unit may only speak for class 1.
    """
    dev, test = np.asarray(dev, dtype=float), np.asarray(test, dtype=float)
    if std is not None:
        constant = np.asarray(std) < NEAR_CONSTANT
        dev, test = np.where(constant, 0.5, dev), np.where(constant, 0.5, test)
    if variant not in ("max", "mean", "positive"):
        raise InputError(f'variant is "{variant}": use "max", "mean" or "positive".')
    score = dev if variant == "positive" else np.maximum(dev, 1 - dev)
    on_test = test if variant == "positive" else np.where(dev >= 0.5, test, 1 - test)
    position, units = score.argmax(0), np.arange(dev.shape[1])
    if variant == "mean":
        return Chosen(score.mean(0), position, on_test.mean(0))
    return Chosen(score[position, units], position, on_test[position, units])


def overlap(rankings, k: int) -> float:
    """Mean share of the top k units that two trials have in common, over all pairs of rankings (trials, N) of scores.

    By chance it is k / N. nan with one trial.
    """
    tops = [set(skill_neurons(scores, k).tolist()) for scores in rankings]
    pairs = [len(a & b) / k for a, b in itertools.combinations(tops, 2)]
    return float(np.mean(pairs)) if pairs else float("nan")


def skill_neurons(scores, k: int) -> np.ndarray:
    """The k most predictive units (k,), best first; scores (N,), or (trials, N), averaged first. [eq. 6]

    Of equal scores the lower index comes first. Raises InputError for k below 1 or above N.
    """
    scores = np.asarray(scores, dtype=float)
    scores = scores.mean(0) if scores.ndim == 2 else scores
    if not 1 <= k <= len(scores):
        raise InputError(f"k is {k}: it must be from 1 to the number of units, {len(scores)}.")
    return np.argsort(-scores, kind="stable")[:k]


def merge_subtasks(scores: list, k: int) -> np.ndarray:
    """k units (k,) for a task of several subtasks, whose scores are (N,) each. [paper 3, section 3.2]

    floor(k / subtasks) of the first, then as many of the next in its own order, those that are in skipped; the last
    subtask fills up to k. Raises InputError for k below the number of subtasks or above N.
    """
    n = len(scores[0])
    if not len(scores) <= k <= n:
        raise InputError(f"k is {k}: it must be from {len(scores)}, the number of subtasks, to {n}, that of units.")
    each, taken = k // len(scores), []
    for i, of_subtask in enumerate(scores):
        upto = k if i == len(scores) - 1 else (i + 1) * each
        order = skill_neurons(of_subtask, n)
        fresh = order[~np.isin(order, taken)]
        taken += fresh[: upto - len(taken)].tolist()
    return np.array(taken)


def selectivity_index(means) -> np.ndarray:
    """(mu_max - mu_rest) / (mu_max + mu_rest) of class means (C, ...), not negative. [Morcos et al. 2018]

    mu_rest: the mean of the other classes' means. A unit that is silent in all classes has 0. Raises InputError for
    negative means: take the mean of the rectified activations.
    """
    means = np.asarray(means, dtype=float)
    if (means < 0).any():
        raise InputError("class means are negative: rectify the activations before you average them.")
    highest = means.max(0)
    rest = (means.sum(0) - highest) / (len(means) - 1)
    total = highest + rest
    return np.divide(highest - rest, total, out=np.zeros_like(total), where=total > 0)


def _check_columns(columns: torch.Tensor) -> None:
    one_class = ~((columns > 0).any(0) & (columns < 0).any(0))
    if columns.ndim != 2 or one_class.any():
        raise InputError("a label column has items of one class only: predictivity needs two.")
