import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from neuronkit import InputError
from neuronkit.metrics.similarity import KINDS, from_module, similarities

TINY = json.loads((Path(__file__).parent / "fixtures_modularity.json").read_text())["tiny_mlp"]
ALL = (*KINDS, *(f"{kind}_norm" for kind in KINDS))


def random_layers(sizes, seed=0, dtype=torch.float64):
    g = torch.Generator().manual_seed(seed)
    pairs = itertools.pairwise(sizes)
    return [(torch.randn(o, i, generator=g, dtype=dtype), torch.randn(o, generator=g, dtype=dtype)) for i, o in pairs]


def random_data(samples, inputs, classes, dtype=torch.float64):
    g = torch.Generator().manual_seed(1)
    x = torch.randn(samples, inputs, generator=g, dtype=dtype)
    return x, torch.randint(classes, (samples,), generator=g)


def as_module(layers, *, inplace=False):
    """Sequential; the ReLUs are submodules "1" and "4", each before a dropout ("2", "5")."""
    parts = []
    for W, b in layers:
        linear = nn.Linear(W.shape[1], W.shape[0], dtype=W.dtype)
        linear.weight.data, linear.bias.data = W.clone(), b.clone()
        parts += [linear, nn.ReLU(inplace=inplace), nn.Dropout(0.5)]
    return nn.Sequential(*parts[:-2])


def by_loops(module, depth, x, y):
    """The four definitions, one sample and one backward pass at a time."""
    head, tail = module[:depth], module[depth:]
    h, JJ, GG, H = [], 0, 0, 0
    for sample, label in zip(x, y, strict=True):
        h.append(head(sample).detach())
        J = torch.autograd.functional.jacobian(head, sample)
        G = torch.autograd.functional.jacobian(tail, h[-1])
        JJ, GG = JJ + J @ J.T, GG + G.T @ G

        def loss(h, label=label):
            return cross_entropy(tail(h), label)

        H = H + torch.autograd.functional.hessian(loss, h[-1])
    cov = torch.cov(torch.stack(h).T, correction=0)
    return {
        "cov": cov.abs(),
        "isens": JJ.abs() / len(x),
        "hess": H.abs() / len(x),
        "osens": GG.abs() / len(x),
    }


@pytest.mark.parametrize("layer", [1, 2])
def test_tiny_network_of_the_fixtures(layer):
    layers = [(np.array(TINY[f"W{i}"], float), np.array(TINY[f"b{i}"], float)) for i in (1, 2, 3)]
    found = similarities(layers, np.array(TINY["X"]), np.array(TINY["y"]))
    for kind, expected in TINY["abs"].items():
        np.testing.assert_allclose(found[layer, kind], np.abs(expected[layer - 1]), atol=1e-8)


@pytest.mark.parametrize("sizes", [(7, 6, 5, 4), (3, 8, 5, 3), (7, 6, 4)], ids=["two", "narrow input", "one"])
def test_closed_form_equals_automatic_differentiation(sizes):
    layers = random_layers(sizes)
    x, y = random_data(230, sizes[0], sizes[-1])
    found = similarities(layers, x, y)
    depths = range(1, len(sizes) - 1)
    assert set(found) == {(depth, kind) for depth in depths for kind in ALL}
    for depth in depths:
        expected = from_module(as_module(layers), x, y, str(3 * depth - 1))
        for kind in ALL:
            assert found[depth, kind].dtype == np.float64
            np.testing.assert_allclose(found[depth, kind], expected[kind], rtol=1e-10, atol=1e-12, err_msg=kind)


def test_general_route_equals_one_backward_pass_per_sample():
    """Three hidden layers and a smooth activation: no closed form."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 4), nn.ReLU())
    module = module.append(nn.Linear(4, 3)).double()
    x, y = random_data(70, 5, 3)
    for layer in ("1", "3", "5"):
        found = from_module(module, x, y, layer)
        for kind, expected in by_loops(module, int(layer) + 1, x, y).items():
            np.testing.assert_allclose(found[kind], expected.detach(), rtol=1e-9, atol=1e-12, err_msg=kind)


def test_general_route_takes_images_and_convolutions():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3))
    x, y = torch.randn(5, 1, 4, 4), torch.tensor([0, 1, 2, 0, 1])
    found = from_module(module, x, y, "2")
    W = module[4].weight.detach()
    assert found["isens_norm"].shape == (8, 8)
    np.testing.assert_allclose(found["osens"], (W.T @ W).abs().numpy(), rtol=1e-6)


def test_general_route_follows_every_path_out_of_a_unit_and_only_those():
    class Skip(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.act, self.second = nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)

        def forward(self, x):
            h = self.act(self.first(x))
            return x + h + self.second(h)

    module = Skip()
    found = from_module(module, *random_data(9, 4, 4, torch.float32), "act")
    G = (torch.eye(4) + module.second.weight).detach()
    np.testing.assert_allclose(found["osens"], (G.T @ G).abs(), rtol=1e-5)


def test_general_route_evaluates_and_leaves_the_module_as_it_was():
    layers = random_layers((4, 5, 3))
    x, y = random_data(20, 4, 3)
    module = as_module(layers, inplace=True)
    module[1].eval()
    modes = [part.training for part in module.modules()]
    found = from_module(module, x, y, "0")  # the ReLU in place must not reach what "0" put out
    assert [part.training for part in module.modules()] == modes
    assert not any(part._forward_hooks for part in module.modules())
    W, _ = layers[0]
    np.testing.assert_allclose(found["isens"], (W @ W.T).abs())
    np.testing.assert_allclose(found["cov"], np.abs(np.cov((x @ W.T).T, bias=True)), rtol=1e-9, atol=1e-12)


def test_single_precision_agrees_with_double():
    layers = random_layers((30, 12, 10, 5))
    x, y = random_data(1000, 30, 5)
    exact = similarities(layers, x, y)
    found = similarities([(W.float().numpy(), b.float().numpy()) for W, b in layers], x.float().numpy(), y.numpy())
    for key, S in exact.items():
        np.testing.assert_allclose(found[key], S, rtol=1e-5, atol=1e-5 * S.max(), err_msg=str(key))


def test_covariance_keeps_its_digits_far_from_zero():
    """h near 10,000 with a spread near 1: the means of squares differ from the tenth digit on only."""
    layers = random_layers((6, 5, 3), dtype=torch.float32)
    layers[0] = (layers[0][0], layers[0][1] + 1e4)
    x, y = random_data(500, 6, 3, torch.float32)
    h = (x @ layers[0][0].T + layers[0][1]).double().numpy()
    np.testing.assert_allclose(
        similarities(layers, x, y)[1, "cov"], np.abs(np.cov(h.T, bias=True)), rtol=1e-3, atol=1e-3
    )


def test_a_saturated_softmax_keeps_its_curvature():
    """Logits some 30 apart: 1 - p is under the resolution of single precision, p (1 - p) is not."""
    layers = random_layers((4, 5, 5, 3), dtype=torch.float32)
    layers[2] = (layers[2][0], torch.tensor([60.0, 0.0, 0.0]))
    x, y = random_data(100, 4, 3, torch.float32)
    x *= 0.1
    found, exact = similarities(layers, x, y), similarities(layers, x.double(), y)
    for depth in (1, 2):
        S = exact[depth, "hess"]
        assert S.max() > 0
        np.testing.assert_allclose(found[depth, "hess"], S, rtol=1e-3, atol=1e-3 * S.max())


def test_dead_and_constant_units():
    (W1, b1), (W2, b2), last = random_layers((6, 5, 4, 3))
    b1[0] = -100  # never on: no covariance, no way in, no way out
    W1[1], b1[1] = 0, 2  # always the same value: no covariance, no way in, but a way out
    x, y = random_data(150, 6, 3)
    found = similarities([(W1, b1), (W2, b2), last], x, y)
    reference = from_module(as_module([(W1, b1), (W2, b2), last]), x, y, "1")
    for kind in ALL:
        assert np.isfinite(found[1, kind]).all()
        np.testing.assert_allclose(found[1, kind], reference[kind], rtol=1e-9, atol=1e-12, err_msg=kind)
    for kind in ("cov", "cov_norm", "isens", "isens_norm"):
        assert not found[1, kind][:2].any(), kind
    assert found[1, "osens"][1, 1] > 0


def test_normalised_forms_are_cosines():
    found = similarities(random_layers((6, 5, 4, 3)), *random_data(150, 6, 3))
    for (depth, kind), S in found.items():
        assert np.array_equal(S, S.T) and (S >= 0).all()
        if kind.endswith("_norm"):
            s = np.sqrt(np.diag(found[depth, kind.removesuffix("_norm")]))
            np.testing.assert_allclose(S * np.outer(s, s), found[depth, kind.removesuffix("_norm")], rtol=1e-12)
            assert S.max() <= 1 + 1e-9, "all four are Gram matrices here (Cauchy-Schwarz)"


def test_units_and_samples_may_come_in_any_order():
    (W1, b1), (W2, b2), last = layers = random_layers((6, 5, 4, 3))
    x, y = random_data(150, 6, 3)
    units, samples = (
        torch.tensor([3, 0, 4, 1, 2]),
        torch.randperm(150, generator=torch.Generator().manual_seed(0)),
    )
    found = similarities([(W1[units], b1[units]), (W2[:, units], b2), last], x[samples], y[samples])
    for (depth, kind), S in similarities(layers, x, y).items():
        expected = S[np.ix_(units, units)] if depth == 1 else S
        np.testing.assert_allclose(found[depth, kind], expected, rtol=1e-9, atol=1e-12)


def test_the_package_stays_light():
    code = "import sys, neuronkit, neuronkit.metrics; sys.exit('torch' in sys.modules or 'numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


LAYERS = random_layers((6, 5, 4, 3))
X, Y = random_data(10, 6, 3)


@pytest.mark.parametrize(
    ("weights", "x", "y", "message"),
    [
        (LAYERS, X[0], Y, r"x must be \(N, D\)"),
        (LAYERS, (X * 9).int(), Y, "x must be floats: divide pixels by 255"),
        (LAYERS, X / 0, Y, "x has NaN or infinite"),
        (LAYERS, X[:0], Y[:0], "x is empty"),
        (LAYERS[:1], X, Y, "two or three .* use from_module"),
        (LAYERS[1:], X, Y, r"Pair 1 of weights must be W \(out, 6\)"),
        ([LAYERS[0], (LAYERS[1][0], LAYERS[1][1][:2]), LAYERS[2]], X, Y, "Pair 2 of weights"),
        ([LAYERS[0], LAYERS[1], (LAYERS[2][0].T, LAYERS[2][1])], X, Y, "Pair 3 of weights"),
        ([LAYERS[0], (LAYERS[1][0] * np.nan, LAYERS[1][1]), LAYERS[2]], X, Y, "a weight matrix has NaN"),
        (LAYERS, X, Y[:5], "y must be 10 integer labels"),
        (LAYERS, X, Y.double(), "y must be 10 integer labels"),
        (LAYERS, X, Y + 3, "y has a label over 2: the network has 3 logits"),
        (LAYERS, X, Y - 3, "y has a negative label"),
    ],
)
def test_bad_input_is_refused(weights, x, y, message):
    with pytest.raises(InputError, match=message):
        similarities(weights, x, y)


def test_bad_modules_are_refused():
    class Pair(nn.Module):
        def forward(self, x):
            return x[:, :3], x[:, 3:]

    class Tangled(nn.Module):
        def __init__(self):
            super().__init__()
            self.act, self.unused, self.pair = nn.ReLU(), nn.ReLU(), Pair()

        def forward(self, x):
            return self.act(self.act(self.pair(x)[0]))

    module = Tangled()
    for layer, message in [
        ("relu", "no submodule 'relu': choose one of act, unused, pair"),
        ("", "no submodule ''"),
        ("act", "'act' runs 2 times in a pass"),
        ("unused", "'unused' runs 0 times in a pass"),
        ("pair", "'pair' must output one tensor"),
    ]:
        with pytest.raises(InputError, match=message):
            from_module(module, X, Y, layer)
    with pytest.raises(InputError, match="y has a label over 2"):
        from_module(as_module(LAYERS), X, Y + 3, "1")
    with pytest.raises(InputError, match="one row per sample"):
        from_module(as_module(LAYERS), X[0], Y[:6], "1")
