import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from neuronkit import InputError
from neuronkit.metrics.intervals import difference_interval, mean_interval


def test_few_replicates_get_students_t():
    values = [3.0, 5.0, 4.0, 6.5]
    expected = scipy.stats.ttest_1samp(values, 0).confidence_interval()
    assert mean_interval(values) == pytest.approx((np.mean(values), expected.low, expected.high))


def test_many_replicates_get_the_bootstrap_of_their_seed():
    values = np.random.default_rng(0).normal(size=200)
    expected = scipy.stats.bootstrap((values,), np.mean, method="percentile", rng=1).confidence_interval
    assert mean_interval(values)[1:] == pytest.approx((expected.low, expected.high), abs=0.01)
    assert mean_interval(values, seed=3) == mean_interval(values, seed=3) != mean_interval(values, seed=4)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40), st.floats(-100, 100))
def test_it_holds_the_mean_and_moves_with_the_values(values, by):
    mean, low, high = mean_interval(values)
    assert low - 1e-6 <= mean <= high + 1e-6
    assert mean_interval(np.add(values, by)) == pytest.approx((mean + by, low + by, high + by), abs=1e-4)


def test_one_replicate_has_no_interval():
    assert mean_interval([2.0])[0] == 2.0 and np.isnan(mean_interval([2.0])[1:]).all()


@pytest.mark.parametrize("values", [[], [1.0, np.nan], [[1.0, 2.0]], [np.inf]])
def test_bad_input(values):
    with pytest.raises(InputError, match="finite values"):
        mean_interval(values)


def test_difference_of_two_samples_by_welch():
    rng = np.random.default_rng(0)
    a, b = rng.normal(1, 1, 9), rng.normal(0, 3, 500)
    value, low, high = difference_interval(a, b)
    va, vb = a.var(ddof=1) / 9, b.var(ddof=1) / 500
    df = (va + vb) ** 2 / (va**2 / 8 + vb**2 / 499)
    half = scipy.stats.t.ppf(0.975, df) * np.sqrt(va + vb)
    assert (value, low, high) == pytest.approx((a.mean() - b.mean(), value - half, value + half))
    assert np.isnan(difference_interval(a[:1], b)[1:]).all()
    assert difference_interval([1, 1], [0, 0]) == (1, 1, 1)
    with pytest.raises(InputError, match="finite"):
        difference_interval(a, [np.nan])
