"""Tiny encoders with files of their own, in the two forms that paper 3's code reads."""

import numpy as np
import pytest
import torch
import transformers
from tokenizers import ByteLevelBPETokenizer

GOOD = [f"a good film about {x}" for x in ("dogs", "cats", "war", "love", "the sea", "a very long road home")]
BAD = [f"a bad film about {x}" for x in ("dogs", "cats", "war", "love", "the sea", "a very long road home")]
TEXTS = [t for pair in zip(BAD, GOOD, strict=True) for t in pair]
LABELS = np.tile([0, 1], len(GOOD))
SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "initializer_range": 0.3,
}


def save(folder, model, tokenizer):
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def bert(tmp_path_factory):
    """An encoder without a head, like a model for sentence embeddings."""
    folder = tmp_path_factory.mktemp("bert")
    words = sorted({w for text in TEXTS for w in text.split()})
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]))
    tokenizer = transformers.BertTokenizer(str(folder / "vocab.txt"))
    config = transformers.BertConfig(vocab_size=len(tokenizer), max_position_embeddings=32, **SMALL)
    torch.manual_seed(0)
    return save(folder, transformers.BertModel(config), tokenizer)


@pytest.fixture(scope="session")
def roberta(tmp_path_factory):
    """A masked language model with its head, in the form of the paper's."""
    folder = tmp_path_factory.mktemp("roberta")
    bpe = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    bpe.train_from_iterator(TEXTS * 5, vocab_size=300, special_tokens=special)
    bpe.save_model(str(folder))
    tokenizer = transformers.RobertaTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))
    config = transformers.RobertaConfig(
        vocab_size=len(tokenizer), max_position_embeddings=40, pad_token_id=1, type_vocab_size=1, **SMALL
    )
    torch.manual_seed(0)
    return save(folder, transformers.RobertaForMaskedLM(config), tokenizer)


READ = {"bert": ("sentence", ["bad", "a good film"]), "roberta": ("mask", ["a", "film"])}


@pytest.fixture(params=["bert", "roberta"])
def case(request):
    """(folder, readout, verbalisers)."""
    readout, verbalisers = READ[request.param]
    if request.param == "roberta":
        verbalisers = ["b", "g"]  # single bytes are single tokens
    return request.getfixturevalue(request.param), readout, verbalisers


def settings(folder, readout, verbalisers, **more):
    return {
        "model": folder,
        "readout": readout,
        "verbalisers": verbalisers,
        "texts": TEXTS,
        "labels": LABELS,
        "dev_texts": TEXTS,
        "dev_labels": LABELS,
        "prompts": 3,
        "length": 10,
        "steps": 6,
        "rate": 0.1,
        "batch": 4,
        "warmup": 0.2,
        "evaluate_every": 3,
        "patience": 6,
        "seed": 0,
    } | more
