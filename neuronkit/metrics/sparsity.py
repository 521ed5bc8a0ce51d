"""How many hidden units a token, a sequence and a batch use (Wild and Anderson 2024, section 2).

"Use" is one minus sparsity. Everything follows from one statistic, `active_counts`: on how many tokens of each
sequence each unit is active, that is, above the threshold after the non-linearity. Shapes: S sequences, T tokens, F
units.
"""

from typing import NamedTuple

import numba
import numpy as np

from neuronkit import InputError


class HiddenUnitUse(NamedTuple):
    """Fractions of the F units of a layer: used by a token, anywhere in a sequence, anywhere in a batch."""

    token: float
    sequence: float
    batch: float


class Turned(NamedTuple):
    """Fractions of units that changed between two moments: of all units, and of those that could change."""

    on: float
    off: float
    on_of_off: float
    off_of_on: float


def active_counts(activations, mask=None, *, threshold: float = 0.0):
    """Tokens of each sequence on which each unit is active: (S, F) int64.

    activations (S, T, F), array or tensor; mask (S, T), 0 where a token is padding. A tensor is counted where it lies
    and gives an array all the same. Raises InputError for another shape, or NaN or infinite activations.

    >>> active_counts(np.array([[[1.0, 0.0], [2.0, 0.0], [3.0, 4.0]]]), [[1, 1, 0]]).tolist()
    [[2, 0]]
    """
    import torch

    tensor = torch.as_tensor(activations)
    if tensor.ndim != 3:
        raise InputError(f"activations must be (sequences, tokens, units): their shape is {tuple(tensor.shape)}.")
    kept = torch.ones(tensor.shape[:2]) if mask is None else torch.as_tensor(np.asarray(mask))
    if kept.shape != tensor.shape[:2]:
        raise InputError(f"mask must be {tuple(tensor.shape[:2])}, one entry per token: it is {tuple(kept.shape)}.")
    kept = kept > 0
    if tensor.device.type == "cpu":
        values = tensor.detach()
        values = values if values.dtype in (torch.float32, torch.float64) else values.float()  # others NumPy lacks
        counts = np.zeros((tensor.shape[0], tensor.shape[2]), dtype=np.int32)
        finite = _count(values.contiguous().numpy(), kept.numpy(), threshold, counts)
    else:
        finite = bool(torch.isfinite(tensor).all())
        # A product of matrices counts several times faster than a sum over tokens; float32 is exact below 2^24 tokens.
        kept = kept.to(tensor.device, torch.float32)
        counts = torch.bmm(kept[:, None], (tensor > threshold).float())[:, 0].cpu().numpy()
    if not finite:
        raise InputError("activations are NaN or infinite somewhere: NaN would count as unused.")
    return counts.astype(np.int64)


@numba.njit(cache=True)
def _count(activations, kept, threshold, counts) -> bool:
    """Add to counts (S, F) the kept tokens on which each unit is above the threshold; whether all values are finite.

    One pass: the activations of a batch are far larger than a cache, and are read once.
    """
    strange = 0
    for s in range(activations.shape[0]):
        for t in range(activations.shape[1]):
            for u in range(activations.shape[2]):
                value = activations[s, t, u]
                counts[s, u] += np.int32((value > threshold) & kept[s, t])
                strange |= np.int32(value - value != 0)  # NaN for what is not finite
    return strange == 0


def hidden_unit_use(counts, lengths, *, batch: int | None = None) -> HiddenUnitUse:
    """Mean use of a layer's units per token, per sequence and per batch. [paper 2, section 2.1]

    counts (S, F), lengths (S,): tokens of each sequence, padding left out. batch: sequences in a batch, None for all;
    its use is the mean over whole batches, and sequences that fill none are left out of it. Raises InputError.

    >>> hidden_unit_use([[2, 0, 1], [0, 0, 3]], [4, 4])
    HiddenUnitUse(token=0.25, sequence=0.5, batch=0.6666666666666666)
    """
    counts, lengths = _counts(counts, lengths)
    sequences, units = counts.shape
    size = sequences if batch is None else batch
    if not 1 <= size <= sequences:
        raise InputError(f"batch is {size}: it must be from 1 to the {sequences} sequences there are.")
    used = counts > 0
    whole = used[: sequences // size * size].reshape(-1, size, units)
    token = counts.sum() / (units * lengths.sum())
    return HiddenUnitUse(float(token), float(used.mean()), float(whole.any(1).mean()))


def frequency_percentiles(counts, lengths, q):
    """Percentiles over the units that a sequence uses of the fraction of its tokens on which each is active: (len(q),).

    The mean over sequences; those without a used unit are left out, and if none is left the result is nan.
    counts (S, F), lengths (S,), q in percent. Raises InputError. [paper 2, section 2.1]

    >>> frequency_percentiles([[1, 0, 4], [0, 0, 2]], [4, 4], [50]).tolist()  # medians 5/8 and 1/2
    [0.5625]
    """
    counts, lengths = _counts(counts, lengths)
    q = np.atleast_1d(np.asarray(q, dtype=np.float64))
    if not ((q >= 0) & (q <= 100)).all():
        raise InputError(f"q must be percentages from 0 to 100, not {q.tolist()}.")
    alive = counts.any(1)
    if not alive.any():
        return np.full(len(q), np.nan)
    counts, lengths = counts[alive], lengths[alive]
    # Counts are small integers: their histogram gives order statistics without sorting F units per sequence.
    longest = int(lengths.max())
    places = counts + (longest + 1) * np.arange(len(counts))[:, None]
    histogram = np.bincount(places.ravel(), minlength=len(counts) * (longest + 1)).reshape(len(counts), -1)
    histogram[:, 0] = 0
    upto = histogram.cumsum(1)  # (S, longest + 1): used units with at most so many tokens
    position = (upto[:, -1:] - 1) * q / 100  # (S, len(q)), as numpy's linear interpolation has it
    low, high = ((upto[:, None, :] <= rank[:, :, None]).sum(2) for rank in (np.floor(position), np.ceil(position)))
    values = low + (high - low) * (position - np.floor(position))
    return (values / lengths[:, None]).mean(0)


def turned(before, after) -> Turned:
    """Which units went on and off between two moments on the same evaluation batch. [paper 2, Table 2]

    before, after: boolean (F,), whether a unit is used at all. 0 / 0 is nan. Raises InputError for unequal shapes.

    >>> turned([True, False, False, False], [True, True, False, False]).on
    0.25
    """
    before, after = np.asarray(before), np.asarray(after)
    if before.ndim != 1 or before.shape != after.shape or len(before) == 0:
        raise InputError(f"before and after must be (units,) alike: their shapes are {before.shape} and {after.shape}.")
    if before.dtype != bool or after.dtype != bool:
        raise InputError("before and after must be boolean, whether each unit is used: compare counts with 0.")
    on, off = (~before & after).sum(), (before & ~after).sum()
    n, was_on = len(before), before.sum()
    return Turned(
        float(on / n),
        float(off / n),
        float(on / (n - was_on)) if was_on < n else np.nan,
        float(off / was_on) if was_on else np.nan,
    )


def union_curve(counts):
    """How many units are used by the first 1, 2, ... S sequences: (S,) int64. counts (S, F). Raises InputError."""
    counts, _ = _counts(counts, np.full(len(np.atleast_1d(counts)), np.iinfo(np.int64).max))
    return np.logical_or.accumulate(counts > 0, axis=0).sum(1)


def _counts(counts, lengths):
    counts, lengths = np.asarray(counts), np.asarray(lengths)
    if counts.ndim != 2 or 0 in counts.shape or counts.dtype.kind not in "iu":
        raise InputError(f"counts must be integers (sequences, units): they are {counts.shape}, {counts.dtype}.")
    if lengths.shape != counts.shape[:1] or lengths.dtype.kind not in "iu" or (lengths < 1).any():
        raise InputError("lengths must be one integer of at least 1 per sequence: leave empty sequences out.")
    if (counts < 0).any() or (counts > lengths[:, None]).any():
        raise InputError("a count lies below 0 or above the length of its sequence: were they made of other tokens?")
    return counts.astype(np.int64), lengths.astype(np.int64)
