"""How a quantity changes along a series of strengths, run by run (Lange, Rolnick and Kording 2022, section 4)."""

import numpy as np

from neuronkit import InputError


def slope(x, y):
    """Least-squares slope of y over x, along the first axis of y: x (S,), y (S, ...) -> (...).

    nan in y is left out; with fewer than two values of x left the slope is nan. Raises InputError for other shapes.

    >>> slope([0, 1, 2], [1.0, 3.0, 5.0])
    2.0
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x.ndim != 1 or y.ndim < 1 or len(x) != len(y) or not np.isfinite(x).all():
        raise InputError(f"x must be finite, (S,), and y (S, ...): their shapes are {x.shape} and {y.shape}.")
    x = np.where(np.isnan(y), np.nan, x.reshape(-1, *[1] * (y.ndim - 1)))
    n = np.maximum(np.isfinite(x).sum(0), 1)
    x = x - np.nansum(x, 0) / n
    spread = np.nansum(x * x, 0)
    found = np.where(spread > 0, np.nansum(x * y, 0) / np.where(spread > 0, spread, 1), np.nan)
    return float(found) if y.ndim == 1 else found


def rank_correlation(x, y) -> float:
    """Spearman's rank correlation of x and y (S,), pairs with nan left out; nan with fewer than three pairs.

    >>> rank_correlation([1, 2, 3, 4], [10.0, float("nan"), 20.0, 40.0])
    1.0
    """
    import scipy.stats  # seconds to import: only where it is used

    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise InputError(f"x and y must be (S,) alike: their shapes are {x.shape} and {y.shape}.")
    there = np.isfinite(x) & np.isfinite(y)
    if there.sum() < 3 or np.ptp(x[there]) == 0 or np.ptp(y[there]) == 0:
        return np.nan
    return float(scipy.stats.spearmanr(x[there], y[there]).statistic)


def interaction(curves, *, draws=4999, seed=0) -> float:
    """p-value of a permutation test of "all measures follow one trend" (section 4, hypothesis 4).

    curves (R, K, S): a value per run, measure and strength. Each curve's own level is taken off first. If all measures
    shared one trend, their curves could be exchanged within a run: the statistic is the sum of squares, over
    measures and strengths, of the mean curve of a measure minus that of all, and its distribution comes from `draws`
    exchanges. The smallest p is 1 / (draws + 1). Raises InputError for nan or fewer than two measures or strengths.
    """
    import scipy.stats  # seconds to import: only where it is used

    curves = np.asarray(curves, dtype=np.float64)
    if curves.ndim != 3 or min(curves.shape[1:]) < 2 or not np.isfinite(curves).all():
        raise InputError(
            f"curves must be finite, (runs, two or more measures, two or more strengths): they are {curves.shape}."
        )
    curves = curves - curves.mean(2, keepdims=True)
    curves = curves - curves.mean(1, keepdims=True)
    runs, measures, _ = curves.shape
    if runs == 1:
        return 1.0  # every exchange within the one run gives the same statistic
    rows = curves.reshape(runs * measures, -1)

    def statistic(*samples, axis=-1):
        # (..., R) numbers of curves per measure
        means = [rows[sample.astype(int)].mean(-2) for sample in samples]
        return sum((mean**2).sum(-1) for mean in means)

    numbers = [np.arange(runs) * measures + measure for measure in range(measures)]
    test = scipy.stats.permutation_test(
        numbers,
        statistic,
        permutation_type="samples",
        vectorized=True,
        n_resamples=draws,
        batch=500,
        alternative="greater",
        rng=np.random.default_rng(seed),
    )
    return float(test.pvalue)
