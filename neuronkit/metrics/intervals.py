"""Means with 95 % intervals over replicates (runs, seeds, trials)."""

import numpy as np
import scipy.special

from neuronkit import InputError


def mean_interval(values, *, seed: int = 0) -> tuple[float, float, float]:
    """(mean, low, high): the mean of n replicates and its 95 % interval.

    Student's t below 20 replicates, where a bootstrap covers too little (74 % with 3, 87 % with 9); from 20 up the
    percentile bootstrap with 10,000 draws from `seed`. With one replicate the interval is nan.
    Raises InputError for no value or one that is not finite.

    >>> [round(v, 3) for v in mean_interval([1.0, 2.0, 3.0])]
    [2.0, -0.484, 4.484]
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0 or not np.isfinite(values).all():
        raise InputError("an interval needs one-dimensional finite values: leave out what could not be computed.")
    mean, n = values.mean(), len(values)
    if n == 1:
        return float(mean), np.nan, np.nan
    if n < 20:
        half = scipy.special.stdtrit(n - 1, 0.975) * values.std(ddof=1) / np.sqrt(n)
        return float(mean), float(mean - half), float(mean + half)
    draws = np.random.default_rng(seed).integers(n, size=(10_000, n))
    low, high = np.percentile(values[draws].mean(1), [2.5, 97.5])
    return float(mean), float(low), float(high)


def difference_interval(a, b) -> tuple[float, float, float]:
    """(difference, low, high): mean of a minus mean of b, two independent samples, and its 95 % interval (Welch).

    nan where one has fewer than two values. Raises InputError like `mean_interval`.

    >>> [round(v, 3) for v in difference_interval([1.0, 2.0, 3.0], [0.0, 1.0, 2.0])]
    [1.0, -1.267, 3.267]
    """
    import scipy.stats  # seconds to import: only where it is used

    a, b = (np.asarray(values, dtype=np.float64) for values in (a, b))
    difference = mean_interval(a)[0] - mean_interval(b)[0]
    if min(len(a), len(b)) < 2:
        return difference, np.nan, np.nan
    if a.std() == b.std() == 0:
        return difference, difference, difference
    low, high = scipy.stats.ttest_ind(a, b, equal_var=False).confidence_interval()
    return difference, float(low), float(high)


def mean_and_sem(values, axis=0):
    """(mean, standard error of the mean) over one or more axes, nan left out; nan where too few values are left.

    >>> [v.tolist() for v in mean_and_sem([[1.0, 2.0], [3.0, float("nan")]])]
    [[2.0, 2.0], [1.0, nan]]
    """
    values = np.asarray(values, dtype=np.float64)
    n = np.isfinite(values).sum(axis, keepdims=True)
    mean = np.divide(np.nansum(values, axis, keepdims=True), n, where=n > 0, out=np.full(n.shape, np.nan))
    squares = np.nansum((values - mean) ** 2, axis, keepdims=True)
    sem = np.sqrt(np.divide(squares, n * (n - 1), where=n > 1, out=np.full(n.shape, np.nan)))
    return mean.squeeze(axis), sem.squeeze(axis)
