"""Computed results, kept by what they depend on: `store/KEY/` exists, so it is whole and fresh.

An entry is written aside and renamed. One lock per key (the operating system's, so a killed process holds none)
makes who comes second wait and read. A long computation may keep a checkpoint in `store/KEY.part/`.
"""

import contextlib
import inspect
import json
import os
import shutil
import tempfile
import warnings
from pathlib import Path

import numpy as np

from neuronkit import InputError
from neuronkit.companion import keys, places
from neuronkit.companion.progressing import progress

AMBIENT = ("progress", "checkpoint")  # arguments that a computation is given and that do not change its result


class Result(dict):
    """What a cached function returned, read back from the store; `key` is the entry's name."""

    key: str


def folder() -> Path:
    """The store."""
    return places.work() / "store"


def cached(function, **arguments) -> Result:
    """function(**arguments), computed once: the second call with the same code and values reads the result.

    function: a module-level function of neuronkit that returns a dict (nested dicts and lists allowed) of plain
    values, NumPy arrays and DataFrames, and takes all its randomness from its arguments. If it has a parameter
    `progress` or `checkpoint`, it is given one.
    It is computed with one BLAS and torch thread, so that a result does not depend on the machine's load.

    Raises InputError for a function or an argument that can't be part of a key.
    """
    return _cached(function, arguments)


def sweep(function, jobs: list[dict] | dict, *, workers: int | None = None) -> list[Result] | dict:
    """[cached(function, **job) for job in jobs], the missing ones computed in parallel processes.

    Each job is an entry of its own: a sweep that was stopped goes on with what is missing. Of jobs by name, {name:
    job}, the results come by name too.
    workers: processes; by default what the runner allows, or the number of cores.
    """
    import joblib

    if isinstance(jobs, dict):
        return dict(zip(jobs, sweep(function, list(jobs.values()), workers=workers), strict=True))
    workers = workers or int(os.environ.get("NEURONKIT_JOBS", os.cpu_count() or 1))
    missing = [job for job in jobs if not (folder() / _call(function, job)[0]).exists()]
    if workers == 1 or len(missing) < 2:
        for job in progress(missing, f"jobs of {function.__name__}"):
            _cached(function, job, wait=False)  # what another notebook computes now comes last: they share a sweep
        return [cached(function, **job) for job in jobs]
    pool = joblib.Parallel(n_jobs=workers, return_as="generator_unordered")
    done = pool(joblib.delayed(_in_worker)(function, job) for job in missing)
    try:
        for _ in progress(done, f"jobs of {function.__name__}", total=len(missing)):
            pass
    except BaseException:
        close_pool()
        raise
    return [cached(function, **job) for job in jobs]


def close_pool() -> None:
    """End the processes that sweeps share; the next sweep starts new ones, which costs seconds of imports.

    A pool that is open at its end keeps a kernel from ending in time; it is then killed and leaves files.
    """
    import joblib

    joblib.externals.loky.get_reusable_executor().shutdown(wait=True)


def write(entry: Path, result: dict, parts: dict) -> None:
    """Write a result aside and rename it into place; the checkpoint of its computation is removed."""
    aside = Path(tempfile.mkdtemp(dir=entry.parent, prefix=f"{entry.name[:12]}.new-"))
    tree = _put(result, aside, [])
    (aside / "result.json").write_text(json.dumps(tree))
    (aside / "made_of.json").write_text(json.dumps(parts, indent=1))
    aside.rename(entry)
    shutil.rmtree(f"{entry}.part", ignore_errors=True)


def read(entry: Path) -> Result:
    """The result of an entry; its arrays are mapped from disk, read-only."""
    result = Result(_get(json.loads((entry / "result.json").read_text()), entry))
    result.key = entry.name
    return result


def _cached(function, arguments: dict, *, wait: bool = True) -> Result | None:
    """As `cached`; without wait, None where another process computes the same just now."""
    import filelock

    key, parts, arguments = _call(function, arguments)
    entry = folder() / key
    if not _whole(entry):
        places.make(folder())
        try:
            with filelock.FileLock(f"{entry}.lock", timeout=-1 if wait else 0):
                if not _whole(entry):
                    _compute(function, arguments, entry, parts)
        except filelock.Timeout:
            return None
    _note(key)
    return read(entry)


def _compute(function, arguments: dict, entry: Path, parts: dict) -> None:
    shutil.rmtree(entry, ignore_errors=True)
    given = inspect.signature(function).parameters
    ambient = {"progress": progress, "checkpoint": Path(f"{entry}.part")}
    ambient = {name: value for name, value in ambient.items() if name in given}
    with _one_thread("torch" in parts["code"]):
        result = function(**arguments, **ambient)
    write(entry, result, parts)


def _whole(entry: Path) -> bool:
    """Whether an entry is there and can be read; one that a disk or a hand has damaged is computed again."""
    try:
        read(entry)
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        warnings.warn(f"{entry} is damaged ({error}): it is computed again.", stacklevel=3)
        return False
    return True


def _call(function, arguments: dict) -> tuple[str, dict, dict]:
    """(key, what it is made of, all arguments with their defaults, without the ambient ones)."""
    try:
        bound = inspect.signature(function).bind(**arguments)
    except (TypeError, ValueError) as error:
        raise InputError(f"{getattr(function, '__name__', function)} can't be called so: {error}.") from error
    bound.apply_defaults()
    arguments = {name: value for name, value in bound.arguments.items() if name not in AMBIENT}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            arguments |= arguments.pop(name)
    return *keys.of_call(function, arguments), arguments


def _in_worker(function, job: dict) -> None:
    os.environ["NEURONKIT_WORKER"] = "1"
    cached(function, **job)


def _note(key: str) -> None:
    """Tell the runner which results the notebook read."""
    cell = os.environ.get("NEURONKIT_CELL")
    if cell:
        with (Path(cell) / "read.txt").open("a") as file:
            file.write(f"{key}\n")


@contextlib.contextmanager
def _one_thread(torch_too: bool):
    import threadpoolctl

    with threadpoolctl.threadpool_limits(1):
        if not torch_too:
            yield
            return
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def _put(value, aside: Path, files: list):
    """The value as JSON; arrays and tables go to files of their own and are named instead."""
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("a cached function returned a dict whose keys are not strings")
        return {key: _put(item, aside, files) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_put(item, aside, files) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    name = f"{len(files)}"
    files.append(name)
    if isinstance(value, np.ndarray):
        np.save(aside / f"{name}.npy", value, allow_pickle=False)
        return {"__file__": f"{name}.npy"}
    if hasattr(value, "to_parquet"):
        value.to_parquet(aside / f"{name}.parquet")
        return {"__file__": f"{name}.parquet"}
    raise TypeError(f"a cached function returned a {type(value).__name__}, which the store can't keep")


def _get(tree, entry: Path):
    if isinstance(tree, list):
        return [_get(item, entry) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if "__file__" not in tree:
        return {key: _get(item, entry) for key, item in tree.items()}
    file = entry / tree["__file__"]
    if file.suffix == ".npy":
        array = np.load(file, mmap_mode="r", allow_pickle=False)
        return np.asarray(array) if array.ndim else array[()]
    import pandas as pd

    return pd.read_parquet(file)
