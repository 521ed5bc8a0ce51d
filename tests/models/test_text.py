import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from neuronkit import InputError
from neuronkit.models import text

DOCUMENTS = [f"Chapter {i}: the quick brown fox jumps over {i} lazy dogs, again and again." for i in range(20)]


@pytest.fixture(scope="module")
def found():
    return text.encoded(text.joined(DOCUMENTS), vocabulary=280, seed=0)


def test_documents_come_back_from_their_tokens_and_none_is_in_both_parts(found):
    tokenizer = tokenizers.Tokenizer.from_str(found["tokenizer"])
    parts = []
    for name in ("train", "evaluation"):
        ends = np.flatnonzero(found[name] == 0)
        assert ends[-1] == len(found[name]) - 1
        parts.append([tokenizer.decode(d[d > 0].tolist()) for d in np.split(found[name], ends + 1)[:-1]])
    assert sorted(parts[0] + parts[1]) == sorted(DOCUMENTS)
    assert [len(p) for p in parts] == found["documents"] == [18, 2]


def test_the_tokenizer_is_trained_on_the_training_part_only():
    def vocabulary(held_out_word):
        documents = [held_out_word * 50 if i in held_out else d for i, d in enumerate(DOCUMENTS)]
        return text.encoded(text.joined(documents), vocabulary=270, seed=0)["tokenizer"]

    order = np.random.default_rng(0).permutation(len(DOCUMENTS))
    held_out = set(order[:2].tolist())
    assert vocabulary("zebra ") == vocabulary("xylophone ")


def test_the_seed_draws_what_is_held_out(found):
    other = text.encoded(text.joined(DOCUMENTS), vocabulary=280, seed=1)
    assert not np.array_equal(found["evaluation"], other["evaluation"])
    again = text.encoded(text.joined(DOCUMENTS), vocabulary=280, seed=0)
    assert np.array_equal(found["train"], again["train"]) and found["tokenizer"] == again["tokenizer"]


@given(st.integers(2, 200), st.integers(1, 20))
def test_sequences_cover_the_stream_once(n, length):
    stream = np.arange(n)
    if n <= length:
        with pytest.raises(InputError, match="too few for one sequence"):
            text.sequences(stream, length)
        return
    rows = text.sequences(stream, length)
    assert rows.shape == ((n - 1) // length, length + 1)
    assert np.array_equal(rows[:, 1:].ravel(), np.arange(1, len(rows) * length + 1))  # each target once


def test_shuffling_keeps_the_tokens():
    stream = np.arange(100) % 7
    mixed = text.shuffled(stream, seed=0)
    assert not np.array_equal(mixed, stream) and np.array_equal(np.sort(mixed), np.sort(stream))


@pytest.mark.parametrize(
    ("documents", "vocabulary", "sentence"),
    [
        ([], 300, "0 documents: two are needed"),
        (["one", "  "], 300, "1 documents: two are needed"),
        (DOCUMENTS, 5000, "bytes and text make one of"),
        (DOCUMENTS, 100, "bytes and text make one of 257"),
    ],
)
def test_a_mistake_is_one_sentence(documents, vocabulary, sentence):
    with pytest.raises(InputError, match=sentence):
        text.encoded(text.joined(documents), vocabulary=vocabulary, seed=0)
