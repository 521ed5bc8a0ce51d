"""The classification tasks of paper 3: which classes of which data set, balanced, split, with their words.

A task stands for one or two of the paper's where its own data are not packaged (see `stands_for`).
"""

from dataclasses import dataclass

import numpy as np

from neuronkit import InputError, data, unknown


@dataclass(frozen=True)
class Task:
    """The classes of a task, in the order of their label ids; for each a phrase and a word that verbalise it."""

    classes: tuple[str, ...]
    phrases: tuple[str, ...]
    words: tuple[str, ...]
    kind: str  # sentiment | topic | inference
    stands_for: str
    hub_classes: tuple[str, ...] = ()  # where the hub's data set has others


TWO, THREE = ("negative", "positive"), ("negative", "neutral", "positive")
TASKS = {
    "rotten_tomatoes": Task(
        TWO, ("a bad, boring movie", "a good, enjoyable movie"), TWO, kind="sentiment", stands_for="SST-2"
    ),
    "vader_amazon": Task(TWO, ("terrible", "great"), TWO, kind="sentiment", stands_for="IMDB"),
    "vader_tweets": Task(THREE, ("terrible", "okay", "great"), THREE, kind="sentiment", stands_for="Tweet"),
    "r8": Task(
        ("earn", "acq"),
        ("earnings", "acquisition"),
        TWO,
        kind="topic",
        stands_for="DBpedia",
        hub_classes=("Company", "Athlete"),
    ),
    "newsgroups": Task(
        ("rec.sport.baseball", "rec.sport.hockey"),
        ("baseball", "hockey"),
        TWO,
        kind="topic",
        stands_for="AG News",
        hub_classes=("Business", "Sports"),
    ),
    "mnli": Task(
        ("entailment", "neutral", "contradiction"),
        ("true", "unknown", "false"),
        THREE,
        kind="inference",
        stands_for="MNLI",
    ),
    "qnli": Task(
        ("entailment", "not_entailment"), ("answered", "unanswered"), TWO, kind="inference", stands_for="QNLI"
    ),
}


def about(name: str) -> Task:
    """The task of a name. Raises InputError for an unknown one."""
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    return TASKS[name]


def per_task(names: list[str], values: list) -> dict:
    """{task: its value} of one value for all tasks, or one per task. Raises InputError for another number of them."""
    if len(values) not in (1, len(names)):
        raise InputError(f"there are {len(values)} values for {len(names)} tasks: give one for all, or one per task.")
    return dict(zip(names, values * (len(names) if len(values) == 1 else 1), strict=True))


def load(name: str, *, source: str = "package", train: int | None = None, dev: int, test: int, seed: int = 0) -> dict:
    """The texts and labels of a task: {"train" | "dev" | "test": (list of str, (N,) int)}, each class as often.

    source: as for `data.load`. dev, test: items, rounded down to a multiple of the number of classes; the test items
    come from the source's own test split where it has one. train: at most so many of the rest, None for all. A text
    that occurs twice counts once, so that no text is in two splits.

    Raises InputError for an unknown task, classes that the data lack, and splits that leave a class without items.
    """
    task = about(name)
    for split, items in (("train", train), ("dev", dev), ("test", test)):
        if items is not None and items < len(task.classes):
            raise InputError(f"{split} is {items}: {name} needs at least {len(task.classes)} items, one of each class.")
    found = data.load(name, source=source)
    classes = task.hub_classes if source == "hub" and task.hub_classes else task.classes
    seen: set[str] = set()
    pools = {split: _pool(found[split], classes, name, seed, seen) for split in ("test", "train") if split in found}
    drawn = {}
    for split, items in (("test", test), ("dev", dev), ("train", train)):
        pool = pools["test" if split == "test" and "test" in pools else "train"]
        drawn[split] = _draw(pool, items, name, split)
    return drawn


def _pool(split, classes, name: str, seed: int, seen: set[str]) -> list[list[str]]:
    """The texts of each class in random order, those in `seen` left out; they are added to it."""
    names = split.features["label"].names
    strange = [c for c in classes if c not in names]
    if strange:
        raise InputError(f"{name} needs the label {strange[0]}, the data have {', '.join(names[:6])}: rename yours.")
    ids, texts = np.asarray(split["label"]), list(split["text"])
    pool = [[] for _ in classes]
    place = {names.index(c): i for i, c in enumerate(classes)}
    for row in np.random.default_rng(seed).permutation(len(ids)):
        text, label = texts[int(row)], place.get(ids[row])
        if label is not None and text not in seen:
            seen.add(text)
            pool[label].append(text)
    return pool


def _draw(pool: list[list[str]], items: int | None, name: str, split: str) -> tuple[list[str], np.ndarray]:
    """Take as many texts of each class out of the pool, None for all that keep the balance, mixed in turn."""
    there = min(map(len, pool))
    each = there if items is None else items // len(pool)
    if split == "train":
        each = min(each, there)  # at most so many
    if each > there or each == 0:
        raise InputError(
            f"{name} has {there} texts of its rarest class left for {split}, {max(each, 1)} are needed: ask for fewer."
        )
    taken = [[texts.pop() for _ in range(each)] for texts in pool]
    mixed = [text for texts in zip(*taken, strict=True) for text in texts]
    return mixed, np.tile(np.arange(len(pool)), each)
