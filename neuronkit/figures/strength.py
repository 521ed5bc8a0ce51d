"""A quantity against the strength of a regulariser."""

import numpy as np

from neuronkit.figures import style


def against_strength(ax, strength, mean, sem, *, regulariser: str, untrained=None, reported=None, **line):
    """Mean ± SEM (n_strengths,) as a line with a band, on a log axis but for dropout; returns the Axes.

    untrained: (mean, sd) of untrained networks, a dotted grey line with bands of 1, 2 and 3 sd. reported:
    (strengths, values) of the paper, as open marks. line: anything that `ax.plot` takes, before the regulariser's own
    colour and mark.
    """
    if untrained is not None:
        center, sd = untrained
        for widths in (3, 2, 1):
            ax.axhspan(center - widths * sd, center + widths * sd, color=style.UNTRAINED["color"], alpha=0.15, lw=0)
        ax.axhline(center, label="untrained", ls=":", **style.UNTRAINED)
    look = style.REGULARISERS[regulariser] | line
    ax.plot(strength, mean, **look)
    ax.fill_between(strength, mean - sem, mean + sem, color=look["color"], alpha=0.2, lw=0)
    if reported is not None:
        normalised = look.get("linestyle") == "--"
        ax.plot(*reported, **(style.REPORTED_NORMALISED if normalised else style.REPORTED))
    if regulariser != "dropout":
        ax.set_xscale("log")
    ax.set_xlabel(style.STRENGTH[regulariser])
    return ax


def grid(
    curves: dict, rows: dict, *, untrained: dict | None = None, reported: dict | None = None, open_marks: str = ""
):
    """A Figure of quantities (rows) against the strength of each regulariser (columns).

    curves: {quantity: {regulariser: (strengths, mean, sem)}}. rows: {label of the row: {quantity: its look}}, a look
    being what `ax.plot` takes. untrained: {quantity: (mean, sd)}. reported: {quantity: {regulariser: (strengths,
    values)}}. open_marks: what dashed lines with open marks are, for the legend.
    """
    import matplotlib.pyplot as plt

    regularisers = list(next(iter(curves.values())))
    size = (2.4 * len(regularisers), 1.7 * len(rows) + 0.8)
    fig, axes = plt.subplots(len(rows), len(regularisers), figsize=size, sharex="col", sharey="row", squeeze=False)
    for row, (label, looks) in zip(axes, rows.items(), strict=True):
        row[0].set_ylabel(label)
        for ax, regulariser in zip(row, regularisers, strict=True):
            for quantity, look in looks.items():
                against_strength(
                    ax,
                    *(np.asarray(values) for values in curves[quantity][regulariser]),
                    regulariser=regulariser,
                    untrained=(untrained or {}).get(quantity),
                    reported=(reported or {}).get(quantity, {}).get(regulariser),
                    **look,
                )
    for ax in axes[:-1].flat:
        ax.set_xlabel("")
    handles = {label: h for ax in axes.flat for h, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    if open_marks:
        handles[open_marks] = plt.Line2D([], [], color="0.4", marker="o", linestyle="--", markerfacecolor="white")
    fig.legend(
        handles.values(), handles.keys(), loc="outside upper center", ncols=len(handles) if len(handles) < 6 else 3
    )
    return fig
