"""What changes in the units of a model while it trains (Wild and Anderson 2024, sections 3 and 4).

Shapes: R recorded steps, the first of them before training, L layers, F units.
"""

import numpy as np

from neuronkit import InputError


def half_fall(steps, values):
    """The step at which half of the fall of each column is done, from the first value to the lowest: (L,).

    steps (R,), values (R, L); between two records the values are taken as linear. nan where nothing falls.

    >>> half_fall([0, 10, 20], [[1.0, 1.0], [0.8, 0.0], [0.4, 0.2]]).round(1).tolist()
    [12.5, 5.0]
    """
    steps, values = _records(steps, values)
    half = (values[0] + values.min(0)) / 2
    first = (values <= half).argmax(0)  # 0 where the first value is the lowest
    before, after = (np.take_along_axis(values, i[None], 0)[0] for i in (np.maximum(first - 1, 0), first))
    share = np.divide(before - half, before - after, where=before > after, out=np.full(len(half), np.nan))
    return steps[np.maximum(first - 1, 0)] + share * (steps[first] - steps[np.maximum(first - 1, 0)])


def turn_off_rate(steps, used):
    """Share of all units that are used at one record and not at the next, per 1,000 steps: (R - 1,).

    steps (R,), used boolean (R, F). Between records of unequal distance units that come and go are missed unequally:
    compare evenly spaced ones.

    >>> turn_off_rate([0, 100, 200], [[True, True], [True, False], [True, False]]).tolist()
    [5.0, 0.0]
    """
    steps, used = _records(steps, used)
    if used.dtype != bool:
        raise InputError("used must be boolean, whether each unit is used at each record: compare counts with 0.")
    off = (used[:-1] & ~used[1:]).mean(1)
    return 1000 * off / np.diff(steps)


def evenly(steps, n: int = 24):
    """Indices of the records nearest to n + 1 evenly spaced steps from 0 to the last: (n + 1,), or fewer.

    >>> evenly([0, 1, 2, 4, 5, 10], 2).tolist()
    [0, 4, 5]
    """
    steps, _ = _records(steps, steps)
    return np.unique([abs(steps - s).argmin() for s in np.linspace(0, steps[-1], n + 1)])


def at_loss(loss, values, target: float):
    """values (R, ...) where the loss (R,) first comes down to the target, linear between two records: (...).

    nan where it never does. For comparing models that have learned equally much, not trained equally long.

    >>> at_loss([3.0, 2.0, 1.0], [0.0, 1.0, 2.0], 1.5).tolist()
    1.5
    """
    loss, values = _records(loss, values)
    there = loss <= target
    if not there.any():
        return np.full(values.shape[1:], np.nan)
    i = int(there.argmax())
    if i == 0:
        return values[0]
    share = (loss[i - 1] - target) / (loss[i - 1] - loss[i])
    return values[i - 1] + share * (values[i] - values[i - 1])


def _records(first, values):
    first, values = np.asarray(first, dtype=np.float64), np.asarray(values)
    if first.ndim != 1 or values.ndim < 1 or len(first) != len(values) or len(first) == 0:
        raise InputError(f"one value per record is needed: the shapes are {first.shape} and {values.shape}.")
    if not (np.isfinite(first).all() and np.isfinite(values).all()):
        raise InputError("a record is NaN or infinite: leave it out.")
    return first, values
