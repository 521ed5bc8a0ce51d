"""Runs: which notebooks were executed with which parameters, and where their entries in the store are.

A run is `runs/NAME.json`. An executed notebook is an entry of the store like any other result: its key holds its
source, parameters, code, versions, and the claims and reported values that it shows.
"""

import json
import re
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from neuronkit import InputError, unknown
from neuronkit.companion import keys, notebooks, places, store
from neuronkit.companion.ledger import book


@dataclass
class Run:
    """A manifest: notebooks by name, each {"key", "parameters", "seconds"} or {"failed": reason, "parameters"}."""

    name: str
    profile: str
    notebooks: dict[str, dict] = field(default_factory=dict)

    def save(self) -> None:
        """Write the manifest aside and rename it."""
        path = folder() / f"{self.name}.json"
        aside = path.with_suffix(".new")
        aside.write_text(json.dumps(asdict(self), indent=1))
        aside.replace(path)

    def entry(self, notebook: str) -> Path | None:
        """The store's entry of an executed notebook of this run, or None."""
        key = self.notebooks.get(notebook, {}).get("key")
        place = store.folder() / key if key else None
        return place if place and place.exists() else None

    def ledgers(self) -> dict[str, dict]:
        """{notebook: its ledger} of the executed notebooks."""
        entries = {name: self.entry(name) for name in self.notebooks}
        return {name: json.loads((e / "ledger.json").read_text()) for name, e in entries.items() if e}


def folder() -> Path:
    """The folder of manifests."""
    return places.work() / "runs"


def names() -> list[str]:
    """The runs that there are."""
    return sorted(path.stem for path in folder().glob("*.json"))


def load(name: str) -> Run:
    """The run of that name; InputError where there is none."""
    check_name(name)
    if name not in names():
        raise unknown("run", name, names())
    path = folder() / f"{name}.json"
    try:
        return Run(**json.loads(path.read_text()))
    except (ValueError, TypeError, OSError):
        raise InputError(f"{path} is not a run as it was written: remove it and make the run again.") from None


def check_name(name: str) -> None:
    """InputError unless a run name is one word of letters, digits, - _ and ."""
    if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*", name):
        raise InputError(f'"{name}" can\'t name a run: use one word of letters, digits, "-", "_" and ".".')


def notebook_key(notebook: notebooks.Notebook, parameters: dict) -> tuple[str, dict]:
    """(key, what it is made of) of the executed form of a notebook with these parameters."""
    import ast

    about = notebook.about
    shown = {kind: {i: book(kind).get(i) for i in about.get(kind, [])} for kind in ("exhibits", "claims")}
    parts = {
        "source": notebook.text,
        "parameters": keys.describe(parameters),
        "files": keys.describe(named_files(parameters)),
        "code": keys.code(keys.imports(ast.parse(notebook.code))),
        "shown": shown,
    }
    return keys.digest(parts), parts


def named_files(parameters: dict) -> dict[str, Path]:
    """{parameter: path} of the parameters that name a file or folder; its contents count, not its name."""
    texts = {n: v for n, v in parameters.items() if isinstance(v, str) and v}
    return {n: Path(v) for n, v in texts.items() if Path(v).exists()}


def state(run: Run | None, name: str, parameters: dict | None = None) -> str:
    """fresh | stale | missing | failed: how the notebook stands in a run (with its own parameters there by default)."""
    made = run.notebooks.get(name) if run else None
    if made is None:
        return "missing"
    if "failed" in made:
        return "failed"
    if run.entry(name) is None:
        return "missing"
    key, _ = notebook_key(notebooks.read(name), parameters or made["parameters"])
    return "fresh" if key == made["key"] else "stale"


def clean(everything: bool = False) -> tuple[int, int]:
    """Remove entries of the store that no run reaches, that are older than a day and not locked; (number, bytes).

    everything: all runs, entries and built books too (data sets stay).
    """
    import filelock

    if everything:
        for name in names():
            (folder() / f"{name}.json").unlink()
    kept, removed, size = _reached(), 0, 0
    for entry in sorted(store.folder().glob("*")) if store.folder().exists() else []:
        key = entry.name.split(".")[0]
        young = not everything and time.time() - entry.stat().st_mtime < 24 * 3600
        if key in kept or young or entry.suffix == ".lock":
            continue
        lock = filelock.FileLock(store.folder() / f"{key}.lock", timeout=0)
        try:
            with lock:
                size += _remove(entry)
                removed += 1
        except filelock.Timeout:
            continue
        Path(lock.lock_file).unlink(missing_ok=True)
    if everything:
        size += _remove(places.work() / "_build")
    return removed, size


def _reached() -> set[str]:
    kept = set()
    for run in map(load, names()):
        for name in run.notebooks:
            if entry := run.entry(name):
                kept |= {entry.name, *json.loads((entry / "meta.json").read_text())["read"]}
    return kept


def _remove(path: Path) -> int:
    import shutil

    size = sum(f.stat().st_size for f in [path, *path.rglob("*")] if f.is_file())
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    return size
