"""How alike two prompts are by the units that they switch on (paper 3, section 6.2)."""

import numpy as np

from neuronkit import InputError


def activated_overlap(a, b, *, neurons=None) -> float:
    """|A ∩ B| / sqrt(|A| |B|) of the units above zero in activations a and b (N,): cosine of the 0/1 vectors.

    neurons: indices, or a boolean (N,), of the units that count; all by default. nan where one of the two has no
    active unit. Raises InputError for unequal shapes and values that are not finite.

    >>> activated_overlap([1.0, -1.0, 2.0], [0.5, 1.0, 3.0])
    0.816496580927726
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if a.ndim != 1 or a.shape != b.shape:
        raise InputError(f"activations are {a.shape} and {b.shape}: give the same units of both, (N,).")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise InputError("activations are not finite: check the model and its prompts.")
    if neurons is not None:
        a, b = a[neurons], b[neurons]
    a, b = a > 0, b > 0
    size = np.sqrt(a.sum() * b.sum())
    return float((a & b).sum() / size) if size else float("nan")
