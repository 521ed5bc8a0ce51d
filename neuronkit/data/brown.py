"""The Brown corpus: American English of 1961 in 500 documents, each word with its part of speech.

Columns: document ("ca01"), genre, words and tags (Brown's own, as they come, in capitals), one row per sentence, one
split, train.
"""

import re
import tarfile
from pathlib import Path

from neuronkit import InputError

FORM = 1  # raised when the cached form changes
GENRES = {
    "a": "news",
    "b": "editorial",
    "c": "reviews",
    "d": "religion",
    "e": "hobbies",
    "f": "lore",
    "g": "belles lettres",
    "h": "government",
    "j": "learned",
    "k": "fiction",
    "l": "mystery",
    "m": "science fiction",
    "n": "adventure",
    "p": "romance",
    "r": "humor",
}


def from_package(archive: Path):
    """The corpus in the package file as a DatasetDict, in the order of the documents' names."""
    import datasets

    rows: dict[str, list] = {"document": [], "genre": [], "words": [], "tags": []}
    with tarfile.open(archive) as tar:
        members = {Path(m.name).name: m for m in tar if re.fullmatch(r"package/c[a-r]\d\d", m.name)}
        for name in sorted(members):
            for line in tar.extractfile(members[name]).read().decode("ascii").splitlines():
                if line.strip():
                    words, _, tags = zip(*(token.rpartition("/") for token in line.split()), strict=True)
                    rows["document"].append(name)
                    rows["genre"].append(GENRES[name[1]])
                    rows["words"].append(list(words))
                    rows["tags"].append([tag.upper() for tag in tags])
    return datasets.DatasetDict(train=datasets.Dataset.from_dict(rows))


def from_hub(limit: int | None):
    """There is no such data set of the paper on the hub; raises InputError."""
    raise InputError('brown is read from its package only: use source="package".')


def from_files(path, *, seed: int):
    """No other files have Brown's form; raises InputError."""
    raise InputError('brown is read from its package only: use source="package", or another name for your own text.')
