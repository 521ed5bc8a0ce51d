import numpy as np
import pytest

from neuronkit import InputError
from neuronkit.metrics import modularity
from neuronkit.metrics.similarity import similarities
from neuronkit.models import mlp, units


@pytest.fixture(scope="module")
def shown():
    rng = np.random.default_rng(0)
    return rng.random((80, 36), dtype=np.float32), rng.integers(0, 10, 80)


@pytest.fixture(scope="module")
def networks(shown):
    return mlp.untrained(*shown, n=3, seed=5)[0]


@pytest.fixture(scope="module")
def found(networks, shown):
    return units.similarity(networks, *shown)


def test_each_network_has_its_own_similarities(networks, shown, found):
    assert found["S"].shape == (3, 2, 8, 64, 64)
    alone = similarities([(layer["W"][1], layer["b"][1]) for layer in networks["weights"]], *shown)
    for k, kind in enumerate(units.MEASURES):
        assert np.array_equal(found["S"][1, 0, k], alone[1, kind])
        assert np.array_equal(found["S"][1, 1, k], alone[2, kind])


def test_partitions_are_those_of_single_matrices(found):
    made = units.partition(found, steps=200, seed=3)
    q, labels = modularity.maximize(found["S"][2, 1, 4], steps=200, seed=3)
    assert made["q"][2, 1, 4] == q and np.array_equal(made["labels"][2, 1, 4], labels)
    assert made["clusters"][2, 1, 4] == modularity.number_of_clusters(labels)


def test_a_matrix_of_zeros_is_nan_without_a_warning(found, recwarn):
    S = found["S"].copy()
    S[0, 0, 0] = 0
    made = units.partition({"S": S}, steps=10)
    assert np.isnan(made["q"][0, 0, 0]) and np.isnan(made["clusters"][0, 0, 0])
    assert (made["labels"][0, 0, 0] == -1).all() and not recwarn.list


def test_searches_are_ordered_as_they_should_be(found):
    made = units.searches(found["S"][:1, :, :2], steps=2000)
    assert set(made["q"]) == set(made["seconds"]) and all(s > 0 for s in made["seconds"].values())
    assert (made["q"]["both"] >= made["q"]["spectral"] - 1e-12).all()
    assert made["q"]["ils"].mean() >= made["q"]["both"].mean() - 1e-12


def test_no_network_left_is_one_sentence(found):
    with pytest.raises(InputError, match="no network is left"):
        units.partition({"S": found["S"][:0]})
