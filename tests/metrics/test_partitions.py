import numpy as np
import pytest
from clusim import sim
from clusim.clustering import Clustering
from hypothesis import given
from hypothesis import strategies as st

from neuronkit import InputError
from neuronkit.metrics.partitions import element_similarity


def by_clusim(a, b):
    pair = [Clustering().from_membership_list([int(label) for label in labels]) for labels in (a, b)]
    return sim.element_sim(*pair, alpha=0.9)


@pytest.mark.parametrize(
    ("a", "b", "value"),
    [
        ([0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 2, 2], 19 / 36),
        ([0, 0, 1, 1, -1, -1], [0, 1, 0, 1, 0, -1], 5 / 12),
        ([0] * 6, [0, 1, 2, 3, 4, 5], 1 / 6),
        ([-1, -1, -1], [7, 7, 7], 1),
    ],
)
def test_by_hand(a, b, value):
    assert element_similarity(a, b) == pytest.approx(value, abs=1e-15)


@pytest.mark.parametrize("lowest", [0, -1], ids=["all live", "with dead units"])
def test_equals_clusim(lowest):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(lowest, clusters, (20, 64)) for clusters in (4, 6))
    expected = [by_clusim(*pair) for pair in zip(a, b, strict=True)]
    assert element_similarity(a, b) == pytest.approx(expected, abs=1e-12)


def test_chance_level_of_four_clusters_in_64_units():
    rng = np.random.default_rng(0)
    found = element_similarity(rng.integers(0, 4, (5000, 64)), rng.integers(0, 4, (5000, 64)))
    assert found.shape == (5000,)
    assert found.mean() == pytest.approx(0.262, abs=0.002)
    assert np.percentile(found, [1, 99]) == pytest.approx([0.235, 0.307], abs=0.003)


pairs_of_labels = st.integers(1, 12).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(-1, 4), min_size=n, max_size=n)] * 2)
)


@given(pairs_of_labels, st.randoms(use_true_random=False))
def test_invariants(pair, random):
    a, b = map(np.array, pair)
    value = element_similarity(a, b)
    order = list(range(len(a)))
    random.shuffle(order)
    assert 0 < value <= 1 + 1e-15
    assert element_similarity(a, a) == pytest.approx(1)
    assert element_similarity(b, a) == pytest.approx(value)
    assert element_similarity(a[order], b[order]) == pytest.approx(value)
    assert element_similarity(10 - 3 * a, b) == pytest.approx(value), "ids are names"
    assert element_similarity(np.stack([a, b]), np.stack([b, b])) == pytest.approx([value, 1])


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([0, 1], [0, 1, 1], r"one shape.*\(2,\) and \(3,\)"),
        ([], [], "one shape"),
        (np.zeros((2, 2, 2), int), np.zeros((2, 2, 2), int), "one shape"),
        ([0.0, 1.0], [0, 1], "integer labels.*float64"),
    ],
)
def test_bad_input_is_refused(a, b, message):
    with pytest.raises(InputError, match=message):
        element_similarity(a, b)
