import datasets
import numpy as np
import pandas as pd
import pytest

from neuronkit import InputError, data
from neuronkit.data import tasks, weights


def counts(split):
    names = split.features["label"].names
    return {names[i]: int(n) for i, n in enumerate(np.bincount(split["label"], minlength=len(names))) if n}


def test_the_packaged_texts_are_there_in_full():
    assert counts(data.load("rotten_tomatoes")["train"]) == {"negative": 5405, "positive": 7403}
    amazon, tweets = (data.load(name)["train"] for name in ("vader_amazon", "vader_tweets"))
    assert counts(amazon) == {"negative": 1235, "neutral": 723, "positive": 1750}
    assert counts(tweets) == {"negative": 1087, "neutral": 768, "positive": 2345}
    assert tweets["text"][1] == "Yay. Another good phone interview."
    r8, newsgroups = data.load("r8"), data.load("newsgroups")
    assert (r8["train"].num_rows, r8["test"].num_rows) == (5485, 2189)
    assert (newsgroups["train"].num_rows, newsgroups["test"].num_rows) == (11293, 7528)
    assert counts(r8["test"])["acq"] == 696 and len(newsgroups["train"].features["label"].names) == 20


def test_a_packaged_model_is_a_folder_that_transformers_reads():
    folder = weights.named("minilm-l6")
    assert sorted(p.name for p in folder.iterdir() if p.name != "checksums.json") == sorted(weights.KEPT)
    assert weights.named("some/hub-id") == "some/hub-id"
    assert weights.named(str(folder)) == folder
    with pytest.raises(InputError, match="/nowhere is not a folder"):
        weights.named("/nowhere")
    with pytest.raises(InputError, match="is a model, not a data set"):
        data.load("minilm-l6")


def test_a_task_is_balanced_and_its_splits_share_no_text():
    found = tasks.load("rotten_tomatoes", dev=1500, test=1500)
    assert {split: len(texts) for split, (texts, _) in found.items()}["dev"] == 1500
    for texts, labels in found.values():
        assert len(texts) == len(labels) and np.bincount(labels).tolist() == [len(labels) // 2] * 2
    texts = [text for split, _ in found.values() for text in split]
    assert len(texts) == len(set(texts)) > 10_500
    again = tasks.load("rotten_tomatoes", dev=1500, test=1500)
    other = tasks.load("rotten_tomatoes", dev=1500, test=1500, seed=1)
    assert found["dev"][0] == again["dev"][0] != other["dev"][0]


@pytest.mark.parametrize("name", ["vader_amazon", "vader_tweets", "r8", "newsgroups"])
def test_the_other_tasks(name):
    found = tasks.load(name, train=90, dev=60, test=60)
    classes = len(tasks.about(name).classes)
    assert {split: len(labels) for split, (_, labels) in found.items()} == {"train": 90, "dev": 60, "test": 60}
    assert all(np.bincount(labels).tolist() == [len(labels) // classes] * classes for _, labels in found.values())
    own_test = data.load(name).get("test")
    assert own_test is None or set(found["test"][0]) <= {text.strip() for text in own_test["text"]}


def test_values_per_task():
    assert tasks.per_task(["a", "b"], [3]) == {"a": 3, "b": 3} and tasks.per_task(["a", "b"], [1, 2])["b"] == 2
    with pytest.raises(InputError, match="3 values for 2 tasks"):
        tasks.per_task(["a", "b"], [1, 2, 3])


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "jsonl"])
def test_your_own_file(tmp_path, suffix):
    table = pd.DataFrame({"text": ["Ü good", "bad"] * 30, "label": ["positive", "negative"] * 30})
    table["text"] += [f" {i}" for i in range(60)]
    path = tmp_path / f"own.{suffix}"
    write = {
        "csv": lambda: table.to_csv(path, index=False),
        "tsv": lambda: table.to_csv(path, index=False, sep="\t"),
        "parquet": lambda: table.to_parquet(path),
        "jsonl": lambda: table.to_json(path, orient="records", lines=True),
    }
    write[suffix]()
    found = tasks.load("rotten_tomatoes", source=str(path), dev=10, test=10)
    assert len(found["train"][0]) == 40 and found["train"][0][1].startswith("Ü good")


def test_a_folder_with_a_test_file_and_pairs(tmp_path):
    for split in ("train", "test"):
        rows = {"text": ["a", "b"], "text_pair": [f"{split} c", f"{split} d"], "label": ["x", "y"]}
        pd.DataFrame(rows).to_csv(tmp_path / f"{split}.csv", index=False)
    found = data.load("qnli", source=str(tmp_path))
    assert found["train"]["text"] == ["a train c", "b train d"] and found["test"]["label"] == [0, 1]


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"words": ["a"], "label": ["x"]}, "has no column text: it has words, label"),
        ({"text": ["a"]}, "has no column label"),
        ({"text": [], "label": []}, "no texts in its train split"),
        ({"text": ["a", "b"], "label": ["x", "x"]}, "has one class only"),
        ({"text": ["a", None], "label": ["x", "y"]}, "no text or no label in row 2"),
    ],
)
def test_a_file_in_another_form_is_named(tmp_path, table, sentence):
    pd.DataFrame(table).to_csv(tmp_path / "own.csv", index=False)
    with pytest.raises(InputError, match=rf"own\.csv.*{sentence}"):
        data.load("rotten_tomatoes", source=str(tmp_path / "own.csv"))


def test_files_that_are_no_tables(tmp_path):
    (tmp_path / "own.txt").write_text("a")
    with pytest.raises(InputError, match="is not CSV, TSV, parquet or jsonl"):
        data.load("r8", source=str(tmp_path / "own.txt"))
    (tmp_path / "own.parquet").write_text("a")
    with pytest.raises(InputError, match="could not be read"):
        data.load("r8", source=str(tmp_path / "own.parquet"))
    with pytest.raises(InputError, match="needs a train file"):
        data.load("r8", source=str(tmp_path))
    with pytest.raises(InputError, match="is not a file or folder"):
        data.load("r8", source=str(tmp_path / "none.csv"))


def test_labels_that_are_not_the_tasks_and_too_few_texts(tmp_path):
    path = tmp_path / "own.csv"
    pd.DataFrame({"text": ["a", "b"], "label": ["x", "y"]}).to_csv(path, index=False)
    with pytest.raises(InputError, match="needs the label negative, the data have x, y"):
        tasks.load("rotten_tomatoes", source=str(path), dev=2, test=2)
    pd.DataFrame({"text": ["a", "b", "c"], "label": ["negative", "positive", "positive"]}).to_csv(path, index=False)
    with pytest.raises(InputError, match="0 texts of its rarest class left for dev"):
        tasks.load("rotten_tomatoes", source=str(path), dev=2, test=2)
    with pytest.raises(InputError, match="dev is 1"):
        tasks.load("rotten_tomatoes", dev=1, test=2)
    with pytest.raises(InputError, match='unknown task "rotten"'):
        tasks.load("rotten", dev=2, test=2)
    with pytest.raises(InputError, match="is in no package"):
        tasks.load("mnli", dev=3, test=3)


@pytest.mark.parametrize(
    ("name", "columns", "classes", "mapped"),
    [
        ("rotten_tomatoes", ("sentence",), ["negative", "positive"], ["negative", "positive"]),
        ("vader_amazon", ("text",), ["neg", "pos"], ["negative", "positive"]),
        ("vader_tweets", ("text",), ["negative", "neutral", "positive"], ["negative", "neutral", "positive"]),
        ("mnli", ("premise", "hypothesis"), ["entailment", "neutral", "contradiction"], None),
        ("qnli", ("question", "sentence"), ["entailment", "not_entailment"], None),
        ("newsgroups", ("text",), ["World", "Sports", "Business", "Sci/Tech"], None),
        ("r8", ("content",), ["Company", "EducationalInstitution", "Artist", "Athlete"], None),
    ],
)
def test_the_hubs_data_sets_come_in_the_same_form(monkeypatch, name, columns, classes, mapped):
    asked = []

    def stand_in(hub_id, config):
        asked.append(hub_id)
        features = {c: datasets.Value("string") for c in columns} | {"label": datasets.ClassLabel(names=classes)}
        found = datasets.DatasetDict()
        for split in ("train", "test", "validation", "validation_matched"):
            rows = {c: [f"{split} {c} {i}" for i in range(40)] for c in columns}
            rows["label"] = [i % len(classes) for i in range(40)]
            found[split] = datasets.Dataset.from_dict(rows, features=datasets.Features(features))
        return found

    monkeypatch.setattr(datasets, "load_dataset", stand_in)
    found = data.load(name, source="hub")
    assert found["train"].features["label"].names == (mapped or classes)
    held_out = {"rotten_tomatoes": "validation", "qnli": "validation", "mnli": "validation_matched"}.get(name, "test")
    assert found["test"]["text"][3] == " ".join(f"{held_out} {c} 3" for c in columns)
    split = tasks.load(name, source="hub", dev=6, test=6)
    assert len(split["dev"][0]) == 6 and asked[0].count("/") == 1


def test_no_network_is_said(monkeypatch):
    def offline(*args):
        raise ConnectionError("no route")

    monkeypatch.setattr(datasets, "load_dataset", offline)
    with pytest.raises(InputError, match="stanfordnlp/sst2 could not be had"):
        data.load("rotten_tomatoes", source="hub")
