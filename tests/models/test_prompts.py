import contextlib

import numpy as np
import pytest
import torch
import transformers
from tokenizers import ByteLevelBPETokenizer

from neuronkit import InputError
from neuronkit.metrics import predictivity
from neuronkit.models import encoders, fitting, prompts
from tests.models.conftest import LABELS, READ, TEXTS, save, settings


def soft_prompts(folder, n=3, seed=0):
    return prompts.random_prompts(encoders.loaded(folder), n, seed).numpy() * 10


def test_a_prompt_is_as_if_it_were_written(case):
    """Prompts that are word embeddings give what the model gives for these words, padding or not."""
    folder, readout, verbalisers = case
    encoder = encoders.loaded(folder)
    classes = encoders.read_with(encoder, readout, verbalisers)
    hard = prompts.hard_prompts(encoder, "a film", 3)
    ids, _ = encoders.encoded(encoder, TEXTS, prompts=3, length=12)
    together = encoders.classify(encoder, classes, hard, TEXTS, length=12, batch=5)
    words = encoder.tokenizer("a film", add_special_tokens=False)["input_ids"]
    front = [encoder.tokenizer.mask_token_id, *(words * 3)[:3]]
    for text, found in zip(ids, together, strict=True):
        given = torch.tensor([front + text])
        with torch.no_grad():
            out = encoder.body(input_ids=given, attention_mask=torch.ones_like(given)).last_hidden_state[0]
            if readout == "mask":
                expected = encoder.head(out[None, :1])[0, 0, classes.ids]
            else:
                expected = 20 * torch.nn.functional.normalize(out.mean(0), dim=0) @ classes.phrases.T
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_masked_head_is_the_models_own(roberta):
    encoder = encoders.loaded(roberta)
    whole = transformers.AutoModelForMaskedLM.from_pretrained(roberta).eval()
    given = encoders.inputs(encoder, torch.tensor(soft_prompts(roberta)), [[0, 8, 9, 2], [0, 8, 2]])
    classes = encoders.Classes(ids=torch.tensor([7, 11]))
    with torch.no_grad():
        expected = whole(**given).logits[:, 0][:, [7, 11]]
        np.testing.assert_allclose(encoders.logits(encoder, classes, given), expected, atol=1e-5)


def test_a_word_is_read_by_the_embeddings_where_there_is_no_head(bert):
    encoder = encoders.loaded(bert)
    classes = encoders.read_with(encoder, "mask", ["bad", "good"])
    given = encoders.inputs(encoder, torch.tensor(soft_prompts(bert)), [[2, 8, 3]])
    with torch.no_grad():
        at_mask = encoder.body(**given).last_hidden_state[:, 0]
        expected = 10 * at_mask @ encoder.words[classes.ids].T
        np.testing.assert_allclose(encoders.logits(encoder, classes, given), expected, atol=1e-5)


def test_only_the_prompts_train_and_the_best_are_kept(case):
    before = {n: p.clone() for n, p in encoders.loaded(case[0]).body.named_parameters()}
    found = prompts.tune(**settings(*case, steps=40, rate=0.3))
    assert all(torch.equal(p, before[n]) for n, p in encoders.loaded(case[0]).body.named_parameters())
    assert found["loss"][-8:].mean() < found["loss"][:8].mean()
    encoder = encoders.loaded(case[0])
    classes = encoders.read_with(encoder, *case[1:])
    logits = encoders.classify(encoder, classes, torch.tensor(found["prompts"]), TEXTS, length=10, batch=8)
    assert (logits.argmax(1) == LABELS).mean() == pytest.approx(found["accuracy"].max())
    assert found["evaluated"][-1] == len(found["loss"]) and found["cut"] == 2  # of 11 tokens


def test_the_gradient_is_that_of_finite_differences(bert):
    encoder = encoders.loaded(bert)
    encoder.body.double()
    classes = encoders.read_with(encoder, "sentence", ["bad", "good"])
    soft = torch.tensor(soft_prompts(bert, 2), dtype=torch.float64, requires_grad=True)
    loss = lambda p: encoders.logits(encoder, classes, encoders.inputs(encoder, p, [[2, 8, 3], [2, 9, 9, 3]])).sum()  # noqa: E731
    assert torch.autograd.gradcheck(loss, [soft], atol=1e-6)


def test_dropout_depends_on_the_seed_alone(bert):
    a, b = (prompts.tune(**settings(bert, *READ["bert"], dropout=True)) for _ in range(2))
    torch.manual_seed(5)
    c = prompts.tune(**settings(bert, *READ["bert"], dropout=True, seed=1))
    plain = prompts.tune(**settings(bert, *READ["bert"]))
    assert np.array_equal(a["loss"], b["loss"])
    assert not np.array_equal(a["loss"], c["loss"]) and not np.array_equal(a["loss"], plain["loss"])


def test_training_stops_without_a_gain_and_ties_keep_the_later(bert, monkeypatch):
    given = iter([0.2, 0.8, 0.8, 0.1, 0.1, 0.1, 0.1])
    seen = []

    def classify(encoder, classes, soft, texts, **_):
        seen.append(soft.clone().numpy())
        right = round(next(given) * 10)
        found = np.zeros((10, 2))
        found[np.arange(10), [0] * right + [1] * (10 - right)] = 1
        return found

    monkeypatch.setattr(fitting, "classify", classify)
    more = {"dev_texts": TEXTS[:10], "dev_labels": np.zeros(10, int), "steps": 100, "evaluate_every": 1, "patience": 3}
    found = prompts.tune(**settings(bert, *READ["bert"], **more))
    assert found["accuracy"].tolist() == [0.2, 0.8, 0.8, 0.1, 0.1, 0.1][: len(found["accuracy"])]
    assert np.array_equal(found["prompts"], seen[2])
    assert len(found["loss"]) == 6


def test_a_killed_tuning_goes_on_where_it_was(bert, tmp_path, monkeypatch):
    whole = prompts.tune(**settings(bert, *READ["bert"], steps=12))
    monkeypatch.setattr(fitting, "CHECKPOINT_SECONDS", 0.0)

    def until_7(steps, what):
        for step in steps:
            if step == 8:
                raise KeyboardInterrupt
            yield step

    with pytest.raises(KeyboardInterrupt):
        prompts.tune(**settings(bert, *READ["bert"], steps=12), progress=until_7, checkpoint=tmp_path)
    done = []
    again = prompts.tune(
        **settings(bert, *READ["bert"], steps=12), progress=lambda s, _: done.extend(s) or s, checkpoint=tmp_path
    )
    assert done[0] == 8
    for name in ("prompts", "loss", "accuracy", "evaluated"):
        assert np.array_equal(whole[name], again[name])


def by_hand(folder, soft, texts):
    """Activations at the prompts, their mean and maximum over the text's own tokens, one text at a time."""
    encoder = encoders.loaded(folder)
    found = []
    for text in texts:
        ids, _ = encoders.encoded(encoder, [text], prompts=len(soft), length=10)
        layers = []
        hooks = [
            layer.intermediate.register_forward_hook(lambda m, i, o, layers=layers: layers.append(o[0]))
            for layer in encoder.body.encoder.layer
        ]
        with torch.no_grad():
            encoder.body(**encoders.inputs(encoder, torch.tensor(soft), ids))
        for hook in hooks:
            hook.remove()
        h = torch.cat(layers, -1)
        at = len(soft) + 1
        found.append((h[:at], h[at:].mean(0), h[at:].amax(0)))
    return [torch.stack(part).numpy() for part in zip(*found, strict=True)]


def test_the_probe_is_the_definition(case):
    folder = case[0]
    soft = soft_prompts(folder)
    columns = np.stack([predictivity.columns(LABELS), predictivity.columns(LABELS[::-1])], 1)
    found = prompts.probe(
        folder, prompts=soft, train=TEXTS[:8], train_labels=LABELS[:8], texts=TEXTS, columns=columns, length=10, batch=3
    )
    train, texts = by_hand(folder, soft, TEXTS[:8]), by_hand(folder, soft, TEXTS)
    for name, i in (("accuracy", 0), ("accuracy_average", 1), ("accuracy_maximum", 2)):
        expected = predictivity.either_sign(
            ((texts[i] > train[i].mean(0)) == LABELS.reshape(-1, *[1] * (texts[i].ndim - 1))).mean(0)
        )
        got = predictivity.either_sign(found[name][0])
        # a sample beside the baseline may fall to either side
        assert (np.abs(expected - got) < 1e-6).mean() > 0.97
    np.testing.assert_allclose(found["std"], train[0].std(0), atol=1e-5)
    means = [np.maximum(train[0], 0)[LABELS[:8] == c].mean(0) for c in (0, 1)]
    np.testing.assert_allclose(found["class_means"], means, atol=1e-5)
    np.testing.assert_allclose(found["accuracy"][0], 1 - found["accuracy"][1], atol=1e-6)
    assert found["widths"] == [24, 24]


def test_the_probe_does_not_depend_on_the_batch(case):
    soft = soft_prompts(case[0])
    arguments = {"prompts": soft, "train": TEXTS, "train_labels": LABELS, "texts": TEXTS, "length": 10}
    columns = predictivity.columns(LABELS)[:, None]
    a, b = (prompts.probe(case[0], **arguments, columns=columns, batch=batch) for batch in (2, 12))
    np.testing.assert_allclose(a["mean"], b["mean"], atol=1e-5)
    assert (np.abs(a["accuracy"] - b["accuracy"]) < 1e-6).mean() > 0.97
    units, positions = [0, 30, 47], [1, 0, 3]
    of = prompts.activations(case[0], prompts=soft, texts=TEXTS, units=units, positions=positions, length=10, batch=5)
    np.testing.assert_allclose(of["activations"], by_hand(case[0], soft, TEXTS)[0][:, positions, units], atol=1e-5)


def perturb(case, soft, masks, how, values, **more):
    folder, readout, verbalisers = case
    return prompts.perturbed(
        folder,
        prompts=soft,
        readout=readout,
        verbalisers=verbalisers,
        texts=TEXTS,
        masks=masks,
        how=how,
        values=values,
        length=10,
        **more,
    )["logits"]


def test_setting_units_to_zero_is_removing_their_output_weights(case):
    folder, readout, verbalisers = case
    soft, mask = soft_prompts(folder), np.random.default_rng(0).random(48) < 0.5
    found = perturb(case, soft, [np.zeros(48, bool), mask], "set", 0.0)
    encoder = encoders.loaded(folder)
    classes = encoders.read_with(encoder, readout, verbalisers)
    np.testing.assert_allclose(
        found[0], encoders.classify(encoder, classes, torch.tensor(soft), TEXTS, length=10, batch=12), atol=1e-5
    )
    for layer, gone in zip(encoder.body.encoder.layer, np.split(mask, 2), strict=True):
        layer.output.dense.weight[:, torch.tensor(gone)] = 0
    cut = encoders.classify(encoder, classes, torch.tensor(soft), TEXTS, length=10, batch=12)
    np.testing.assert_allclose(found[1], cut, atol=1e-5)
    assert np.abs(found[1] - found[0]).max() > 1e-3


def test_layers_below_the_perturbed_ones_run_once(case, monkeypatch):
    masks, soft = np.zeros((4, 48), dtype=bool), soft_prompts(case[0])
    masks[0, 3] = masks[1, 24] = masks[2, 40] = True  # widths are 24 and 24
    calls, load = [], encoders.loaded

    def counted(model):
        encoder = load(model)
        for i, layer in enumerate(encoder.body.encoder.layer):
            layer.register_forward_pre_hook(lambda m, _, i=i: calls.append(i))
        return encoder

    monkeypatch.setattr(prompts, "loaded", counted)
    together = perturb(case, soft, masks, "noise", 2.0)
    # Beside the embeddings of the phrases: unperturbed once, then layer 0 for one mask and layer 1 for three.
    calls_of = {i: calls.count(i) - (case[1] == "sentence") for i in (0, 1)}
    assert calls_of == {0: 2, 1: 4}
    monkeypatch.setattr(prompts._Lower, "skipped", lambda self, n: contextlib.nullcontext())
    np.testing.assert_allclose(together, perturb(case, soft, masks, "noise", 2.0), atol=1e-5)


def test_noise_is_a_units_own_at_all_positions_and_the_texts_own(case):
    soft, masks = soft_prompts(case[0]), np.eye(48, dtype=bool)[[0, 30]]
    a = perturb(case, soft, masks, "noise", 0.5, batch=12)
    b = perturb(case, soft, masks, "noise", 0.5, batch=5)
    np.testing.assert_allclose(a, b, atol=1e-5)
    assert np.abs(a - perturb(case, soft, masks, "noise", 0.5, seed=1)).max() > 1e-4
    still = perturb(case, soft, masks, "noise", 0.0)
    np.testing.assert_allclose(still[0], still[1], atol=1e-6)
    own = perturb(case, soft, masks, "noise", np.where(np.arange(48) == 0, 0.5, 0.0))
    np.testing.assert_allclose(own[0], a[0], atol=1e-5)
    np.testing.assert_allclose(own[1], still[1], atol=1e-6)


def test_attribution_is_the_change_of_the_logit_where_it_is_linear(bert):
    """With a tiny displacement of the baseline, gradient x difference is what the loss changes by."""
    readout, verbalisers = READ["bert"]
    soft = soft_prompts(bert)
    unit, step, text = 40, 1e-2, TEXTS[:1]
    at = by_hand(bert, soft, text)[0][0]  # (P, N)
    mean = at.copy()
    mean[:, unit] -= step
    score = prompts.attribution(
        bert, prompts=soft, readout=readout, verbalisers=verbalisers, texts=text, labels=[0], mean=mean, length=10
    )["score"]
    encoder = encoders.loaded(bert)
    classes = encoders.read_with(encoder, readout, verbalisers)
    ids, _ = encoders.encoded(encoder, text, prompts=3, length=10)

    def log_p(shift):
        def edit(site, h):
            h = h.clone()
            if site == 1:
                h[:, :4, unit - 24] += shift
            return h

        with torch.no_grad(), prompts.intervene(encoder.body, edit):
            given = encoders.inputs(encoder, torch.tensor(soft), ids)
            return float(torch.log_softmax(encoders.logits(encoder, classes, given), -1)[0, 0])

    slope = (log_p(step) - log_p(-step)) / 2
    assert score[unit] == pytest.approx(abs(slope), rel=0.02)
    assert np.delete(score, unit).max() < 1e-6


def test_a_random_model_is_the_same_for_one_seed(bert):
    a, b, c = (encoders.loaded(bert, random=seed) for seed in (1, 1, 2))
    assert torch.equal(a.words, b.words) and not torch.equal(a.words, c.words)


def test_batches_hold_each_item_once_a_pass():
    lengths = np.random.default_rng(0).integers(3, 30, 103)
    rows = np.concatenate([fitting.training_batch(lengths, i, 10, 0) for i in range(10)])
    assert len(set(rows.tolist())) == 100
    spread = [np.ptp(lengths[fitting.training_batch(lengths, i, 10, 0)]) for i in range(10)]
    assert np.mean(spread) < 6
    again = fitting.training_batch(lengths, 17, 10, 0)
    assert np.array_equal(again, fitting.training_batch(lengths, 17, 10, 0))
    assert sorted(np.concatenate(encoders.by_length(lengths, 10)).tolist()) == list(range(103))


def test_texts_that_are_too_long_are_cut_and_counted(bert):
    encoder = encoders.loaded(bert)
    ids, cut = encoders.encoded(encoder, [TEXTS[0], TEXTS[-1]], prompts=3, length=7)
    assert cut == 1 and [len(row) for row in ids] == [7, 7] and ids[1][-1] == encoder.tokenizer.sep_token_id
    with pytest.raises(InputError, match="from 3 to 28 tokens"):
        encoders.encoded(encoder, TEXTS, prompts=3, length=29)
    with pytest.raises(InputError, match="no texts"):
        encoders.encoded(encoder, [], prompts=3, length=9)


def test_positions_of_roberta_start_behind_its_padding(roberta):
    encoder = encoders.loaded(roberta)
    assert encoder.positions == 38
    ids, _ = encoders.encoded(encoder, ["a good film " * 30], prompts=3, length=34)
    with torch.no_grad():
        encoder.body(**encoders.inputs(encoder, torch.tensor(soft_prompts(roberta)), ids))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"verbalisers": ["bad", ""]}, "has no token"),
        ({"readout": "mask", "verbalisers": ["bad", "good film"]}, "more than one token"),
        ({"readout": "vote"}, 'readout is "vote"'),
        ({"labels": np.full(12, 3)}, "label 3 has no verbaliser"),
        ({"dev_labels": [0]}, "12 dev_texts and 1 dev_labels"),
        ({"labels": np.zeros(12, int)}, "one class only"),
        ({"prompts": 0}, "prompts is 0"),
        ({"steps": 0}, "steps is 0"),
        ({"rate": 0.0}, r"rate is 0\.0"),
        ({"rate": float("inf")}, "not finite at step"),
    ],
)
def test_mistakes_in_training_are_named(bert, changed, sentence):
    given = settings(bert, *READ["bert"]) | changed
    with pytest.raises(InputError, match=sentence):
        prompts.tune(**given)


def test_one_class_is_no_classifier(bert):
    with pytest.raises(InputError, match="there is 1 class"):
        encoders.read_with(encoders.loaded(bert), "sentence", ["bad"])


def test_mistakes_in_perturbing_are_named(bert):
    case, soft = (bert, *READ["bert"]), soft_prompts(bert)
    with pytest.raises(InputError, match="the model has 48 hidden units"):
        perturb(case, soft, np.zeros((1, 47), bool), "set", 0.0)
    with pytest.raises(InputError, match="not negative"):
        perturb(case, soft, np.zeros((1, 48), bool), "noise", -0.1)
    with pytest.raises(InputError, match='how is "shake"'):
        perturb(case, soft, np.zeros((1, 48), bool), "shake", 0.1)
    with pytest.raises(InputError, match="prompts are 5 wide, the model 16"):
        perturb(case, np.zeros((3, 5), np.float32), np.ones((1, 48), bool), "set", 0.0)


def test_a_decoder_and_a_model_that_is_not_there_are_refused(tmp_path):
    config = transformers.GPT2Config(vocab_size=20, n_positions=16, n_embd=8, n_layer=1, n_head=1)
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(TEXTS, vocab_size=300)
    bpe.save_model(str(tmp_path))
    tokenizer = transformers.GPT2Tokenizer(str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt"))
    save(tmp_path, transformers.GPT2LMHeadModel(config), tokenizer)
    with pytest.raises(InputError, match="no encoder with a mask token"):
        encoders.loaded(tmp_path)
    with pytest.raises(InputError, match="could not be had"):
        encoders.loaded(tmp_path / "none")
