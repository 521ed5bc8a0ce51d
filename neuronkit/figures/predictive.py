"""How predictive the units of a model are."""

import numpy as np

from neuronkit.figures import style


def histogram(ax, kinds: dict, *, ceiling: float | None = None):
    """Units by predictivity on a log axis, one line per kind: {label: (trials, N)}, mean ± sem; returns the Axes.

    ceiling: the highest predictivity that shuffled labels give, a dotted line.
    """
    edges = np.arange(0.5, 1.0001, 0.02)
    centres = (edges[:-1] + edges[1:]) / 2
    for (label, values), look in zip(kinds.items(), style.series(len(kinds)), strict=True):
        counts = np.array([np.histogram(np.clip(trial, 0.5, 1), edges)[0] for trial in values], dtype=float)
        mean = np.where(counts.mean(0) > 0, counts.mean(0), np.nan)
        sem = counts.std(0, ddof=1) / np.sqrt(len(counts)) if len(counts) > 1 else None
        ax.errorbar(centres, mean, yerr=sem, **look, markersize=3, label=label)
    if ceiling is not None:
        ax.axvline(ceiling, color="black", ls=":", label="shuffled labels, highest")
    ax.set(yscale="log", xlabel="predictivity", ylabel="units")
    return ax


def by_order(ax, x, curves: dict):
    """A quantity against the share of perturbed units x (S,): {order: (mean (S,), sem (S,))}; returns the Axes.

    The order named "random" is black and dashed.
    """
    named = [name for name in curves if name != "random"]
    looks = dict(zip(named, style.series(len(named)), strict=True))
    looks["random"] = {"color": "black", "marker": "x", "linestyle": "--", "zorder": 3}
    for name, (mean, sem) in curves.items():
        ax.errorbar(x, mean, yerr=sem, markersize=3.5, label=name, **looks[name])
    ax.locator_params(axis="x", nbins=5)
    return ax
