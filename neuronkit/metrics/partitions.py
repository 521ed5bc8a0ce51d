"""How alike two partitions of the same units are (Lange, Rolnick and Kording 2022, section 5)."""

import numpy as np
from numba import njit

from neuronkit import InputError


def element_similarity(a, b):
    """Element-centric similarity of two partitions, in closed form (section 5; Gates et al. 2019)::

        (1 / n) sum_{A, B} |A & B|^2 / max(|A|, |B|)    over clusters A of a and B of b

    the value of clusim's element_sim for disjoint clusters, whatever its alpha. 1: the same partition.
    a, b: integer labels (n,), or (m, n) for m pairs at once; units labelled -1 (in no cluster) count as one
    cluster. Returns a float, or (m,). Raises InputError for other shapes and types.

    >>> round(element_similarity([0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 2, 2]), 4)  # 19/36
    0.5278
    """
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.ndim not in (1, 2) or a.shape[-1] == 0:
        raise InputError(f"a and b must have one shape, (n,) or (m, n): theirs are {a.shape} and {b.shape}.")
    if a.dtype.kind not in "iu" or b.dtype.kind not in "iu":
        raise InputError(f"a and b must be integer labels: they are {a.dtype} and {b.dtype}.")
    found = _pairwise(np.atleast_2d(a).astype(np.int64), np.atleast_2d(b).astype(np.int64))
    return float(found[0]) if a.ndim == 1 else found


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
