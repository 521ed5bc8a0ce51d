"""How alike two partitions of the same units are (Lange, Rolnick and Kording 2022, section 5)."""

import itertools
import warnings

import numpy as np
from numba import njit

from neuronkit import InputError, unknown

INDICES = ("nmi", "ari", "vi", "rmi", "omega")  # the other indices that clusim has; vi is a distance, in bits


def element_similarity(a, b):
    """Element-centric similarity of two partitions, in closed form (section 5; Gates et al. 2019)::

        (1 / n) sum_{A, B} |A & B|^2 / max(|A|, |B|)    over clusters A of a and B of b

    the value of clusim's element_sim for disjoint clusters, whatever its alpha. 1: the same partition.
    a, b: integer labels (n,), or (m, n) for m pairs at once; units labelled -1 (in no cluster) count as one
    cluster. Returns a float, or (m,). Raises InputError for other shapes and types.

    >>> round(element_similarity([0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 2, 2]), 4)  # 19/36
    0.5278
    """
    a, b = _labels(a, b)
    found = _pairwise(np.atleast_2d(a), np.atleast_2d(b))
    return float(found[0]) if a.ndim == 1 else found


def pairwise(labels, index="element"):
    """Every partition of some units against every other: (..., K, n) labels of K partitions -> (..., K, K).

    index: "element" or one of `INDICES`. Raises InputError.

    >>> pairwise([[0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1]]).tolist()
    [[1.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 1.0]]
    """
    labels = np.asarray(labels)
    if labels.ndim < 2:
        raise InputError(f"labels must be (..., partitions, units): their shape is {labels.shape}.")
    *outer, k, n = labels.shape
    flat = labels.reshape(-1, k, n)
    found = np.empty((len(flat), k, k))
    for i, j in itertools.combinations_with_replacement(range(k), 2):
        a, b = flat[:, i], flat[:, j]
        found[:, i, j] = found[:, j, i] = element_similarity(a, b) if index == "element" else by_index(index, a, b)
    return found.reshape(*outer, k, k)


def by_index(name, a, b):
    """Another index of how alike two partitions are, by clusim: nmi, ari, vi (in bits), rmi or omega (section 5).

    a, b: as in `element_similarity`. Two partitions that both have one cluster only, or both single units only,
    leave 0 / 0 in nmi, ari and omega (nmi: one cluster only): nan, with a RuntimeWarning. Raises InputError.

    >>> round(by_index("vi", [0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 2, 2]), 4)
    1.4591
    """
    import clusim.sim
    from clusim.clustering import Clustering

    if name not in INDICES:
        raise unknown("index", name, INDICES)
    a, b = _labels(a, b)
    function = {"ari": clusim.sim.adjrand_index, "omega": clusim.sim.omega_index}.get(
        name, getattr(clusim.sim, name, None)
    )
    rows = list(zip(np.atleast_2d(a), np.atleast_2d(b), strict=True))
    empty = [_undefined(name, *row) for row in rows]
    if any(empty):
        message = f"{sum(empty)} of {len(rows)} pairs of partitions are trivial alike, where {name} is 0 / 0: nan."
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    found = [
        np.nan if skip else function(*(Clustering().from_membership_list(p.tolist()) for p in row))
        for row, skip in zip(rows, empty, strict=True)
    ]
    return float(found[0]) if a.ndim == 1 else np.array(found, dtype=np.float64)


def chance(a, b, *, seed=0):
    """`element_similarity` of a with b once the units of b are shuffled: the same sizes of clusters, no relation."""
    a, b = _labels(a, b)
    return element_similarity(a, np.random.default_rng(seed).permuted(b, axis=-1))


def _undefined(name, a, b):
    counts = {len(np.unique(a)), len(np.unique(b))}
    return (name in ("nmi", "ari", "omega") and counts == {1}) or (name in ("ari", "omega") and counts == {len(a)})


def _labels(a, b):
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.ndim not in (1, 2) or a.shape[-1] == 0:
        raise InputError(f"a and b must have one shape, (n,) or (m, n): theirs are {a.shape} and {b.shape}.")
    if a.dtype.kind not in "iu" or b.dtype.kind not in "iu":
        raise InputError(f"a and b must be integer labels: they are {a.dtype} and {b.dtype}.")
    return a.astype(np.int64), b.astype(np.int64)


@njit(cache=True)
def _pairwise(a, b):
    """Per row, the mean over units i of |A_i & B_i| / max(|A_i|, |B_i|): the same sum for any ids."""
    rows, n = a.shape
    found = np.empty(rows)
    for row in range(rows):
        total = 0.0
        for i in range(n):
            in_a = in_b = in_both = 0
            for j in range(n):
                same_a, same_b = a[row, j] == a[row, i], b[row, j] == b[row, i]
                in_a += same_a
                in_b += same_b
                in_both += same_a and same_b
            total += in_both / max(in_a, in_b)
        found[row] = total / n
    return found
