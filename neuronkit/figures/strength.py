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
