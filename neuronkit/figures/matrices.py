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


def agreement(ax, values, names: list[str], *, beside=None, beside_name="", digits=True, **image):
    """A square of values (n, n) with a name per row and column, each cell with its value; returns the image.

    beside: a further column (n,) at the right, set off by a gap, such as the ceiling of each row. digits: whether
    values are written. image: what `ax.imshow` takes.
    """
    values, n = np.asarray(values, dtype=float), len(names)
    columns, labels = list(range(n)), list(names)
    shown = values
    if beside is not None:
        shown = np.column_stack([values, np.full(n, np.nan), beside])
        columns, labels = [*columns, n + 1], [*labels, beside_name]
    picture = ax.imshow(shown, interpolation="nearest", aspect="equal", **image)
    if digits:
        for (i, j), value in np.ndenumerate(shown):
            if np.isfinite(value):
                dark = picture.cmap(picture.norm(value))[:3] @ np.array([0.299, 0.587, 0.114]) < 0.5
                text = f"{round(value, 2) + 0.0:.2f}".replace("0.", ".", 1)  # + 0.0: no minus zero
                ax.text(j, i, text, ha="center", va="center", color="white" if dark else "black", size=7)
    ax.set_xticks(columns if digits else [], labels if digits else [], rotation=90)
    ax.set_yticks(range(n) if digits else [], names if digits else [])
    ax.grid(False)
    return picture
