"""Activations of single units, by the class of the item."""

import numpy as np

COLOURS = ("#D55E00", "#0072B2", "0.55")  # negative, positive, and what is between, apart in grey too
HATCHES = ("///", "", "...")
MARKS = ("v", "^", "o")


def _look(classes: int, c: int) -> int:
    """The middle of three classes is the grey one."""
    return {0: 0, 1: 2, 2: 1}[c] if classes == 3 else c % 3


def histogram(ax, activations, labels, names: list[str], *, baseline: float):
    """Histograms of one unit's activations (n,), one per class, and its baseline; returns the Axes."""
    edges = np.histogram_bin_edges(activations, bins=30)
    for c, name in enumerate(names):
        look = _look(len(names), c)
        of = activations[labels == c]
        ax.hist(of, edges, label=name, color=COLOURS[look], hatch=HATCHES[look], edgecolor="white", lw=0.3, alpha=0.6)
    ax.axvline(baseline, color="black", ls="--", label="baseline")
    ax.set(xlabel="activation", ylabel="test items")
    return ax


def scatter(ax, x, y, labels, names: list[str], *, baselines: tuple[float, float]):
    """Activations of two units (n,), coloured by class, with both baselines; returns the Axes."""
    for c, name in enumerate(names):
        look, of = _look(len(names), c), labels == c
        ax.plot(x[of], y[of], MARKS[look], color=COLOURS[look], markersize=3, alpha=0.6, label=name)
    ax.axvline(baselines[0], color="black", ls="--", lw=0.8)
    ax.axhline(baselines[1], color="black", ls="--", lw=0.8)
    return ax
