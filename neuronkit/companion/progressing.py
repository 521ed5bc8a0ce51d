"""Progress of long loops: a bar in JupyterLab, a file that the runner reads when it runs the notebook."""

import json
import os
import time
from pathlib import Path

_PARENT = os.getppid()


def progress(steps, what: str = "", *, total: int | None = None):
    """Iterate over `steps`, telling how far it is; `what` names the loop in a few words.

    >>> [n for n in progress(range(3), "counting")]
    [0, 1, 2]
    """
    total = len(steps) if total is None else total
    folder = os.environ.get("NEURONKIT_CELL")
    if folder is None:
        import tqdm.auto

        yield from tqdm.auto.tqdm(steps, desc=what, total=total, leave=False, disable=_in_a_worker())
        return
    started = told = time.time()
    state = {"what": what, "total": total, "started": started}
    _tell(Path(folder), state | {"done": 0})  # before the first step, which may be a long time coming
    for done, step in enumerate(steps):
        if time.time() - told > 0.3:
            told = time.time()
            _tell(Path(folder), state | {"done": done})
        yield step
        if os.getppid() != _PARENT:  # the runner was killed: nobody waits for this result
            os._exit(1)
    (Path(folder) / f"progress-{os.getpid()}.json").unlink(missing_ok=True)


def _in_a_worker() -> bool:
    return "NEURONKIT_WORKER" in os.environ


def _tell(folder: Path, state: dict) -> None:
    aside = folder / f"progress-{os.getpid()}.new"
    try:
        aside.write_text(json.dumps(state | {"worker": _in_a_worker()}))
        aside.replace(folder / f"progress-{os.getpid()}.json")
    except OSError:
        pass  # the run was ended and its folder is gone: progress is no reason to fail
