"""Where things are: the checkout that is read, and the folder that results are written to."""

import os
from pathlib import Path

from neuronkit import InputError


def root() -> Path:
    """The checkout: the nearest folder upwards from here that holds _toc.yml and notebooks/, else the package's."""
    here = Path.cwd()
    for folder in (here, *here.parents, Path(__file__).parents[2]):
        if (folder / "_toc.yml").is_file() and (folder / "notebooks").is_dir():
            return folder
    raise InputError("no book here: run this in a checkout of the project (a folder with _toc.yml and notebooks/).")


def work() -> Path:
    """The folder of store/, runs/ and _build/: NEURONKIT_HOME where it is set, else the checkout."""
    return Path(os.environ.get("NEURONKIT_HOME") or root())


def make(folder: Path) -> Path:
    """The folder, made where it is missing; InputError where it can't be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(13, "no permission to write")
    except OSError as error:
        raise InputError(
            f"{folder} can't be written ({error.strerror}): set NEURONKIT_HOME to a folder that can be."
        ) from error
    return folder
