"""Quantities of the layers of one model: during training, and from the bottom layer to the top."""

import numpy as np

from neuronkit.figures import style


def over_steps(ax, steps, mean, sem=None):
    """One line per layer of mean (R, L), with a band ± sem, against training step (R,); returns the Axes.

    The axis is logarithmic from step 1 up and linear below it, so that step 0 shows.
    """
    for layer, look in enumerate(style.layers(np.shape(mean)[1])):
        ax.plot(steps, mean[:, layer], markevery=max(1, len(steps) // 8), **look)
        if sem is not None:
            low, high = mean[:, layer] - sem[:, layer], mean[:, layer] + sem[:, layer]
            ax.fill_between(steps, low, high, color=look["color"], alpha=0.2, lw=0)
    ax.set_xscale("symlog", linthresh=1, linscale=0.3)
    ax.set_xlim(0, max(steps))
    ax.set_xlabel("training step")
    return ax


def against(ax, x, mean, sem=None, *, log: bool = True):
    """One line per layer of mean (S, L), with whiskers of sem, against a setting x (S,); returns the Axes."""
    for layer, look in enumerate(style.layers(np.shape(mean)[1])):
        ax.errorbar(x, mean[:, layer], yerr=None if sem is None else sem[:, layer], **look)
    if log:
        ax.set_xscale("log")
    ax.set_xticks(x, [f"{v:g}" for v in x])
    ax.minorticks_off()
    return ax


def from_bottom(ax, curves: dict):
    """{label: (mean (L,), sem (L,))} from the bottom layer to the top, one line each; returns the Axes."""
    for (label, (mean, sem)), look in zip(curves.items(), style.series(len(curves)), strict=True):
        ax.errorbar(range(len(mean)), mean, yerr=sem, **look, label=label)
    ax.xaxis.set_major_locator(style.whole_numbers())
    ax.set_xlabel("layer (0 is the bottom one)")
    return ax
