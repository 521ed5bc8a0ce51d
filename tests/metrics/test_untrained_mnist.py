"""One untrained network of the paper on all MNIST test images, against recorded numbers."""

import json
from pathlib import Path

import numpy as np
import pytest

from neuronkit.metrics.modularity import maximize
from neuronkit.metrics.similarity import KINDS, similarities
from neuronkit.models.mlp import initial_weights, pixels

EXPECTED = json.loads((Path(__file__).parent / "fixtures_modularity.json").read_text())["untrained"]


@pytest.fixture(scope="module")
def mnist_test():
    from neuronkit import data

    rows = data.arrays(data.load("mnist")["test"])
    return pixels(rows["image"]), rows["label"]


@pytest.fixture(scope="module")
def found(mnist_test):
    x, y = mnist_test
    return similarities(initial_weights(EXPECTED["seed"]), x, y)


def test_initial_weights():
    W1, _ = initial_weights(EXPECTED["seed"])[0]
    np.testing.assert_allclose(W1[0, :4], EXPECTED["w1_start"], atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_the_similarities(found, kind):
    for layer in (1, 2):
        assert found[layer, kind].sum() == pytest.approx(EXPECTED["abs_sum"][kind][layer - 1], rel=1e-7)


def test_dead_units(found):
    assert (np.diag(found[2, "cov"]) == 0).sum() == EXPECTED["dead_in_h2"]
    assert (np.diag(found[2, "osens"]) > 0).all(), "o-sens of the last layer does not look at activity"


def test_best_known_modularity(found):
    keys = [(layer, kind) for kind in KINDS for layer in (1, 2)]
    best = np.array([EXPECTED["best_q"][kind][layer - 1] for layer, kind in keys])
    matrices = np.stack([found[key] for key in keys])
    q, labels = maximize(matrices, method="ils")
    again = [maximize(matrices, method="ils", seed=seed)[0] for seed in (1, 2)]
    assert (q > 0.99 * best).all() and np.mean(q > 0.9999 * best) >= 0.75
    assert (np.max([q, *again], axis=0) > 0.9999 * best).all()
    assert (labels[keys.index((2, "cov"))] == -1).sum() == EXPECTED["dead_in_h2"]
    paper, _ = maximize(matrices)
    assert (paper > 0.9 * best).all() and (paper < best + 1e-5).all()
