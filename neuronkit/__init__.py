"""Models and metrics of four papers on single units in neural networks."""

__version__ = "0.1.0"


class InputError(ValueError):
    """A mistake in what the user passed: the message is one sentence that says what to do."""


def unknown(what: str, name: str, known) -> InputError:
    """The error for a name that is not among `known`, with the nearest known name where one is near.

    >>> unknown("parameter", "sede", ["seed", "runs"])
    InputError('unknown parameter "sede": did you mean "seed"? Known: runs, seed.')
    """
    import difflib

    near = difflib.get_close_matches(name, known, n=1)
    hint = f'did you mean "{near[0]}"? ' if near else ""
    return InputError(f'unknown {what} "{name}": {hint}Known: {", ".join(sorted(known)) or "none"}.')
