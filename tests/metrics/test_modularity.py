import doctest
import json
import math
from pathlib import Path

import igraph
import networkx as nx
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from neuronkit import InputError
from neuronkit.metrics import modularity as module
from neuronkit.metrics import partition_search
from neuronkit.metrics.modularity import contrast, maximize, modularity, monte_carlo, number_of_clusters, spectral

TOY = json.loads((Path(__file__).parent / "fixtures_modularity.json").read_text())["toy"]
METHODS = ("paper", "ils")


def random_matrix(n, seed, *, dead=0):
    """Symmetric, a few strong entries among weak ones, the last `dead` units without any similarity."""
    A = np.random.default_rng(seed).random((n, n)) ** 3
    A = A + A.T
    if dead:
        A[-dead:] = A[:, -dead:] = 0
    np.fill_diagonal(A, 0)
    return A


def cliques(count, size):
    return np.kron(np.eye(count), np.ones((size, size))) - np.eye(count * size)


def every_partition(n):
    """Restricted growth strings: each set partition of n units once."""
    strings = [[0]]
    for _ in range(n - 1):
        strings = [[*head, label] for head in strings for label in range(max(head) + 2)]
    return np.array(strings)


def by_brute_force(A):
    """The largest Q over every partition, from the definition with explicit sums."""
    scaled = A / A.sum()
    B = scaled - np.outer(scaled.sum(1), scaled.sum(1))
    labels = every_partition(len(A))
    together = labels[:, :, None] == labels[:, None, :]
    return (together * B).sum((1, 2)).max()


def same_partition(a, b):
    return np.array_equal(np.equal.outer(a, a), np.equal.outer(b, b))


def test_examples_in_the_docstrings():
    assert doctest.testmod(module).failed == 0


def test_toy_graph_with_a_dead_unit():
    A = np.array(TOY["A"])
    assert by_brute_force(A) == pytest.approx(TOY["q"], abs=1e-15)
    assert modularity(A, TOY["labels"]) == pytest.approx(TOY["q"], abs=1e-15)
    assert modularity(A, [0, 0, 1, 1, 1, -1]) == pytest.approx(-0.05960708, abs=1e-8)
    assert modularity(A, np.full((6, 2), 0.5)) == pytest.approx(0, abs=1e-15)
    assert number_of_clusters(TOY["labels"]) == pytest.approx(TOY["clusters"], abs=1e-15)
    for method in METHODS:
        q, labels = maximize(A, method=method)
        assert q == pytest.approx(TOY["q"], abs=1e-15)
        assert labels.tolist() == TOY["labels"]


@pytest.mark.parametrize("method", METHODS)
def test_graphs_with_a_known_optimum(method):
    q, labels = maximize(np.ones((8, 8)), method=method)
    assert q == pytest.approx(0, abs=1e-15)
    assert labels.tolist() == [0] * 8
    q, labels = maximize(cliques(3, 4), method=method)
    assert q == pytest.approx(2 / 3)
    assert labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4


@pytest.mark.parametrize("seed", range(5))
def test_equals_networkx_and_igraph(seed):
    A = random_matrix(20, seed)
    labels = np.random.default_rng(seed).integers(0, 4, 20)
    groups = [set(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)]
    upper = np.triu_indices(20, 1)
    graph = igraph.Graph(n=20, edges=list(zip(*upper, strict=True)))
    q = modularity(A, labels)
    assert q == pytest.approx(nx.community.modularity(nx.from_numpy_array(A), groups), abs=1e-12)
    assert q == pytest.approx(graph.modularity(labels.tolist(), weights=A[upper].tolist()), abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [2, 3, 6, 7, 8])
def test_finds_the_optimum_of_small_graphs(n, method):
    matrices = np.stack([random_matrix(n, seed, dead=seed % 2 if n > 3 else 0) for seed in range(6)])
    q, labels = maximize(matrices, method=method)
    again = [modularity(A, found) for A, found in zip(matrices, labels, strict=True)]
    assert q == pytest.approx([by_brute_force(A) for A in matrices], abs=1e-12)
    assert q == pytest.approx(again, abs=1e-12)


def test_iterated_search_beats_the_paper_s_method():
    """On noise, the hardest case: no partition stands out, and neither search finds the best every time."""
    matrices = np.stack([random_matrix(40, seed) for seed in range(12)])
    paper, ils = (maximize(matrices, method=method)[0] for method in METHODS)
    assert (ils > 0.98 * paper).all()
    assert ils.mean() > 1.005 * paper.mean()


def test_more_search_never_lowers_q():
    A = random_matrix(40, 0)
    start = spectral(A)
    found = [monte_carlo(A, start, steps=steps)[0] for steps in (0, 100, 5000)]
    assert found[0] == pytest.approx(modularity(A, start), abs=1e-14)
    assert found == sorted(found)
    assert maximize(A, steps=100)[0] == found[1]


@pytest.mark.parametrize("start", [np.zeros(40, int), np.arange(40)], ids=["one cluster", "single units"])
def test_monte_carlo_climbs_from_trivial_starts(start):
    A = random_matrix(40, 1, dead=3)
    q, labels = monte_carlo(A, start)
    assert q > 0.8 * maximize(A, method="ils")[0]
    assert (labels[-3:] == -1).all()


def test_spectral_variants():
    """Both part two cliques; the first singular vector may have a negative eigenvalue."""
    A = cliques(2, 8) + 0.01 * (1 - np.eye(16))
    for variant in ("paper", "newman2006"):
        assert same_partition(spectral(A, variant=variant), np.repeat(range(2), 8))
    star = np.zeros((5, 5))
    star[0, 1:] = star[1:, 0] = 1
    assert spectral(star).tolist() == [0] * 5, "the leading singular vector separates the hub: Q would fall"
    batch = np.stack([A, random_matrix(16, 0, dead=2)])
    for variant in ("paper", "newman2006"):
        alone = [spectral(matrix, variant=variant) for matrix in batch]
        assert np.array_equal(spectral(batch, variant=variant), alone)
        assert all(modularity(matrix, found) >= -1e-15 for matrix, found in zip(batch, alone, strict=True))


def test_temperature_gives_the_wanted_entropy():
    weights = np.empty(4)
    t, total = partition_search.temper(np.array([0.10, 0.09, 0.05, 0.0]), weights)
    assert math.exp(t) == pytest.approx(0.0030, abs=2e-4)
    rng = np.random.default_rng(0)
    for scores in (rng.normal(size=(200, 4)) * 10.0 ** rng.integers(-2, 3, (200, 1))).tolist():
        _, total = partition_search.temper(np.array(scores), weights)
        p = weights / total
        assert scipy.stats.entropy(p) == pytest.approx(0.15, abs=0.01)
    t, _ = partition_search.temper(np.array([0.1, 0.1, 0.0, 0.0]), weights)
    assert math.exp(t) == pytest.approx(1e-6, rel=1e-3), "a tie at the top: as cold as allowed"


def test_soft_labels_extend_hard_ones():
    A = random_matrix(9, 0)
    labels = np.arange(9) % 3
    assert modularity(A, np.eye(3)[labels]) == pytest.approx(modularity(A, labels), abs=1e-15)
    P = np.random.default_rng(0).dirichlet(np.ones(4), 9)
    scaled = A / A.sum()
    by_loops = sum(
        (scaled[i, j] - scaled[i].sum() * scaled[j].sum()) * (P[i] @ P[j]) for i in range(9) for j in range(9)
    )
    assert modularity(A, P) == pytest.approx(by_loops, abs=1e-15)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 9), st.integers(0, 10**6), st.integers(0, 2), st.floats(1e-3, 1e3))
def test_invariants(n, seed, dead, scale):
    A = random_matrix(n, seed, dead=min(dead, n - 2))
    rng = np.random.default_rng(seed)
    labels, order = rng.integers(-1, 3, n), rng.permutation(n)
    q = modularity(A, labels)
    assert modularity(A[np.ix_(order, order)], labels[order]) == pytest.approx(q, abs=1e-14)
    assert modularity(scale * A, labels) == pytest.approx(q, abs=1e-14)
    assert modularity(A + np.diag(rng.normal(size=n)), labels) == q, "the diagonal is left out"
    assert modularity(A, np.zeros(n, int)) == pytest.approx(0, abs=1e-14)
    best, found = maximize(A, method="ils")
    permuted, _ = maximize(scale * A[np.ix_(order, order)], method="ils", seed=seed)
    assert best == pytest.approx(permuted, abs=1e-12)
    assert max(0, q) - 1e-12 <= best < 1
    live = A.sum(1) > 0
    assert (found[~live] == -1).all() and (found[live] >= 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_matrix_has_one_result_alone_and_in_any_batch(method):
    matrices = np.stack([random_matrix(24, seed) for seed in range(4)])
    q, labels = maximize(matrices, method=method, seed=3)
    reverse, _ = maximize(matrices[::-1], method=method, seed=3)
    assert np.array_equal(q, reverse[::-1])
    for A, value, found in zip(matrices, q, labels, strict=True):
        alone = maximize(A, method=method, seed=3)
        assert alone[0] == value
        assert np.array_equal(alone[1], found)
    others = [maximize(matrices, seed=seed, steps=50)[0] for seed in range(3)]
    assert len({values.tobytes() for values in others}) > 1, "the seed is used"


def test_number_of_clusters():
    assert number_of_clusters([5, 5, 9, 9, 2, 2]) == pytest.approx(3)
    assert number_of_clusters([0, 0, 0]) == 1
    assert number_of_clusters([-1, -1]) == 1, "no entropy"
    half = -0.75 * math.log(0.75) - 0.25 * math.log(0.25)
    assert number_of_clusters([0, 0, 0, 1]) == pytest.approx(math.exp(half))


def test_contrast_of_pairs_within_and_between():
    rng = np.random.default_rng(0)
    A = rng.random((4, 10, 10))
    A = A + A.transpose(0, 2, 1)
    labels = rng.integers(-1, 3, (4, 10))
    within, between = contrast(A, labels)
    for m in range(4):
        pairs = [(i, j) for i in range(10) for j in range(10) if i != j]
        every = np.mean([A[m, i, j] for i, j in pairs])
        live = [(i, j) for i, j in pairs if min(labels[m, i], labels[m, j]) >= 0]
        same = [A[m, i, j] for i, j in live if labels[m, i] == labels[m, j]]
        apart = [A[m, i, j] for i, j in live if labels[m, i] != labels[m, j]]
        assert within[m] == pytest.approx(np.mean(same) / every)
        assert between[m] == pytest.approx(np.mean(apart) / every)
    assert contrast(A[0], labels[0]) == (within[0], between[0])
    assert np.isnan(contrast(A[0], np.zeros(10, int))[1]), "one cluster has no pair between clusters"
    with pytest.warns(RuntimeWarning, match="all zeros"):
        assert np.isnan(contrast(np.zeros((3, 3)), [0, 0, 1])).all()
    with pytest.raises(InputError, match="labels must be integers"):
        contrast(A, labels[0])


def test_zeros_have_no_modularity():
    A = np.stack([np.zeros((5, 5)), random_matrix(5, 0), 1e-20 * random_matrix(5, 1)])
    for method in METHODS:
        with pytest.warns(RuntimeWarning, match="2 of 3 matrices are all zeros"):
            q, labels = maximize(A, method=method)
        assert np.isnan(q).tolist() == [True, False, True]
        assert (labels[[0, 2]] == -1).all()
    with pytest.warns(RuntimeWarning, match="all zeros"):
        q, labels = maximize(A[0])
    assert math.isnan(q) and labels.tolist() == [-1] * 5
    with pytest.warns(RuntimeWarning, match="all zeros"):
        assert math.isnan(modularity(A[0], [0] * 5))
    with pytest.warns(RuntimeWarning, match="all zeros"):
        assert spectral(A[0]).tolist() == [-1] * 5


def test_nothing_in_nothing_out():
    q, labels = maximize(np.empty((0, 4, 4)))
    assert q.shape == (0,) and labels.shape == (0, 4)


GOOD = random_matrix(4, 0)
LABELS = [0, 0, 1, 1]


def changed(row, column, value):
    A = GOOD.copy()
    A[row, column] = value
    return A


@pytest.mark.parametrize(
    ("A", "message"),
    [
        (changed(0, 1, -1), "negative entries: pass similarities"),
        (changed(0, 1, 9), "not symmetric: pass"),
        (changed(0, 1, np.nan), "NaN or infinite"),
        (changed(2, 2, np.nan), "NaN or infinite"),
        (changed(0, 1, np.inf), "NaN or infinite"),
        (GOOD[:1, :1], "1 unit: modularity needs two"),
        (GOOD[:3], r"square.*\(3, 4\)"),
        ([["a", "b"], ["c", "d"]], "array of numbers"),
    ],
)
def test_bad_matrices_are_refused(A, message):
    labels = LABELS[: len(A)]
    for call in (maximize, spectral, lambda A: modularity(A, labels)):
        with pytest.raises(InputError, match=message):
            call(A)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 0, 1], r"one entry or row for each of the 4 units.*\(3,\)"),
        ([0.0, 0.0, 1.0, 1.0], "integers from 0"),
        ([0, 0, 1, -2], "integers from 0, or -1"),
        (np.full((4, 2), 0.6), "sum to 1: divide each row"),
        (np.full((4, 2), np.nan), "sum to 1"),
        (np.tile([1.5, -0.5], (4, 1)), "0 or more"),
    ],
)
def test_bad_labels_are_refused(labels, message):
    with pytest.raises(InputError, match=message):
        modularity(GOOD, labels)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: modularity(np.stack([GOOD, GOOD]), LABELS), "one .n, n. matrix here"),
        (lambda: maximize(GOOD[0]), "square"),
        (lambda: maximize(GOOD, method="louvain"), "'paper' or 'ils', not 'louvain'"),
        (lambda: maximize(GOOD, steps=-1), "steps must be 0 or more"),
        (lambda: spectral(GOOD, variant="new"), "'paper' or 'newman2006', not 'new'"),
        (lambda: monte_carlo(GOOD, [0, 0, 1]), r"integers of shape \(4,\)"),
        (lambda: monte_carlo(GOOD, [0.0, 0.0, 1.0, 1.0]), "integers of shape.*float64"),
        (lambda: monte_carlo(GOOD, [0, 0, 1, -1]), "every live unit: give each a cluster"),
        (lambda: monte_carlo(GOOD, LABELS, steps=-1), "steps must be 0 or more"),
        (lambda: number_of_clusters([]), r"must be \(n,\)"),
        (lambda: number_of_clusters([0.5, 1]), "integers"),
    ],
)
def test_bad_calls_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
