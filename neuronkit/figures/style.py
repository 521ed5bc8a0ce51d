"""Colours and marks: the same thing looks the same in every figure, in grey too (each has a mark of its own)."""

from pathlib import Path

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
