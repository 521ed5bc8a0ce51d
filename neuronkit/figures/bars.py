"""Bars in groups."""

import numpy as np

from neuronkit.figures import style

HATCHES = ("", "///", "...", "xx", "\\\\\\", "--")
GREYS = ("0.25", "0.55", "0.75", "0.9", "0.4", "0.65")


def grouped(ax, groups: list[str], bars: dict, *, reported: dict | None = None):
    """One group of bars per name in `groups`; bars {label: (means, sems)}, each (n_groups,); returns the Axes.

    reported: {(group, label): value} of the paper, as open diamonds on the bar.
    """
    width = 0.8 / len(bars)
    for i, (label, (means, sems)) in enumerate(bars.items()):
        x = np.arange(len(groups)) + (i - (len(bars) - 1) / 2) * width
        ax.bar(x, means, width, yerr=sems, label=label, color=GREYS[i], hatch=HATCHES[i], edgecolor="black", lw=0.5)
        said = [(x[g], reported[name, label]) for g, name in enumerate(groups) if (name, label) in (reported or {})]
        if said:
            ax.plot(*zip(*said, strict=True), **style.REPORTED | {"label": "paper" if i == 0 else None})
    ax.set_xticks(range(len(groups)), groups)
    ax.grid(axis="x", visible=False)
    return ax
