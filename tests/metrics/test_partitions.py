import numpy as np
import pytest
import sklearn.metrics
from clusim import sim
from clusim.clustering import Clustering
from hypothesis import given
from hypothesis import strategies as st

from neuronkit import InputError
from neuronkit.metrics.partitions import INDICES, by_index, chance, element_similarity, pairwise


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


def test_indices_equal_scikit_learn_and_the_fixture():
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 4, (6, 64)), rng.integers(-1, 3, (6, 64))
    rows = list(zip(a, b, strict=True))
    assert by_index("nmi", a, b) == pytest.approx([sklearn.metrics.normalized_mutual_info_score(*r) for r in rows])
    assert by_index("ari", a, b) == pytest.approx([sklearn.metrics.adjusted_rand_score(*r) for r in rows])
    assert by_index("omega", a, b) == pytest.approx(by_index("ari", a, b)), "one index for clusters that do not overlap"
    assert by_index("vi", [0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 2, 2]) == pytest.approx(1.45914792)
    assert by_index("rmi", a[0], a[0]) > by_index("rmi", a[0], b[0])


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("trivial", [[0] * 6, list(range(6))], ids=["one cluster", "single units"])
def test_trivial_partitions_are_guarded(name, trivial):
    undefined = name in ("ari", "omega") or (name == "nmi" and trivial[1] == 0)
    if undefined:
        with pytest.warns(RuntimeWarning, match=rf"1 of 2 pairs .* trivial alike, where {name} is 0 / 0"):
            found = by_index(name, [trivial, trivial], [trivial, [0, 0, 0, 1, 1, 1]])
        assert np.isnan(found[0]) and np.isfinite(found[1])
    else:
        assert np.isfinite(by_index(name, trivial, trivial))


def test_every_partition_against_every_other():
    labels = np.random.default_rng(5).integers(-1, 4, (3, 2, 5, 20))
    found = pairwise(labels)
    assert found.shape == (3, 2, 5, 5)
    assert found[2, 1, 0, 4] == found[2, 1, 4, 0] == element_similarity(labels[2, 1, 0], labels[2, 1, 4])
    assert pairwise(labels, "vi")[0, 0, 1, 3] == by_index("vi", labels[0, 0, 1], labels[0, 0, 3])
    with pytest.raises(InputError, match="partitions, units"):
        pairwise([0, 1, 1])
    with pytest.raises(InputError, match="unknown index"):
        by_index("ami", [0, 1], [0, 1])


def test_chance_keeps_the_sizes_and_loses_the_relation():
    a = np.repeat(np.arange(4), 16)
    assert chance(a, np.zeros(64, int)) == element_similarity(a, np.zeros(64, int)), "one cluster stays one"
    shuffled = chance(np.tile(a, (2000, 1)), np.tile(a, (2000, 1)))
    # An overlap of two clusters of 16 is hypergeometric: mean 4, variance 16/7, so 16 * (4^2 + 16/7) / 16 / 64.
    assert shuffled.mean() == pytest.approx(2 / 7, abs=0.002) and shuffled.std() > 0
    assert np.array_equal(chance(a[None], a[None], seed=1), chance(a[None], a[None], seed=1))
