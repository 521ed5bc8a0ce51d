import numpy as np
import pytest
import tokenizers
import torch
import transformers

from neuronkit import InputError
from neuronkit.metrics import sparsity
from neuronkit.models import pretrained, text

DOCUMENTS = [f"The {i}th jury said that {i * i} irregularities took place in the primary election." for i in range(40)]


def saved(folder, activation):
    """A small OPT with a tokenizer, as a user would have in a folder."""
    torch.manual_seed(0)
    coded = text.encoded(text.joined(DOCUMENTS), vocabulary=300, seed=0)
    inner = tokenizers.Tokenizer.from_str(coded["tokenizer"])
    transformers.PreTrainedTokenizerFast(tokenizer_object=inner).save_pretrained(folder)
    config = transformers.OPTConfig(
        vocab_size=300,
        hidden_size=16,
        word_embed_proj_dim=16,
        num_hidden_layers=2,
        ffn_dim=32,
        num_attention_heads=2,
        max_position_embeddings=64,
        activation_function=activation,
    )
    transformers.OPTForCausalLM(config).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def opt(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("opt"), "relu")


def test_use_is_that_of_the_model_called_by_hand(opt):
    rows = pretrained.use(opt, DOCUMENTS, length=16, sequences=8, batch=4)
    assert [r["site"] for r in rows] == [f"model.decoder.layers.{i}.activation_fn" for i in (0, 1)]
    model = transformers.OPTForCausalLM.from_pretrained(opt).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(opt)
    ids = np.concatenate([tokenizer(d, add_special_tokens=False)["input_ids"] for d in DOCUMENTS])[: 8 * 16]
    seen = []
    model.model.decoder.layers[1].fc2.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    with torch.no_grad():
        model(input_ids=torch.tensor(ids).reshape(8, 16))
    active = (seen[0].reshape(8, 16, 32) > 0).numpy()
    assert rows[1]["token"] == pytest.approx(active.mean())
    assert rows[1]["sequence"] == pytest.approx(active.any(1).mean())
    assert rows[1]["batch"] == pytest.approx(active.reshape(2, 64, 32).any(1).mean())
    expected = sparsity.frequency_percentiles(active.sum(1), np.full(8, 16), [50])[0]
    assert rows[1]["median frequency"] == pytest.approx(expected)


def test_a_gelu_model_is_refused(tmp_path):
    with pytest.raises(InputError, match="never exactly zero"):
        pretrained.use(saved(tmp_path, "gelu"), DOCUMENTS, length=16, sequences=4, batch=4)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [({"length": 100}, "takes 64 tokens, length is 100"), ({"sequences": 4000}, "documents have .* ask for fewer")],
)
def test_a_mistake_is_one_sentence(opt, change, sentence):
    with pytest.raises(InputError, match=sentence):
        pretrained.use(opt, DOCUMENTS, **{"length": 16, "sequences": 4, "batch": 4} | change)


def test_a_model_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError, match="could not be had"):
        pretrained.use(str(tmp_path / "none"), DOCUMENTS, length=16, sequences=4, batch=4)
