import copy

import numpy as np
import pytest
import torch
import transformers
from torch import nn
from torch.nn import functional

from neuronkit import InputError
from neuronkit.metrics.sparsity import active_counts
from neuronkit.models.activations import UseRecorder, ffn_sites, intervene, stream

VOCABULARY = 50
ENCODER = {"vocab_size": VOCABULARY, "hidden_size": 16, "num_hidden_layers": 2, "intermediate_size": 24}
LLAMA = ENCODER | {"num_attention_heads": 2, "num_key_value_heads": 2, "hidden_act": "relu"}
BERT = ENCODER | {"num_attention_heads": 2, "hidden_act": "relu"}
GPT2 = {"vocab_size": VOCABULARY, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_inner": 24}
OPT = {"vocab_size": VOCABULARY, "hidden_size": 16, "word_embed_proj_dim": 16, "num_hidden_layers": 2, "ffn_dim": 24}
T5 = {"vocab_size": VOCABULARY, "d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2}
T5 |= {"decoder_start_token_id": 0, "pad_token_id": 0}


class Block(nn.Module):
    def __init__(self, width, act):
        super().__init__()
        self.mlp = nn.ModuleDict({"up": nn.Linear(16, width), "act": act, "down": nn.Linear(width, 16)})

    def forward(self, x):
        return x + self.mlp["down"](self.mlp["act"](self.mlp["up"](x)))


class Own(nn.Module):
    """Of the shape of our decoder's feed-forward blocks; `flat` works on (B·T, D) inside."""

    def __init__(self, widths=(24, 40), act=nn.ReLU, flat=False):
        super().__init__()
        self.embed, self.flat = nn.Embedding(VOCABULARY, 16), flat
        self.blocks = nn.ModuleList(Block(width, act()) for width in widths)

    def forward(self, tokens, attention_mask=None):
        x = self.embed(tokens)
        if self.flat:
            x = x.flatten(0, 1)
        for block in self.blocks:
            x = block(x)
        return x.reshape(*tokens.shape, 16)


class Two(nn.Module):
    """An encoder and a decoder that works on (B·T, D) and, as T5's, makes its input of labels."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = Own(), Own(flat=True)

    def forward(self, input_ids, decoder_input_ids=None, labels=None):
        return self.encoder(input_ids).sum() + self.decoder(labels if decoder_input_ids is None else decoder_input_ids)


def gpt2(**changes):
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2 | {"activation_function": "relu"} | changes))


def opt(**changes):
    return transformers.OPTForCausalLM(transformers.OPTConfig(**OPT | {"num_attention_heads": 2} | changes))


def t5(**changes):
    return transformers.T5ForConditionalGeneration(transformers.T5Config(**T5 | changes))


def bert(**changes):
    return transformers.BertModel(transformers.BertConfig(**BERT | changes))


# Maker; pattern of its sites; where an independent count looks: a dense layer's input, or its output before the ReLU.
MODELS = {
    "opt": (opt, "model.decoder.layers.{}.activation_fn", "model.decoder.layers.{}.fc2", "input"),
    "gpt2": (gpt2, "transformer.h.{}.mlp.act", "transformer.h.{}.mlp.c_proj", "input"),
    "llama": (
        lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA)),
        "model.layers.{}.mlp.act_fn",
        "model.layers.{}.mlp.gate_proj",
        "output",
    ),
    "mistral": (
        lambda: transformers.MistralForCausalLM(transformers.MistralConfig(**LLAMA)),
        "model.layers.{}.mlp.act_fn",
        "model.layers.{}.mlp.gate_proj",
        "output",
    ),
    "bert": (bert, "encoder.layer.{}.intermediate", "encoder.layer.{}.output.dense", "input"),
    "roberta": (
        lambda: transformers.RobertaForMaskedLM(transformers.RobertaConfig(**BERT, pad_token_id=0)),
        "roberta.encoder.layer.{}.intermediate",
        "roberta.encoder.layer.{}.output.dense",
        "input",
    ),
    "own": (Own, "blocks.{}.mlp.act", "blocks.{}.mlp.down", "input"),
}


def made(maker, seed=0):
    torch.manual_seed(seed)
    model = maker().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):  # 0 from the start in most classes: then it would not matter which dense is read
                parameter.normal_()
    return model


def batch(lengths, seed=1):
    """Random tokens (B, T), padded on the right with 0, and their mask."""
    lengths = torch.tensor(lengths)
    mask = (torch.arange(int(lengths.max())) < lengths[:, None]).long()
    tokens = torch.randint(3, VOCABULARY, mask.shape, generator=torch.Generator().manual_seed(seed))
    return tokens * mask, mask


def captured(model, layer, which, call):
    """What goes into or comes out of one submodule in one call of the model, flattened to (B·T, F)."""
    kept = []
    hook = model.get_submodule(layer).register_forward_hook(
        lambda module, args, output: kept.append(args[0] if which == "input" else output)
    )
    with torch.no_grad():
        call()
    hook.remove()
    (one,) = kept
    return one.reshape(-1, one.shape[-1]).numpy()


def counted(values, mask, threshold=0.0):
    """active_counts, one token at a time."""
    counts = np.zeros((len(mask), values.shape[-1]), dtype=np.int64)
    for place, row in enumerate(values):
        sequence, token = divmod(place, mask.shape[1])
        if mask[sequence, token]:
            counts[sequence] += row > threshold
    return counts


def hooks(model):
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


@pytest.mark.parametrize("name", MODELS)
def test_sites_and_counts_of_each_class(name):
    maker, site, dense, which = MODELS[name]
    model = made(maker)
    sites = [site.format(i) for i in range(2)]
    assert ffn_sites(model) == sites
    batches = [batch([7, 3, 5]), batch([2, 4], seed=2)]
    with UseRecorder(model) as use:
        for tokens, mask in batches:
            model(tokens, attention_mask=mask)
    assert use.sites == sites and hooks(model) == 0
    for i in range(2):
        rows = [
            counted(captured(model, dense.format(i), which, lambda: model(t, attention_mask=m)), m)  # noqa: B023
            for t, m in batches
        ]
        assert 0 < np.concatenate(rows).sum() < 21 * rows[0].shape[1]
        assert np.array_equal(use.counts[i], np.concatenate(rows))
        assert use.lengths[i].tolist() == [7, 3, 5, 2, 4]
        assert use.counts[i].dtype == use.lengths[i].dtype == np.int64


@pytest.mark.parametrize(
    ("projection", "dense", "which", "threshold"),
    [("relu", "wo", "input", 0.0), ("gated-relu", "wi_0", "output", 0.0), ("gated-gelu", "wi_0", "output", 0.1)],
)
def test_t5_has_lengths_and_masks_of_its_own_for_encoder_and_decoder(projection, dense, which, threshold):
    model = made(lambda: t5(feed_forward_proj=projection))
    at = [f"{side}.block.{i}.layer.{n}.DenseReluDense" for side, n in (("encoder", 1), ("decoder", 2)) for i in (0, 1)]
    assert ffn_sites(model) == [f"{name}.act" for name in at]
    (tokens, mask), (target, target_mask) = batch([7, 3]), batch([4, 5], seed=2)

    def call():
        model(tokens, attention_mask=mask, decoder_input_ids=target, decoder_attention_mask=target_mask)

    with UseRecorder(model, threshold=threshold) as use:
        call()
    for name, counts, lengths, own in zip(
        at, use.counts, use.lengths, [mask, mask, target_mask, target_mask], strict=True
    ):
        values = captured(model, f"{name}.{dense}", which, call)
        if projection == "gated-gelu":
            values = functional.gelu(torch.from_numpy(values), approximate="tanh").numpy()
        assert np.array_equal(counts, counted(values, own, threshold)) and counts.any()
        assert np.array_equal(lengths, own.sum(1))


def test_t5_called_with_labels_counts_all_of_the_decoder():
    model = made(t5)
    tokens, mask = batch([7, 3])
    with UseRecorder(model) as use:
        model(tokens, attention_mask=mask, labels=tokens[:, :4].contiguous())
    assert [n.tolist() for n in use.lengths] == [[7, 3]] * 2 + [[4, 4]] * 2


@pytest.mark.parametrize("given", ["labels", "decoder_input_ids"])
def test_flat_activations_of_a_decoder_take_the_shape_of_its_own_input(given):
    model = made(Two)
    target = batch([4, 4, 4])[0]
    with UseRecorder(model) as use:
        model(batch([2, 6])[0], **{given: target})
    with UseRecorder(model.decoder) as alone:
        model.decoder(target)
    assert [n.tolist() for n in use.lengths] == [[6, 6]] * 2 + [[4, 4, 4]] * 2
    assert all(np.array_equal(a, b) for a, b in zip(use.counts[2:], alone.counts, strict=True))


@pytest.mark.parametrize("name", ["inputs_embeds", "input_ids"])
def test_opt_takes_tokens_or_embeddings(name):
    model = made(opt)
    tokens, mask = batch([7, 3])
    with UseRecorder(model) as expected:
        model(tokens, attention_mask=mask)
    with UseRecorder(model) as use:
        model(attention_mask=mask, **{name: tokens if name == "input_ids" else model.get_input_embeddings()(tokens)})
    assert all(np.array_equal(a, b) for a, b in zip(use.counts, expected.counts, strict=True))


def test_without_a_mask_every_token_counts():
    model = made(Own)
    with UseRecorder(model) as use:
        model(batch([6, 6])[0])
    assert [n.tolist() for n in use.lengths] == [[6, 6]] * 2
    assert [c.shape for c in use.counts] == [(2, 24), (2, 40)]  # each site has its own width


def test_bert_with_a_function_for_its_activation():
    model = made(lambda: bert(hidden_act="relu"))
    for layer in model.encoder.layer:
        del layer.intermediate.intermediate_act_fn
        layer.intermediate.intermediate_act_fn = functional.relu
    assert ffn_sites(model) == ["encoder.layer.0.intermediate", "encoder.layer.1.intermediate"]
    UseRecorder(model)
    model.encoder.layer[1].intermediate.intermediate_act_fn = functional.gelu
    with pytest.raises(InputError, match=r"gelu at encoder\.layer\.1\.intermediate is never exactly zero"):
        UseRecorder(model)


def test_the_model_itself_may_be_a_block():
    block = nn.ModuleDict({"up": nn.Linear(4, 8), "act": nn.ReLU(), "down": nn.Linear(8, 4)})
    assert ffn_sites(block) == ["act"]


def test_stream_gives_what_the_recorder_counts_and_chunks_change_nothing():
    model = made(opt)
    tokens, mask = batch([7, 3, 5, 6])
    whole, chunks = {0: [], 1: []}, {0: [], 1: []}

    def counting(into):
        return lambda site, activations, mask: into[site].append(active_counts(activations, mask))

    stream(model, [{"input_ids": tokens, "attention_mask": mask}], counting(whole))
    parts = zip(tokens.split(2), mask.split(2), strict=True)
    stream(model, ({"input_ids": t, "attention_mask": m} for t, m in parts), counting(chunks))
    with UseRecorder(model) as use:
        model(tokens, attention_mask=mask)
    for site in (0, 1):
        assert len(whole[site]) == 1 and len(chunks[site]) == 2
        assert np.array_equal(whole[site][0], np.concatenate(chunks[site]))
        assert np.array_equal(whole[site][0], use.counts[site])


def test_stream_takes_tensors_and_restores_the_mode_of_each_module():
    model = made(lambda: gpt2(resid_pdrop=0.5)).train()
    model.transformer.h[0].eval()
    modes = [m.training for m in model.modules()]
    tokens, seen = batch([6, 6])[0], []

    def reduce(site, activations, mask):
        assert mask is None and not activations.requires_grad and activations.shape == (2, 6, 24)
        assert not any(m.training for m in model.modules())
        seen.append((site, activations.clone()))
        return activations * 0  # what it returns must not reach the model

    assert stream(model, [tokens, tokens], reduce, sites=["transformer.h.1.mlp.act"]) is None
    assert [site for site, _ in seen] == [0, 0] and torch.equal(seen[0][1], seen[1][1])
    assert [m.training for m in model.modules()] == modes and hooks(model) == 0
    plain = captured(model.eval(), "transformer.h.1.mlp.c_proj", "input", lambda: model(tokens))
    assert np.array_equal(seen[0][1].reshape(12, 24).numpy(), plain)


def test_stream_gives_the_mask_as_booleans():
    tokens, mask = batch([4, 2])
    seen = []
    stream(made(Own), [{"tokens": tokens, "attention_mask": mask}], lambda site, h, m: seen.append(m))
    assert len(seen) == 2 and all(m.dtype == torch.bool and torch.equal(m, mask > 0) for m in seen)


def test_stream_keeps_nothing():
    import weakref

    seen = []

    def reduce(site, activations, mask):
        assert all(old() is None for old in seen[:-2])  # those of earlier batches are gone
        seen.append(weakref.ref(activations))

    stream(made(Own), (batch([5, 5], seed)[0] for seed in range(4)), reduce)
    assert len(seen) == 8 and all(old() is None for old in seen)


def test_an_error_leaves_no_hook_and_restores_the_mode():
    model = made(Own).train()
    tokens = batch([5, 5])[0]

    def fail(*args):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        stream(model, [tokens], fail)
    assert hooks(model) == 0 and model.training
    with pytest.raises(KeyError, match="mine"), intervene(model, fail):
        model(tokens)
    with pytest.raises(KeyError, match="mine"), UseRecorder(model):
        assert hooks(model) == 4
        raise KeyError("mine")
    assert hooks(model) == 0


def test_counts_stay_after_exit_and_leave_out_a_call_that_failed():
    model = made(Own)
    tokens = batch([5, 5])[0]
    with UseRecorder(model) as use:
        model(tokens)
        with torch.no_grad():
            model.blocks[1].mlp["up"].bias[0] = torch.nan
        with pytest.raises(InputError, match=r"blocks\.1\.mlp\.act: activations are NaN"):
            model(tokens)
    model(tokens)  # outside: not counted
    assert [len(c) for c in use.counts] == [len(n) for n in use.lengths] == [2, 2]


@pytest.mark.parametrize("name", ["opt", "gpt2", "bert", "own"])
def test_intervening_with_zero_is_a_down_projection_of_zero(name):
    maker, _, dense, _ = MODELS[name]
    model = made(maker)
    zeroed = copy.deepcopy(model)
    with torch.no_grad():
        zeroed.get_submodule(dense.format(1)).weight.zero_()
    tokens = batch([6, 6])[0]

    def edit(site, activations):
        assert activations.shape == (2, 6, activations.shape[-1])
        return activations * (site != 1)

    def output(model):
        with torch.no_grad():
            found = model(tokens)
        return found if torch.is_tensor(found) else found[0]

    plain = output(model)
    with intervene(model, edit):
        edited = output(model)
    assert torch.allclose(edited, output(zeroed), atol=1e-6) and not torch.allclose(edited, plain, atol=1e-3)
    with intervene(model, lambda site, activations: activations):
        assert torch.equal(output(model), plain)
    assert hooks(model) == 0 and torch.equal(output(model), plain)


def test_an_edit_reaches_only_the_named_site():
    model, tokens, seen = made(Own), batch([4, 4])[0], []
    with intervene(model, lambda site, h: seen.append((site, h.shape[-1])) or h, sites=["blocks.1.mlp.act"]):
        model(tokens)
    assert seen == [(0, 40)]


def test_interventions_nest_and_a_recorder_sees_what_they_make():
    model, tokens = made(Own), batch([4, 4])[0]
    with intervene(model, lambda site, h: h * 0 + 1):
        with intervene(model, lambda site, h: h * 3 - 1), UseRecorder(model, threshold=1.5) as use:
            both = model(tokens)
        assert all((c == 4).all() for c in use.counts)
        assert hooks(model) == 4
    with intervene(model, lambda site, h: h * 0 + 2):
        assert torch.equal(model(tokens), both)


def test_gradients_flow_through_an_edit():
    model, tokens = made(Own), batch([4, 4])[0]
    scale = torch.ones(24, requires_grad=True)
    with intervene(model, lambda site, h: h * scale, sites=["blocks.0.mlp.act"]):
        model(tokens).sum().backward()
    assert scale.grad.abs().sum() > 0 and model.embed.weight.grad.abs().sum() > 0
    used = active_over(model, tokens)
    assert torch.equal(scale.grad != 0, used)  # a unit that is off has no gradient of its scale


def active_over(model, tokens):
    with torch.no_grad():
        hidden = torch.relu(model.blocks[0].mlp["up"](model.embed(tokens)))
    return (hidden > 0).any(0).any(0)


DROPLESS = {"dropout": 0.0, "attention_dropout": 0.0, "layerdrop": 0.0}


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointing_counts_once_and_edits_twice(reentrant):
    model = made(lambda: opt(**DROPLESS)).train()
    tokens, mask = batch([7, 3, 5])

    def step():
        model.zero_grad()
        with intervene(model, lambda site, h: h * 0.5 + h.detach().mean((0, 1))):
            model(tokens, attention_mask=mask, labels=tokens).loss.backward()
        return [p.grad.clone() for p in model.parameters()]

    with UseRecorder(model) as expected:
        plain = step()
    model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    runs = []
    model.model.decoder.layers[0].activation_fn.register_forward_hook(lambda *args: runs.append(1))
    with UseRecorder(model) as use:
        again = step()
    assert len(runs) == 2  # it did run again
    assert all(np.array_equal(a, b) for a, b in zip(use.counts, expected.counts, strict=True))
    assert [n.tolist() for n in use.lengths] == [[7, 3, 5]] * 2
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(plain, again, strict=True))


def test_checkpointing_of_two_batches_of_unequal_length():
    model = made(lambda: opt(**DROPLESS)).train()
    model.gradient_checkpointing_enable()
    with UseRecorder(model) as use:
        losses = [model(tokens, labels=tokens).loss for tokens in (batch([7, 7])[0], batch([4, 4, 4])[0])]
        sum(losses).backward()  # runs the first batch again, after the second was the last call
    assert [n.tolist() for n in use.lengths] == [[7, 7, 4, 4, 4]] * 2


@pytest.mark.parametrize("maker", [lambda: gpt2(resid_pdrop=0.1), lambda: opt(dropout=0.1)])
def test_dropout_in_training_mode_is_refused(maker):
    model = made(maker).train()
    with pytest.raises(InputError, match=r"training with dropout.*model\.eval\(\)"), UseRecorder(model):
        pass
    with UseRecorder(model.eval()):
        model.train()
        with pytest.raises(InputError, match=r"model\.eval\(\)"):
            model(batch([4, 4])[0])
    assert model.training and hooks(model) == 0


@pytest.mark.parametrize("act", [nn.GELU, nn.SiLU, nn.LeakyReLU, nn.Sigmoid, nn.Hardswish])
def test_what_is_never_zero_needs_a_threshold(act):
    model = made(lambda: Own(act=act))
    with pytest.raises(InputError, match=rf"{act.__name__} at blocks\.0\.mlp\.act is never .*threshold= above 0"):
        UseRecorder(model)
    with UseRecorder(model, threshold=0.1) as use:
        model(batch([4, 4])[0])
    assert use.counts[1].shape == (2, 40)


@pytest.mark.parametrize("name", ["relu", "relu2", "relu6"])
def test_every_relu_counts_as_one(name):
    model = made(lambda: gpt2(activation_function=name))
    with UseRecorder(model) as use:
        model(batch([4, 4])[0])
    assert use.counts[0].any()


def test_a_site_with_weights_is_judged_by_what_it_gives():
    tokens = batch([4, 4])[0]
    model = nn.Sequential(nn.Embedding(VOCABULARY, 16), nn.Sequential(nn.Linear(16, 8), nn.GELU()))
    with pytest.raises(InputError, match="1 gives negative values, which no ReLU does"), UseRecorder(model, ["1"]):
        model(tokens)
    model[1][1] = nn.ReLU()
    with UseRecorder(model, ["1"]) as use, UseRecorder(model, ["1.1"]) as same:
        model(tokens)
    assert use.counts[0].any() and np.array_equal(use.counts[0], same.counts[0])


def test_no_site_found_says_what_is_there():
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))
    with pytest.raises(InputError, match=r"activation_fn beside fc1, .*activation modules there: 1 \(Tanh\).*sites="):
        ffn_sites(model)
    with pytest.raises(InputError, match="activation modules there: none"):
        UseRecorder(nn.Linear(4, 4))


def test_a_name_that_is_no_submodule():
    model = made(Own)
    with pytest.raises(InputError, match=r'no submodule "blocks\.0\.mlp\.atc": did you mean "blocks\.0\.mlp\.act"\?'):
        stream(model, [], print, sites=["blocks.0.mlp.atc"])
    with pytest.raises(InputError, match=r'no submodule "%%%": model\.named_modules'):
        UseRecorder(model, ["%%%"])
    with pytest.raises(InputError, match="sites= is empty"):
        UseRecorder(model, [])


def test_one_activation_module_in_two_blocks():
    shared = nn.ReLU()
    model = Own(act=lambda: shared)
    with pytest.raises(InputError, match=r"blocks\.0\.mlp\.act and blocks\.1\.mlp\.act are one module"):
        ffn_sites(model)
    with pytest.raises(InputError, match=r"are one module.*name each site once"):
        UseRecorder(made(Own), ["blocks.0.mlp.act"] * 2)


def test_a_block_that_runs_twice_in_a_call():
    model = made(Own)
    model.blocks.append(model.blocks[0])
    assert len(ffn_sites(model)) == 2
    with pytest.raises(InputError, match=r"blocks\.0\.mlp\.act ran twice in one call"), UseRecorder(model):
        model(batch([4, 4])[0])


@pytest.mark.parametrize("mask", [torch.ones(2, 5), torch.ones(2, 1, 4, 4), {"full": torch.ones(2, 4)}])
def test_a_mask_of_another_shape(mask):
    model = made(Own)
    message = r"attention_mask is .* at blocks\.0.*must be \(2, 4\), one entry per token"
    with pytest.raises(InputError, match=message), UseRecorder(model):
        model(batch([4, 4])[0], attention_mask=mask)
    assert hooks(model) == 0


@pytest.mark.parametrize("edit", [lambda site, h: h[..., :-1], lambda site, h: None])
def test_an_edit_of_another_shape(edit):
    model = made(Own)
    message = r"edit of blocks\.0\.mlp\.act gave .* tensor \(2, 4, 24\)"
    with pytest.raises(InputError, match=message), intervene(model, edit):
        model(batch([4, 4])[0])
    assert hooks(model) == 0


def test_a_width_that_is_not_that_of_the_dense_layer():
    model = made(lambda: Own(widths=(24,), act=nn.GLU))
    model.blocks[0].mlp["down"] = nn.Linear(12, 16)
    with pytest.raises(InputError, match=r"blocks\.0\.mlp\.act gives 12 units, the dense layer before it 24"):
        stream(model, [batch([4, 4])[0]], lambda *args: None)


def test_outputs_that_are_not_those_of_tokens():
    flat = made(lambda: Own(flat=True))
    with intervene(flat, lambda site, h: h):
        with pytest.raises(InputError, match="act gives 4 rows, but no input was seen"):
            flat.blocks[0](torch.ones(4, 16))
        flat(batch([4, 4])[0])
        with pytest.raises(InputError, match=r"act gives 5 rows, but the input is \(2, 4\)"):
            flat.blocks[0](torch.ones(5, 16))
    with pytest.raises(InputError, match=r"shape \(4, 2, 4, 16\).*in sites="), intervene(flat, print, sites=["embed"]):
        flat.embed(torch.ones(4, 2, 4, dtype=torch.long))
    model = made(bert)
    with pytest.raises(InputError, match="encoder gives BaseModelOutput"), intervene(model, print, sites=["encoder"]):
        model(batch([4, 4])[0])


def test_no_call_was_seen():
    model = made(t5)
    with (
        UseRecorder(model) as use,
        pytest.raises(InputError, match=r"no call of the model has reached encoder\.block\.0"),
    ):
        use.counts  # noqa: B018
    with use, torch.no_grad():
        model.encoder(batch([4, 4])[0])  # not a call of the model
    with pytest.raises(InputError, match="call the model inside the recorder"):
        use.lengths  # noqa: B018


def test_thresholds_out_of_range():
    for threshold in (-1.0, float("nan")):
        with pytest.raises(InputError, match=r"threshold is .*: it must be 0 or more"):
            UseRecorder(made(Own), threshold=threshold)
