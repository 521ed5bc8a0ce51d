"""A quantity against the strength of a regulariser."""

from neuronkit.figures import style


def against_strength(ax, strength, mean, sem, *, regulariser: str, untrained=None, reported=None, **line):
    """Mean ± SEM (n_strengths,) as a line with a band, on a log axis but for dropout; returns the Axes.

    untrained: (mean, sd) of untrained networks, a grey line with a band of 1 sd. reported: [(strength, value), …] of
    the paper, as open diamonds. line: anything that `ax.plot` takes, before the regulariser's own colour and mark.
    """
    if untrained is not None:
        center, sd = untrained
        ax.axhspan(center - sd, center + sd, color=style.UNTRAINED["color"], alpha=0.3, lw=0)
        ax.axhline(center, label="untrained", ls=":", **style.UNTRAINED)
    look = style.REGULARISERS[regulariser] | line
    ax.plot(strength, mean, **look)
    ax.fill_between(strength, mean - sem, mean + sem, color=look["color"], alpha=0.2, lw=0)
    if reported:
        ax.plot(*zip(*reported, strict=True), **style.REPORTED)
    if regulariser != "dropout":
        ax.set_xscale("log")
    ax.set_xlabel(style.STRENGTH[regulariser])
    return ax


def grid(summary, labels: dict, *, untrained: dict | None = None, reported: dict | None = None):
    """A Figure of quantities (rows) against the strength of each regulariser (columns).

    summary: {regulariser: DataFrame} with the strengths as index and columns (quantity, "mean") and (quantity, "sem").
    labels: {quantity: label of its row}. untrained: {quantity: (mean, sd)}. reported: {quantity: {regulariser: pairs}}.
    """
    import matplotlib.pyplot as plt

    size = (2.4 * len(summary), 1.7 * len(labels) + 0.6)
    fig, axes = plt.subplots(len(labels), len(summary), figsize=size, sharex="col", sharey="row", squeeze=False)
    for row, (quantity, label) in zip(axes, labels.items(), strict=True):
        row[0].set_ylabel(label)
        for ax, (regulariser, table) in zip(row, summary.items(), strict=True):
            against_strength(
                ax,
                table.index.to_numpy(),
                table[quantity, "mean"].to_numpy(),
                table[quantity, "sem"].to_numpy(),
                regulariser=regulariser,
                untrained=(untrained or {}).get(quantity),
                reported=(reported or {}).get(quantity, {}).get(regulariser),
            )
    for ax in axes[:-1].flat:
        ax.set_xlabel("")
    handles = {label: h for ax in axes.flat for h, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    fig.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=len(handles))
    return fig
