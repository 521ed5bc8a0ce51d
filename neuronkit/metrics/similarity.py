"""How similar are two hidden units? Eight answers (Lange, Rolnick and Kording 2022, section 2).

With h the activations of a hidden layer, x the input, J = dh/dx, G = dlogits/dh, means over the data first
and the absolute value last::

    cov    S = |E[h h'] - E[h] E[h]'|     isens  S = |E[J J']|      upstream: what drives the units
    hess   S = |E[d2 CE / dh dh']|        osens  S = |E[G' G]|      downstream: what they are used for
    *_norm S_ij / (s_i s_j), s = sqrt(S_ii), at least 1e-12

`similarities` has them in closed form for ReLU networks with one or two hidden layers; `from_module` has them
by automatic differentiation for any network. Both answer in float64.
"""

import math
from contextlib import contextmanager

import torch
from torch.func import hessian, jacrev, vmap
from torch.nn.functional import cross_entropy

from neuronkit import InputError

KINDS = ("cov", "isens", "hess", "osens")
FLOOR = 1e-12  # of s: a dead unit is then similar to nothing, itself included
BATCH = 100  # samples; the (n, BATCH, n) block of `_input_gram` stays in the cache
SAMPLES = 64  # per call of the general route: (SAMPLES, n, inputs) Jacobians are held at once


@torch.no_grad()
def similarities(weights, x, y):
    """Eight similarities of the units of every hidden layer of a ReLU network, in closed form.

    With d1, d2 the ReLU gates, G = W1 W1' = L L', K = W3' W3, p the softmax, * elementwise::

        isens 1  E[d1 d1'] * G                     isens 2  E[T T'],  T = (diag(d2) W2 diag(d1)) L
        osens 1  W2' (K * E[d2 d2']) W2            osens 2  K
        hess 1   W2' E[diag(d2) W3' C W3 diag(d2)] W2        hess 2   W3' E[C] W3,  C = diag(p) - p p'

    (one hidden layer: isens as in 1, the others as in 2). The Hessian of the cross-entropy does not depend on
    the label, so y is only checked.

    weights: [(W (out, in), b (out,)), ...], two or three pairs, the last one gives the logits; x (N, D)
    floats; y (N,) integer labels; arrays or tensors. Computed in float64 if anything passed is float64, else
    in float32 with sums in float64. Returns {(layer, kind): (n, n) float64 array}, layer from 1. Raises
    InputError for wrong shapes, integer x, labels out of range and values that are not finite.
    """
    layers, x = _checked(weights, x, y)
    mean = _means(layers, x)
    exact = [W.double() for W, _ in layers]
    readout, first = exact[-1], exact[0]
    last = len(exact) - 1

    raw = {depth: {"cov": _covariance(mean["h", depth], mean["hh", depth])} for depth in range(1, last + 1)}
    raw[1]["isens"] = mean["gates", 1] * (first @ first.T)
    raw[last]["hess"] = readout.T @ _softmax_curvature(mean["pp"]) @ readout
    raw[last]["osens"] = readout.T @ readout
    if last == 2:
        middle = exact[1]
        raw[2]["isens"] = mean["isens"]
        raw[1]["hess"] = middle.T @ mean["gated curvature"] @ middle
        raw[1]["osens"] = middle.T @ (mean["gates", 2] * raw[2]["osens"]) @ middle
    return {(depth, kind): S for depth, found in raw.items() for kind, S in _finish(found).items()}


def from_module(module, x, y, layer):
    """Eight similarities of the units that one submodule puts out, for any classifier (torch.func).

    The definitions of this module as they stand, one Jacobian and one Hessian per sample: exact, and some
    hundred times slower than `similarities`. The module runs in evaluation mode and is left as it was.

    module: maps (N, ...) inputs to (N, C) logits; x (N, ...) floats; y (N,) integer labels; layer: the name
    of the submodule that outputs h, used once per pass (several axes are flattened: n is their product).
    Returns {kind: (n, n) float64 array}. Raises InputError for an unknown layer, one that runs more or less
    than once or does not output one tensor, wrong shapes, and values that are not finite.
    """
    site = _submodule(module, layer)
    weight = next(module.parameters(), torch.zeros(()))
    x = _floats(x, "x").to(weight.device, weight.dtype)
    _need(x.ndim >= 2, "x must have one row per sample: reshape it to (N, ...).")
    y = _labels(y, len(x)).to(weight.device)

    def hidden(sample):
        h = _run(module, site, layer, sample[None])[1].flatten()
        return h, h

    def logits(h, sample):
        return _run(module, site, layer, sample[None], h)[0].flatten()

    def loss(h, sample, label):
        return cross_entropy(logits(h, sample)[None], label[None])

    total, origin = {}, None
    with _evaluating(module):
        _labels(y, len(x), module(x[:1]).shape[-1])
        for rows, label in zip(x.split(SAMPLES), y.split(SAMPLES), strict=True):
            J, h = vmap(jacrev(hidden, has_aux=True))(rows)
            J = J.flatten(2)  # (B, n, inputs)
            G = vmap(jacrev(logits))(h, rows)  # (B, C, n)
            origin = h[0] if origin is None else origin
            _add_moments(total, 1, h, origin)
            _add(total, "isens", torch.einsum("bix,bjx->ij", J, J))
            _add(total, "hess", vmap(hessian(loss))(h, rows, label).sum(0))
            _add(total, "osens", torch.einsum("bci,bcj->ij", G, G))
    mean = {key: value.detach() / len(x) for key, value in total.items()}
    mean["cov"] = _covariance(mean["h", 1], mean["hh", 1])
    return _finish({kind: mean[kind] for kind in KINDS})


def _means(layers, x):
    """Means over the data of all that the closed forms need, summed in float64 batch by batch."""
    total, origin = {}, {}
    # W1 = L Q' with Q orthonormal, so J J' of the second layer needs n columns where the input has D; unlike
    # Cholesky's, this L exists when pruned or decayed units leave W1 W1' singular
    L = torch.linalg.qr(layers[0][0].double().T, mode="r").R.T.to(x.dtype).contiguous()
    units = len(layers[1][0])
    room = [x.new_empty(units * min(BATCH, len(x)) * width) for width in L.shape]
    for rows in x.split(BATCH):
        h, gates = rows, []
        for depth, (W, b) in enumerate(layers[:-1], 1):
            h = torch.addmm(b, h, W.T).relu()
            gates.append((h > 0).to(h.dtype))
            _add(total, ("gates", depth), gates[-1].T @ gates[-1])
            _add_moments(total, depth, h, origin.setdefault(depth, h[0]))
        W, b = layers[-1]
        p = torch.addmm(b, h, W.T).double().softmax(1)
        _add(total, "pp", p.T @ p)
        if len(layers) == 3:
            _add(total, "isens", _input_gram(layers[1][0], L, *gates, room))
            _add(total, "gated curvature", _gated_curvature(W, p.to(h.dtype), gates[1]))
    return {key: value / len(x) for key, value in total.items()}


def _input_gram(W, L, d1, d2, room):
    """Sum over samples of T T', T = (diag(d2) W diag(d1)) L: one product for all, then one for the sum.

    room: two flat tensors that the batches share; new ones for each would double the time in page faults.
    """
    shape = (len(W), *d1.shape)  # (n2, B, n1)
    gated = torch.mul(W[:, None, :], d1, out=room[0][: math.prod(shape)].view(shape))
    gated *= d2.T[:, :, None]
    rows = gated.flatten(0, 1)
    T = torch.mm(rows, L, out=room[1][: len(rows) * L.shape[1]].view(len(rows), -1))
    T = T.view(len(W), -1)  # (n2, B * columns of L)
    return T @ T.T


def _gated_curvature(W, p, d2):
    """Sum over samples of diag(d2) W' (diag(p) - p p') W diag(d2), as a Gram matrix of p-centred rows of W.

    sum_c p_c (W_c - m)(W_c - m)', m = W'p, equals the product and does not cancel when the softmax saturates.
    """
    rows = W - (p @ W)[:, None, :]  # (B, C, n2)
    rows *= p.sqrt()[:, :, None]
    rows *= d2[:, None, :]
    rows = rows.flatten(0, 1)
    return rows.T @ rows


def _softmax_curvature(pp):
    """diag(E[p]) - E[p p'] from E[p p'] alone: the p sum to 1, so the diagonal needs no difference."""
    off = pp - pp.diag().diag()
    return off.sum(1).diag() - off


def _add(total, key, value):
    total[key] = total.get(key, 0) + value.double()


def _add_moments(total, depth, h, origin):
    """First and second moments about one sample: a constant unit then has a variance of exactly 0."""
    h = h.double() - origin.double()
    _add(total, ("h", depth), h.sum(0))
    _add(total, ("hh", depth), h.T @ h)


def _covariance(mean, square):
    S = square - torch.outer(mean, mean)
    S.diagonal().clamp_(min=0)  # a variance; rounding alone takes it below zero
    return S


def _finish(raw):
    """Symmetric, absolute value, and the normalised forms beside; as arrays."""
    found = {kind: (S + S.T).div(2).abs() for kind, S in raw.items()}
    for kind in KINDS:
        s = found[kind].diagonal().sqrt().clamp(min=FLOOR)
        found[f"{kind}_norm"] = found[kind] / torch.outer(s, s)
    return {kind: S.cpu().numpy() for kind, S in found.items()}


def _run(module, site, layer, rows, h=None):
    """Logits and what the site put out; with h, the site puts out h instead."""
    seen = []

    def hook(_module, _inputs, output):
        _need(torch.is_tensor(output), f"{layer!r} must output one tensor: choose another submodule.")
        seen.append(output.clone())  # a ReLU in place may follow
        return None if h is None else h.reshape(output.shape).clone()

    handle = site.register_forward_hook(hook)
    try:
        logits = module(rows)
    finally:
        handle.remove()
    _need(len(seen) == 1, f"{layer!r} runs {len(seen)} times in a pass: choose a submodule that runs once.")
    return logits, seen[0]


@contextmanager
def _evaluating(module):
    before = {part: part.training for part in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for part, training in before.items():
            part.training = training


def _submodule(module, layer):
    known = dict(module.named_modules())
    names = ", ".join(name for name in known if name)
    _need(layer in known and layer != "", f"There is no submodule {layer!r}: choose one of {names}.")
    return known[layer]


def _checked(weights, x, y):
    """Weights and x as tensors of one dtype on x's device."""
    x = _floats(x, "x")
    _need(x.ndim == 2, f"x must be (N, D), one row per sample: its shape is {tuple(x.shape)}.")
    _need(
        len(weights) in (2, 3),
        "weights must be two or three (W, b) pairs; use from_module for other networks.",
    )
    layers = [(_floats(W, "a weight matrix"), _floats(b, "a bias")) for W, b in weights]
    inputs = x.shape[1]
    for number, (W, b) in enumerate(layers, 1):
        fits = W.ndim == 2 and W.shape[1] == inputs and b.shape == W.shape[:1]
        _need(
            fits,
            f"Pair {number} of weights must be W (out, {inputs}) and b (out,), as in PyTorch.",
        )
        inputs = W.shape[0]
    _labels(y, len(x), inputs)
    dtypes = {t.dtype for t in (x, *sum(layers, ()))}
    dtype = torch.float64 if torch.float64 in dtypes else torch.float32
    return [(W.to(x.device, dtype), b.to(x.device, dtype)) for W, b in layers], x.to(dtype)


def _floats(values, name):
    values = torch.as_tensor(values).detach()
    _need(values.is_floating_point(), f"{name} must be floats: divide pixels by 255, or convert it.")
    _need(values.numel() > 0, f"{name} is empty: pass at least one row.")
    # the sum tells at a tenth of the cost, but for finite values that overflow it
    finite = bool(values.sum().isfinite()) or bool(values.isfinite().all())
    _need(finite, f"{name} has NaN or infinite values: remove them first.")
    return values


def _labels(y, samples, classes=None):
    y = torch.as_tensor(y).detach()
    whole = not (y.is_floating_point() or y.is_complex() or y.dtype == torch.bool)
    _need(whole and y.shape == (samples,), f"y must be {samples} integer labels, one per row of x.")
    _need(int(y.min()) >= 0, "y has a negative label: number the classes from 0.")
    if classes is not None:
        _need(int(y.max()) < classes, f"y has a label over {classes - 1}: the network has {classes} logits.")
    return y.long()


def _need(condition, message):
    if not condition:
        raise InputError(message)
