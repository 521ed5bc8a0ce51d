import numpy as np
import pytest
import torch

from neuronkit import InputError
from neuronkit.models import adapters, encoders
from tests.models.conftest import LABELS, READ, TEXTS, settings

TRAINING = {name: value for name, value in settings(None, None, None).items() if name not in ("model", "prompts")}


def tune(case, method, **more):
    folder, readout, verbalisers = case
    given = TRAINING | {"readout": readout, "verbalisers": verbalisers, "method": method, "width": 3} | more
    return adapters.tune(folder, **given)


def of_texts(encoder, case):
    classes = encoders.read_with(encoders.loaded(case[0]), *case[1:])
    return encoders.classify(encoder, classes, None, TEXTS, length=10, batch=5)


def test_without_prompts_the_text_is_read_alone(case):
    folder, readout, _ = case
    encoder = encoders.loaded(folder)
    ids, _ = encoders.encoded(encoder, TEXTS, prompts=0, length=10)
    for row, found in zip(ids, of_texts(encoder, case), strict=True):
        with torch.no_grad():
            out = encoder.body(input_ids=torch.tensor([row])).last_hidden_state
            classes = encoders.read_with(encoder, *case[1:])
            if readout == "mask":
                expected = encoder.head(out[:, :1])[0, 0, classes.ids]
            else:
                expected = 20 * torch.nn.functional.normalize(out[0].mean(0), dim=0) @ classes.phrases.T
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_new_adapters_change_nothing_and_one_that_is_trained_does(case):
    before, encoder = of_texts(encoders.loaded(case[0]), case), encoders.loaded(case[0])
    added = adapters.add_adapters(encoder, 3, seed=0)
    np.testing.assert_array_equal(of_texts(encoder, case), before)
    assert sum(t.numel() for t in added.values()) == 2 * (16 * 3 + 3 + 3 * 16 + 16)
    with torch.no_grad():
        added["0.up.bias"][:5] += 0.5  # not all of them: a norm follows
    assert np.abs(of_texts(encoder, case) - before).max() > 1e-3


def test_bitfit_trains_every_bias_and_no_more(case):
    encoder = encoders.loaded(case[0])
    names = set(adapters.biases(encoder))
    whole = dict(encoder.body.named_parameters())
    whole |= {} if encoder.head is None else {f"head.{n}": p for n, p in encoder.head.named_parameters()}
    assert names == {name for name in whole if name.split(".")[-1] == "bias"} and len(names) > 10
    found = tune(case, "bitfit", steps=3)["trained"]
    assert set(found) == names
    changed = {name for name in names if not np.array_equal(found[name], whole[name].numpy())}
    assert {n for n in names if "intermediate" in n} <= changed


@pytest.mark.parametrize("method", ["bitfit", "adapters"])
def test_tuning_learns_and_the_weights_of_the_neurons_stay(case, method, monkeypatch):
    load, made = adapters.loaded, []
    monkeypatch.setattr(adapters, "loaded", lambda folder: made.append(load(folder)) or made[-1])
    found = tune(case, method, steps=30, rate=0.03)
    assert found["loss"][-5:].mean() < found["loss"][:5].mean() - 0.05
    before = load(case[0])
    for a, b in zip(before.sites, made[0].sites, strict=True):
        was, now = (e.body.get_submodule(f"{s}.dense").weight for e, s in ((before, a), (made[0], b)))
        assert torch.equal(was, now)
        out = made[0].body.get_submodule(b.rpartition(".")[0]).output.dense
        out = out if method == "bitfit" else out[0]
        assert torch.equal(out.weight, before.body.get_submodule(a.rpartition(".")[0]).output.dense.weight)


@pytest.mark.parametrize("method", ["bitfit", "adapters"])
def test_perturbing_no_unit_gives_what_tuning_found(case, method):
    found = tune(case, method, steps=20, rate=0.03)
    masks = np.zeros((2, 48), dtype=bool)
    masks[1, 30:] = True
    how = {"masks": masks, "how": "set", "texts": TEXTS, "length": 10, "trained": found["trained"], "method": method}
    logits = adapters.perturbed(case[0], width=3, readout=case[1], verbalisers=case[2], **how)["logits"]
    assert (logits[0].argmax(1) == LABELS).mean() == pytest.approx(found["accuracy"].max())
    assert np.abs(logits[1] - logits[0]).max() > 1e-3


def test_bad_input(bert):
    case = (bert, *READ["bert"])
    with pytest.raises(InputError, match="width is 0"):
        tune(case, "adapters", width=0)
    with pytest.raises(InputError, match='"lora"'):
        tune(case, "lora")
    found = tune(case, "adapters", steps=1)["trained"]
    how = {"masks": np.zeros((1, 48)), "how": "set", "texts": TEXTS, "length": 10, "trained": found}
    with pytest.raises(InputError, match="what was trained has no"):
        adapters.perturbed(bert, method="adapters", width=4, readout="sentence", verbalisers=case[2], **how)
