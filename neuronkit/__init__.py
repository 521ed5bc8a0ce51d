"""Models and metrics of four papers on single units in neural networks."""

__version__ = "0.1.0"


class InputError(ValueError):
    """A mistake in what the user passed: the message is one sentence that says what to do."""
