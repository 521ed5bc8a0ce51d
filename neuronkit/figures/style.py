"""Colours and marks: the same thing looks the same in every figure, in grey too (each has a mark of its own)."""

import itertools
from pathlib import Path

import numpy as np

SHEET = Path(__file__).with_name("neuronkit.mplstyle")

# From Okabe and Ito's palette, which colour-blind readers can tell apart.
REGULARISERS = {
    "l2": {"color": "#0072B2", "marker": "o", "label": "L2"},
    "l1": {"color": "#D55E00", "marker": "s", "label": "L1"},
    "dropout": {"color": "#009E73", "marker": "^", "label": "dropout"},
}
STRENGTH = {"l2": "L2 strength", "l1": "L1 strength", "dropout": "dropout probability p"}
REPORTED = {"color": "black", "marker": "D", "linestyle": "none", "markerfacecolor": "none", "label": "paper"}
REPORTED_NORMALISED = REPORTED | {"marker": "x", "label": "paper, normalised"}
UNTRAINED = {"color": "0.6"}

# Measures of similarity: a colour per kind, dashes where it is normalised; upstream warm, downstream cold.
MEASURES = {
    "cov": {"color": "#D55E00", "marker": "s", "label": "cov"},
    "isens": {"color": "#E69F00", "marker": "o", "label": "i-sens"},
    "hess": {"color": "#0072B2", "marker": "v", "label": "hess"},
    "osens": {"color": "#56B4E9", "marker": "^", "label": "o-sens"},
}
MEASURES |= {
    f"{kind}_norm": {**look, "label": f"{look['label']}, normalised", "linestyle": "--", "markerfacecolor": "white"}
    for kind, look in list(MEASURES.items())
}


def series(n: int) -> list[dict]:
    """Looks of n things in an order, dark to light, each with a mark of its own."""
    import matplotlib

    colours = matplotlib.colormaps["viridis"](np.linspace(0, 0.85, n))
    return [{"color": c, "marker": m} for c, m in zip(colours, itertools.cycle("osv^DPX*<>"), strict=False)]


def layers(n: int) -> list[dict]:
    """Looks of n layers, the bottom one first and darkest."""
    return [look | {"label": f"layer {i}"} for i, look in enumerate(series(n))]


def whole_numbers():
    """Ticks at whole numbers only."""
    import matplotlib.ticker

    return matplotlib.ticker.MaxNLocator(integer=True)
