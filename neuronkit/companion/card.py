"""The run card: what a page was computed with."""

import json
import os
import subprocess
from pathlib import Path

from neuronkit.companion import places

SHOWN = ("neuronkit", "torch", "numpy", "scipy", "scikit-learn", "datasets")


def run_card() -> None:
    """Show what this page was computed with: parameters (changed ones marked), data, versions, commit."""
    from IPython.display import HTML, display

    run = _run()
    defaults = run.get("defaults", {})
    rows = {
        "parameters": ", ".join(
            f"{name} = {value!r}" if value == defaults[name] else f"<b>{name} = {value!r}</b> (not {defaults[name]!r})"
            for name, value in run.get("parameters", {}).items()
        )
        or "as in the cell above",
        "data": ", ".join(run.get("data", [])) or "none",
        "versions": versions(),
        "computed at": f"commit {commit()}",
    }
    lines = "".join(f"<tr><th>{name}</th><td>{text}</td></tr>" for name, text in rows.items())
    display(HTML(f'<table class="run-card" aria-label="run card">{lines}</table>'))


def versions() -> str:
    """Python and the main packages with their versions."""
    import importlib.metadata
    import platform

    shown = (f"{d} {importlib.metadata.version(d)}" for d in SHOWN)
    return ", ".join([f"Python {platform.python_version()}", *shown])


def commit() -> str:
    """The checkout's commit, and whether files of it were changed since."""

    def git(*words):
        done = subprocess.run(["git", "-C", str(places.root()), *words], capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        name = git("rev-parse", "--short=10", "HEAD")
        changed = name and git("status", "--porcelain", "--untracked-files=no")
    except OSError:
        name = changed = ""
    return f"{name or 'a copy without history'}{' + changes' if changed else ''}"


def _run() -> dict:
    cell = os.environ.get("NEURONKIT_CELL")
    return json.loads((Path(cell) / "run.json").read_text()) if cell else {}
