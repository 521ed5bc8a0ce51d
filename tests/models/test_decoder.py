import math

import numpy as np
import pytest
import torch

from neuronkit import InputError
from neuronkit.metrics import sparsity
from neuronkit.models import decoder, text

SMALL = {
    "vocabulary": 61,
    "length": 12,
    "batch": 4,
    "width": 16,
    "heads": 2,
    "layers": 2,
    "hidden": [16, 24],
    "embedding_std": 0.1,
    "steps": 150,
    "rate": 2e-2,
    "warmup": 5,
    "weight_decay": 0.1,
    "evaluated": 8,
    "seed": 3,
    "records": 12,
}


@pytest.fixture(scope="module")
def stream():
    rng = np.random.default_rng(0)
    return np.cumsum(rng.integers(0, 3, 4000)) % 61


@pytest.fixture(scope="module")
def trained(stream):
    return decoder.train(stream[:3000], stream[3000:], **SMALL)


def test_logits_are_those_of_a_transformers_opt_with_the_same_weights(trained):
    import transformers

    config = transformers.OPTConfig(
        vocab_size=61,
        hidden_size=8,
        word_embed_proj_dim=8,
        num_hidden_layers=2,
        ffn_dim=16,
        num_attention_heads=2,
        max_position_embeddings=12,
        activation_function="relu",
        do_layer_norm_before=True,
        dropout=0.0,
    )
    opt = transformers.OPTForCausalLM(config).eval()
    shape = decoder.Shape(61, 12, 8, 2, (16, 16), 0.5)
    ours = decoder.Decoder(shape, seed=1).eval()
    with torch.no_grad():
        for p in ours.parameters():
            p.add_(0.1 * torch.randn(p.shape, generator=torch.Generator().manual_seed(0)))  # no zero bias
        body = opt.model.decoder
        body.embed_tokens.weight.copy_(ours.tokens.weight)
        body.embed_positions.weight[2:].copy_(ours.positions.weight)  # OPT counts positions from 2
        body.final_layer_norm.load_state_dict(ours.norm.state_dict())
        for theirs, block in zip(body.layers, ours.blocks, strict=True):
            for name, weight, bias in zip(
                ("q_proj", "k_proj", "v_proj"),
                block.attention.qkv.weight.chunk(3),
                block.attention.qkv.bias.chunk(3),
                strict=True,
            ):
                getattr(theirs.self_attn, name).load_state_dict({"weight": weight, "bias": bias})
            theirs.self_attn.out_proj.load_state_dict(block.attention.out.state_dict())
            theirs.self_attn_layer_norm.load_state_dict(block.norm1.state_dict())
            theirs.final_layer_norm.load_state_dict(block.norm2.state_dict())
            theirs.fc1.load_state_dict(block.mlp.up.state_dict())
            theirs.fc2.load_state_dict(block.mlp.down.state_dict())
        opt.tie_weights()
        ids = torch.randint(0, 61, (3, 12), generator=torch.Generator().manual_seed(2))
        assert torch.allclose(opt(ids).logits, ours(ids), atol=1e-5)


def test_kernels_are_lecun_normal_and_embeddings_as_wide_as_asked():
    model = decoder.Decoder(decoder.Shape(4000, 8, 128, 2, (4096,), 0.3), seed=0)
    up, down = model.blocks[0].mlp.up, model.blocks[0].mlp.down
    assert up.weight.std().item() == pytest.approx(128**-0.5, rel=0.01)
    assert down.weight.std().item() == pytest.approx(4096**-0.5, rel=0.01)
    assert up.weight.abs().max() <= 2 * 128**-0.5 / 0.8796 + 1e-6 and not up.bias.any()
    assert model.tokens.weight.std().item() == pytest.approx(0.3, rel=0.01)


def test_the_rate_rises_to_its_peak_and_falls_to_zero():
    rates = [decoder.learning_rate(s, peak=2.0, warmup=10, steps=110) for s in range(1, 111)]
    assert rates[4] == 1.0 and rates[9] == 2.0 == max(rates)
    assert rates[59] == pytest.approx(1.0) and rates[-1] == pytest.approx(0, abs=1e-12)


def test_an_update_is_that_of_torchs_adamw():
    def model():
        return decoder.Decoder(decoder.Shape(11, 4, 4, 1, (6,), 0.1), seed=0)

    ours, theirs = model(), model()
    step = decoder.AdamW(ours, 0.3)
    groups = [
        {"params": [p for p in theirs.parameters() if p.ndim > 1], "weight_decay": 0.3},
        {"params": [p for p in theirs.parameters() if p.ndim == 1], "weight_decay": 0.0},
    ]
    peer = torch.optim.AdamW(groups, betas=(0.9, 0.98))
    generator = torch.Generator().manual_seed(0)
    for rate in (0.1, 0.01, 0.02):
        for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
            a.grad = torch.randn(a.shape, generator=generator)
            b.grad = a.grad.clone()
        step.step(rate)
        for group in peer.param_groups:
            group["lr"] = rate
        peer.step()
        peer.zero_grad()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-6)


def test_training_learns_and_starts_at_chance(trained):
    assert trained["step"][0] == 0 and trained["step"][-1] == 150 and trained["rate"][0] == 0
    assert trained["loss"][0] == pytest.approx(math.log(61), abs=0.3)
    assert trained["loss"][-1] < trained["loss"][0] - 0.5


def test_what_is_recorded_is_what_the_weights_do(trained, stream):
    """The last record, from the weights by hand."""
    model = decoder.loaded(trained["weights"], heads=2)
    rows = torch.tensor(decoder.chosen(stream[3000:], length=12, n=8, seed=3))
    with torch.no_grad():
        x = model.tokens(rows[:, :-1]) + model.positions.weight
        for layer, block in enumerate(model.blocks):
            x = x + block.attention(block.norm1(x))
            h = torch.relu(block.norm2(x) @ block.mlp.up.weight.T + block.mlp.up.bias)
            x = x + block.mlp(block.norm2(x))
            counts = (h > 0).sum(1).numpy()
            assert np.array_equal(counts, trained["counts"][layer])
            use = sparsity.hidden_unit_use(counts, np.full(8, 12), batch=4)
            assert tuple(use) == pytest.approx([trained[n][-1, layer] for n in ("token", "sequence", "batch")])
            assert np.array_equal(trained["used"][layer][-1], counts[:4].any(0))
    assert [u.shape for u in trained["used"]] == [(len(trained["step"]), 16), (len(trained["step"]), 24)]


def test_no_steps_record_the_initial_weights(stream):
    found = decoder.train(stream[:3000], stream[3000:], **SMALL | {"steps": 0})
    assert found["step"].tolist() == [0]
    initial = decoder.Decoder(decoder.Shape(61, 12, 16, 2, (16, 24), 0.1), seed=3)
    assert all(np.array_equal(found["weights"][n], t.numpy()) for n, t in initial.state_dict().items())


def test_an_interrupted_training_ends_with_the_same_bits(trained, stream, tmp_path, monkeypatch):
    monkeypatch.setattr(decoder, "CHECKPOINT_SECONDS", 0)

    def killed_at_17(steps, what):
        for step in steps:
            if step == 17:
                raise KeyboardInterrupt
            yield step

    with pytest.raises(KeyboardInterrupt):
        decoder.train(stream[:3000], stream[3000:], **SMALL, checkpoint=tmp_path, progress=killed_at_17)
    seen = []
    resumed = decoder.train(
        stream[:3000], stream[3000:], **SMALL, checkpoint=tmp_path, progress=lambda s, what: seen.extend(s) or seen
    )
    assert seen[0] == 17
    for name in ("loss", "step", "batch", "percentiles"):
        assert np.array_equal(resumed[name], trained[name])
    assert all(np.array_equal(resumed["weights"][n], w) for n, w in trained["weights"].items())
    assert all(np.array_equal(a, b) for a, b in zip(resumed["used"], trained["used"], strict=True))


def test_an_epoch_shows_every_sequence_once_and_the_next_in_another_order():
    rows = np.arange(12)[:, None]
    turns = [np.concatenate([decoder._batch(rows, 3 * turn + i, 4, 7) for i in range(3)])[:, 0] for turn in (0, 1)]
    assert all(sorted(t) == list(range(12)) for t in turns) and not np.array_equal(*turns)


def test_record_at_holds_both_ends_and_is_denser_early():
    at = decoder.record_at(1000, 40)
    assert at[0] == 0 and at[-1] == 1000 and len(at) < 45
    assert sum(s <= 100 for s in at) > sum(s >= 900 for s in at)
    assert decoder.record_at(0) == [0]


def test_auto_is_a_device_that_there_is():
    assert decoder.device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
    with pytest.raises(InputError, match='device is "tpu"'):
        decoder.device("tpu")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"rate": 0.0}, "both must be above 0"),
        ({"embedding_std": 0.0}, "both must be above 0"),
        ({"weight_decay": -1.0}, "weight_decay is -1.0"),
        ({"hidden": [16]}, "1 widths for 2 layers: give one per layer"),
        ({"hidden": [16, 0]}, "each layer needs at least 1 unit"),
        ({"heads": 3}, "can't be shared by 3 heads"),
        ({"evaluated": 6}, "must be a multiple of the batch"),
        ({"evaluated": 800}, "ask fewer"),
        ({"vocabulary": 60}, "outside the vocabulary of 60"),
        ({"warmup": 0}, "warmup is 0"),
        ({"steps": -1}, "steps is -1"),
        ({"length": 5000}, "too few for one sequence"),
        ({"rate": 1e30}, "at step|not finite at step"),
    ],
)
def test_a_mistake_is_one_sentence(stream, change, sentence):
    with pytest.raises(InputError, match=sentence):
        decoder.train(stream[:3000], stream[3000:], **SMALL | change)


def test_a_sequence_over_the_positions_is_refused(trained):
    with pytest.raises(InputError, match="longer than the 12 positions"):
        decoder.loaded(trained["weights"], heads=2)(torch.zeros(1, 13, dtype=torch.int64))


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_trains_and_records(stream):
    found = decoder.train(stream[:3000], stream[3000:], **SMALL, device="cuda")
    assert found["loss"][-1] < found["loss"][0] - 0.5


def test_shuffled_text_has_nothing_to_learn_beyond_frequencies(stream):
    mixed = text.shuffled(stream, seed=0)
    found = decoder.train(mixed[:3000], mixed[3000:], **SMALL)
    assert found["loss"][-1] > math.log(61) - 0.1
