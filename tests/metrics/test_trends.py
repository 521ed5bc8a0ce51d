import numpy as np
import pytest
import scipy.stats

from neuronkit import InputError
from neuronkit.metrics.trends import interaction, rank_correlation, slope


def test_slope_is_that_of_linregress_with_gaps():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=9), rng.normal(size=(9, 4, 2))
    y[2, 1, 0] = y[8, 1, 0] = y[0, 3, 1] = np.nan
    found = slope(x, y)
    for k, layer in np.ndindex(4, 2):
        there = ~np.isnan(y[:, k, layer])
        assert found[k, layer] == pytest.approx(scipy.stats.linregress(x[there], y[there, k, layer]).slope)


def test_slope_of_one_point_is_nan():
    y = np.array([[1.0, 2.0], [np.nan, 3.0]])
    assert np.isnan(slope([0, 1], y)[0]) and slope([0, 1], y)[1] == 1
    with pytest.raises(InputError, match="their shapes"):
        slope([0, 1, 2], [1.0, 2.0])


def test_parallel_trends_give_uniform_p_and_one_that_departs_a_small_one():
    rng = np.random.default_rng(1)
    levels, trend = rng.normal(size=(5, 6, 1)), np.linspace(0, 3, 7)
    p = [interaction(levels + trend + rng.normal(size=(5, 6, 7)), draws=199, seed=s) for s in range(200)]
    assert scipy.stats.kstest(p, "uniform").pvalue > 0.01
    curves = levels + trend + 0.1 * rng.normal(size=(5, 6, 7))
    curves[:, 2] += np.linspace(0, 1, 7)
    assert interaction(curves, draws=999) == pytest.approx(1 / 1000)


def test_levels_and_units_do_not_matter_to_the_interaction():
    curves = np.random.default_rng(2).normal(size=(4, 3, 5))
    p = interaction(curves, draws=99)
    assert interaction(7 * curves + np.arange(3)[:, None], draws=99) == p
    assert interaction(curves[:1]) == 1.0


@pytest.mark.parametrize("curves", [np.zeros((3, 1, 4)), np.zeros((3, 4)), np.full((3, 4, 5), np.nan)])
def test_interaction_refuses_what_it_cannot_compare(curves):
    with pytest.raises(InputError, match="curves must be finite"):
        interaction(curves)


def test_rank_correlation_sees_order_only_and_leaves_nan_out():
    x = np.array([3.0, 1.0, 2.0, np.nan, 5.0])
    assert rank_correlation(x, np.exp(x)) == 1 and rank_correlation(x, -x) == -1
    assert np.isnan(rank_correlation([1, 2, np.nan], [1, 2, 3]))
    assert np.isnan(rank_correlation([1, 2, 3], [4, 4, 4]))
    with pytest.raises(InputError, match="alike"):
        rank_correlation([1, 2], [1, 2, 3])
