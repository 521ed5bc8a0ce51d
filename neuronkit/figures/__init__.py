"""One function per kind of plot: each takes and returns an Axes and computes nothing."""
