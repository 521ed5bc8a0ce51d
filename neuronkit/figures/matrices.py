"""Matrices of similarity as pictures."""

import numpy as np


def by_cluster(ax, A, labels, *, vmax=None):
    """A (n, n) with its units sorted by cluster, larger clusters first, and lines between clusters; returns the image.

    The diagonal is left blank, as modularity leaves it out. labels (n,): -1 (dead units) come last.
    """
    sizes = {c: np.sum(labels == c) for c in np.unique(labels)}
    order = sorted(range(len(labels)), key=lambda i: (labels[i] < 0, -sizes[labels[i]], labels[i]))
    shown = np.array(A, dtype=float)[np.ix_(order, order)]
    np.fill_diagonal(shown, np.nan)
    image = ax.imshow(shown, vmin=0, vmax=vmax, interpolation="nearest")
    edges = np.flatnonzero(np.diff(np.asarray(labels)[order])) + 0.5
    for edge in edges:
        ax.axhline(edge, color="white", lw=0.8)
        ax.axvline(edge, color="white", lw=0.8)
    ax.set(xticks=[], yticks=[], xlabel=f"{len(labels)} units, by cluster")
    ax.grid(False)
    return image
