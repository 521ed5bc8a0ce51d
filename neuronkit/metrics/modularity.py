"""Modularity of a matrix of similarities, and the partition that maximises it (Lange, Rolnick and Kording
2022, section 2 and appendix A.1).

Without its diagonal the matrix A is scaled to A~ = A / sum(A); k = A~ 1 are the strengths of the units. For a
partition P (n units, c clusters), equation 6::

    Q(P) = tr(P' B P) = sum_ij B_ij [c_i = c_j],    B = A~ - k k'

The diagonal of B, -k_i^2, counts: all units in one cluster have Q = 0.

A unit without similarity to any other (k_i < 1e-15) is dead: it is in no cluster (label -1) and never moved.
Labels are numbered from 0 by first appearance. The random stream of a matrix comes from the seed and the
matrix's own content: its result is the same alone and in any batch.
"""

import hashlib
import math
import warnings

import numpy as np

from neuronkit import InputError
from neuronkit.metrics.partition_search import bisect, climb, renumbered, walk

DEAD = 1e-15  # strength under which a unit is in no cluster; mean of A under which there is no matrix


def modularity(A, labels):
    """Q of a partition: sum_ij (A~_ij - k_i k_j) [c_i = c_j] (section 2, equation 6).

    A: (n, n), symmetric, not negative; its diagonal is left out. labels: (n,) integers, -1 for a unit in no
    cluster, or a soft partition, (n, c) with rows that sum to 1, for which Q = tr(P' B P). A matrix of zeros
    has no modularity: nan, with a RuntimeWarning. Raises InputError for anything else.

    Two triangles joined by one edge:

    >>> barbell = np.zeros((6, 6))
    >>> for i, j in [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (3, 5), (4, 5)]:
    ...     barbell[i, j] = barbell[j, i] = 1
    >>> round(modularity(barbell, [0, 0, 0, 1, 1, 1]), 4)  # 12/14 - 1/2
    0.3571
    """
    _need(np.ndim(A) == 2, f"A must be one (n, n) matrix here: its shape is {np.shape(A)}.")
    matrices, empty = _matrices(A, depth=3)
    P = _membership(labels, matrices.shape[1])
    if empty[0]:
        return math.nan
    B, _ = _null_model(matrices[0])
    return float(np.sum(P * (B @ P)))


def maximize(A, *, method="paper", steps=5000, seed=0):
    """The largest Q found and its partition (appendix A.1), for one matrix or a batch.

    method="paper": spectral bisection, then `steps` Monte Carlo moves. method="ils": iterated local search
    from one cluster, 100 rounds of perturbing, moving single units and merging clusters; higher Q in less
    time than 5,000 steps, but not what the paper reports; `steps` does not apply.

    A: (n, n) or (m, n, n), as in `modularity`. Returns (q, labels): a float and (n,) integers, or (m,) and
    (m, n). A matrix of zeros: nan and all -1, with a RuntimeWarning. Raises InputError.

    >>> squares = np.kron(np.eye(2), np.ones((4, 4)))
    >>> q, labels = maximize(squares)
    >>> round(q, 4), labels.tolist()
    (0.5, [0, 0, 0, 0, 1, 1, 1, 1])
    """
    _need(method in ("paper", "ils"), f"method must be 'paper' or 'ils', not {method!r}.")
    _need(steps >= 0, f"steps must be 0 or more, not {steps}.")

    def solve(_, B, live, stream):
        if method == "ils":
            return climb(B, np.where(live, 0, -1), stream)
        return walk(B, bisect(B, live, False), steps, stream)

    return _each(A, solve, seed)


def spectral(A, *, variant="paper"):
    """Labels by spectral bisection: all live units together, then split by the sign of a leading vector.

    A cluster is split in two while that raises Q. variant="paper": the first singular vector of B[sub, sub],
    which may belong to a negative eigenvalue and then fails to split; variant="newman2006": the vector of the
    largest eigenvalue once the row sums of B[sub, sub] are taken off its diagonal.

    A: (n, n) or (m, n, n), as in `modularity`. Returns labels (n,) or (m, n); a matrix of zeros: all -1, with
    a RuntimeWarning. Raises InputError.
    """
    known = ("paper", "newman2006")
    _need(variant in known, f"variant must be 'paper' or 'newman2006', not {variant!r}.")
    return _each(A, lambda _, B, live, __: (0.0, bisect(B, live, variant == "newman2006")))[1]


def monte_carlo(A, labels, *, steps=5000, seed=0):
    """The largest Q of all moves proposed in a random walk from `labels`, and its partition (appendix A.1).

    Each step draws a live unit, then its cluster out of those in use and an empty one, with probability
    proportional to exp(Q / T); T is set so that the entropy of this choice is 0.15 nats.

    A: (n, n) or (m, n, n), as in `modularity`; labels: integers, (n,) or (m, n), such as zeros (one cluster)
    or numpy.arange(n) (single units); dead units need no label, live ones need one of at least 0. Returns
    (q, labels) like `maximize`. Raises InputError.
    """
    _need(steps >= 0, f"steps must be 0 or more, not {steps}.")
    shape = np.shape(A)[:-1]
    labels = np.asarray(labels)
    fits = labels.ndim > 0 and labels.shape == shape and labels.dtype.kind in "iu"
    _need(fits, f"labels must be integers of shape {shape}: theirs is {labels.shape}, {labels.dtype}.")
    starts = labels.reshape(-1, labels.shape[-1])

    def solve(index, B, live, stream):
        start = np.where(live, starts[index], -1)
        _need((start[live] >= 0).all(), "labels must be 0 or more for every live unit: give each a cluster.")
        return walk(B, renumbered(start), steps, stream)

    return _each(A, solve, seed)


def contrast(A, labels):
    """Mean similarity of pairs that share a cluster, and of pairs that do not (section 4): (within, between).

    Both are shares of the mean over all pairs, so 1 is what a pair has on average; the diagonal and units in no
    cluster are left out. A: (n, n) or (m, n, n), labels: integers (n,) or (m, n); returns two floats or two (m,).
    No such pair, or a matrix of zeros: nan (the latter with a RuntimeWarning). Raises InputError.

    >>> squares = np.kron(np.eye(2), np.ones((2, 2)))
    >>> contrast(squares, [0, 0, 1, 1])  # 4 of the 12 ordered pairs hold all similarity
    (3.0, 0.0)
    """
    matrices, empty = _matrices(A, depth=3)
    n = matrices.shape[-1]
    labels = np.asarray(labels)
    fits = labels.shape == np.shape(A)[:-1] and labels.dtype.kind in "iu"
    _need(fits, f"labels must be integers of shape {np.shape(A)[:-1]}: theirs is {labels.shape}, {labels.dtype}.")
    labels = labels.reshape(-1, n)
    matrices[empty] = np.nan
    matrices *= n * (n - 1) / matrices.sum((1, 2), keepdims=True)
    clustered = (labels[:, :, None] >= 0) & (labels[:, None, :] >= 0) & ~np.eye(n, dtype=bool)
    same = labels[:, :, None] == labels[:, None, :]

    def mean(pairs):
        counts = pairs.sum((1, 2))
        return np.where(counts > 0, (matrices * pairs).sum((1, 2)) / np.maximum(counts, 1), np.nan)

    within, between = mean(same & clustered), mean(~same & clustered)
    return (float(within[0]), float(between[0])) if np.ndim(A) == 2 else (within, between)


def number_of_clusters(labels):
    """exp of the entropy of r, r_c = the fraction of all n units that is in cluster c (section 2).

    Dead units (-1) count in n and in no cluster. labels: (n,) integers. Raises InputError.

    >>> number_of_clusters([0, 0, 1, 1])
    2.0
    """
    labels = np.asarray(labels)
    _need(labels.ndim == 1 and labels.size > 0, f"labels must be (n,): their shape is {labels.shape}.")
    P = _membership(labels, len(labels))
    r = P.sum(0)[P.any(0)] / len(labels)
    return float(np.exp(-(r @ np.log(r))))


def _each(A, solve, seed=0):
    """q and labels by solve(index, B, live, stream) for every matrix that is not all zeros."""
    matrices, empty = _matrices(A)
    q = np.full(len(matrices), np.nan)
    labels = np.full(matrices.shape[:2], -1)
    for index in np.flatnonzero(~empty):
        B, live = _null_model(matrices[index])
        q[index], labels[index] = solve(index, B, live, _stream(seed, B))
    return (float(q[0]), labels[0]) if np.ndim(A) == 2 else (q, labels)


def _stream(seed, B):
    """State of a generator, from the seed and the strengths of one matrix (B_ii = -k_i^2) wherever it stands."""
    digest = hashlib.blake2b(B.diagonal().tobytes(), digest_size=8, salt=int(seed).to_bytes(16, "little", signed=True))
    return np.frombuffer(digest.digest(), np.uint64).copy()


def _null_model(A):
    """B = A~ - k k' and which units are live."""
    scaled = A / A.sum()
    k = scaled.sum(1)
    return scaled - np.outer(k, k), k >= DEAD


def _matrices(A, depth=4):
    """(m, n, n) float64 without diagonals, and which are all zeros (a warning to the caller `depth` up)."""
    try:
        A = np.array(A, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("A must be an array of numbers, (n, n) or (m, n, n).") from None
    square = A.ndim in (2, 3) and A.shape[-1] == A.shape[-2]
    _need(square, f"A must be square, (n, n) or (m, n, n): its shape is {A.shape}.")
    n = A.shape[-1]
    _need(n > 1, f"A has {n} unit: modularity needs two or more.")
    _need(np.isfinite(A).all(), "A has NaN or infinite entries: remove those units first.")
    A = A.reshape(-1, n, n)
    A[:, np.arange(n), np.arange(n)] = 0
    _need((A >= 0).all(), "A has negative entries: pass similarities, for example their absolute values.")
    flipped = A.transpose(0, 2, 1)
    close = np.abs(A - flipped) <= 1e-6 * A.max(axis=(1, 2), keepdims=True)
    _need(close.all(), "A is not symmetric: pass (A + A.T) / 2 if that is what you mean.")
    empty = A.mean(axis=(1, 2)) <= DEAD
    if empty.any():
        message = f"{empty.sum()} of {len(A)} matrices are all zeros: they have no modularity (nan)."
        warnings.warn(message, RuntimeWarning, stacklevel=depth)
    return (A + flipped) / 2, empty


def _membership(labels, n):
    """P (n, c) of hard or soft labels."""
    labels = np.asarray(labels)
    shaped = labels.ndim in (1, 2) and len(labels) == n
    _need(shaped, f"labels must have one entry or row for each of the {n} units: their shape is {labels.shape}.")
    if labels.ndim == 2:
        sums = np.isfinite(labels).all() and (labels >= 0).all() and np.allclose(labels.sum(1), 1, atol=1e-6)
        _need(sums, "Rows of soft labels must be 0 or more and sum to 1: divide each row by its sum.")
        return labels.astype(np.float64)
    whole = labels.dtype.kind in "iu" and labels.min() >= -1
    _need(whole, "labels must be integers from 0, or -1 for a unit in no cluster.")
    return (labels[:, None] == np.unique(labels[labels >= 0])).astype(np.float64)


def _need(condition, message):
    if not condition:
        raise InputError(message)
