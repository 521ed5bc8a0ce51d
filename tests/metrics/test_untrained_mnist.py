"""One untrained network of the paper on all MNIST test images, against recorded numbers."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from neuronkit.metrics.modularity import maximize
from neuronkit.metrics.similarity import KINDS, similarities

EXPECTED = json.loads((Path(__file__).parent / "fixtures_modularity.json").read_text())["untrained"]


def initial_weights(seed, sizes=(784, 64, 64, 10)):
    """PyTorch's default initialisation of the linear layers, from one seed."""
    g = torch.Generator().manual_seed(seed)
    layers = []
    for inputs, outputs in itertools.pairwise(sizes):
        W = nn.init.kaiming_uniform_(torch.empty(outputs, inputs), a=math.sqrt(5), generator=g)
        bound = 1 / math.sqrt(inputs)
        layers.append((W, torch.empty(outputs).uniform_(-bound, bound, generator=g)))
    return layers


@pytest.fixture(scope="module")
def mnist_test():
    from neuronkit import data

    rows = data.load("mnist")["test"].with_format("numpy", dtype=np.uint8)[:]
    images, labels = rows["image"], rows["label"]
    return images.reshape(len(images), -1).astype(np.float32) / np.float32(255), labels.astype(np.int64)


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
    assert (q > 0.999 * best).all()
    assert (labels[keys.index((2, "cov"))] == -1).sum() == EXPECTED["dead_in_h2"]
    paper, _ = maximize(matrices)
    assert (paper > 0.9 * best).all() and (paper < best + 1e-5).all()
