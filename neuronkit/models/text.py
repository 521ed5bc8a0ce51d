"""Text as the sequences of tokens that a language model reads.

A tokenizer is made of the text itself: byte-level BPE, trained on the training part. Documents are encoded one after
the other, each ended by END, and the stream is cut into sequences. Whole documents are held out for evaluation.
"""

import numpy as np

from neuronkit import InputError

END = "<|end|>"  # token 0, after each document
HELD_OUT = 0.1  # share of the documents


def joined(documents: list[str]) -> np.ndarray:
    """The documents as bytes in one array (N,) uint8, separated by zeros: what `encoded` takes, quick to hash."""
    return np.frombuffer("\0".join(documents).encode(), dtype=np.uint8)


def encoded(text, *, vocabulary: int, seed: int) -> dict:
    """Documents as tokens, with a byte-level BPE trained on those that are not held out.

    text: as `joined` gives it. vocabulary: tokens of the BPE, the 256 bytes and END among them. seed: of the draw of
    documents that are held out, about one in ten of them and at least one.

    Returns {"tokenizer": JSON, "train": (N,) int32, "evaluation": (M,) int32, "documents": [train, held out]}.
    Raises InputError for an empty text, a single document, or a vocabulary that the text can't fill.
    """
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers, trainers

    documents = [d for d in np.asarray(text).tobytes().decode().split("\0") if d.strip()]
    if len(documents) < 2:
        raise InputError(
            f"the text has {len(documents)} documents: two are needed, one to train on and one to test on."
        )
    order = np.random.default_rng(seed).permutation(len(documents))
    held_out = max(1, int(HELD_OUT * len(documents)))
    parts = {"evaluation": sorted(order[:held_out]), "train": sorted(order[held_out:])}
    parts = {name: [documents[i] for i in part] for name, part in parts.items()}
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(parts["train"], trainer)
    size = tokenizer.get_vocab_size()
    if size != vocabulary:
        raise InputError(f"vocabulary is {vocabulary}, but bytes and text make one of {size}: ask for that, or less.")
    streams = {name: _stream(tokenizer, part) for name, part in parts.items()}
    return {"tokenizer": tokenizer.to_str(), "documents": [len(parts["train"]), held_out], **streams}


def _stream(tokenizer, documents: list[str]) -> np.ndarray:
    ids = (encoding.ids for encoding in tokenizer.encode_batch(documents))
    return np.concatenate([np.array([*document, 0], dtype=np.int32) for document in ids])


def sequences(tokens, length: int) -> np.ndarray:
    """A stream (N,) cut into rows of `length` + 1 that overlap by one: inputs are row[:-1], targets row[1:].

    What does not fill a row is left out. Raises InputError where not even one is filled.

    >>> sequences(np.arange(8), 3).tolist()
    [[0, 1, 2, 3], [3, 4, 5, 6]]
    """
    tokens = np.asarray(tokens)
    if len(tokens) <= length:
        raise InputError(f"the text has {len(tokens)} tokens, too few for one sequence of {length}: give more text.")
    rows = np.lib.stride_tricks.sliding_window_view(tokens, length + 1)
    return rows[::length]


def shuffled(tokens, *, seed: int) -> np.ndarray:
    """The same tokens (N,) in an order without structure: the control for what the text's features do."""
    return np.random.default_rng(seed).permutation(np.asarray(tokens))
