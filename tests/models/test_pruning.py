import json
from pathlib import Path

import numpy as np
import pytest
import torch

from neuronkit import InputError
from neuronkit.models import encoders, prompts, pruning
from tests.models.conftest import LABELS, TEXTS, settings

TRAINING = {name: value for name, value in settings(None, None, None).items() if name != "model"}


@pytest.fixture
def kept():
    mask = np.random.default_rng(0).random(48) < 0.3
    mask[24:] |= True  # the second layer keeps all
    mask[40] = False
    return mask


def of_prompts(encoder, case):
    classes, soft = encoders.read_with(encoder, *case[1:]), prompts.random_prompts(encoder, 3, 0)
    return encoders.classify(encoder, classes, soft, TEXTS, length=10, batch=5)


def test_a_pruned_model_gives_what_masking_gives_and_is_smaller(case, kept):
    mean = np.random.default_rng(1).normal(size=48).astype(np.float32)
    whole = encoders.loaded(case[0])
    soft = prompts.random_prompts(whole, 3, 0)
    # The phrases of the "sentence" readout are embedded by the whole model in `perturbed`, so by it here too.
    classes = encoders.read_with(whole, *case[1:])
    masked = prompts.perturb(
        whole, classes, soft, TEXTS, [~kept], "set", mean, length=10, seed=0, progress=lambda b, _: b
    )[0]
    small = pruning.pruned(encoders.loaded(case[0]), kept, mean)
    found = encoders.classify(small, classes, soft, TEXTS, length=10, batch=5)
    np.testing.assert_allclose(found, masked, atol=1e-5)
    gone = (~kept).sum() * (2 * 16 + 1)
    count = lambda e: sum(p.numel() for p in e.body.parameters())  # noqa: E731
    assert count(whole) - count(small) == gone
    assert small.widths == (int(kept[:24].sum()), 23)


def test_the_merged_bias_is_that_of_the_text_or_of_the_code(bert):
    file = Path(__file__).parents[1] / "metrics" / "fixtures_skill_neurons.json"
    case = json.loads(file.read_text())["prune_merge"]
    outputs, mean = np.array(case["V_units_by_d"]), np.array(case["baseline"])
    for variant in ("text", "authors"):
        encoder = encoders.loaded(bert)
        dense = encoder.body.encoder.layer[0].output.dense
        with torch.no_grad():
            dense.weight[:2, :3], dense.bias[:2] = torch.tensor(outputs.T), torch.tensor(case["b2"])
        kept, means = np.ones(48, dtype=bool), np.zeros(48)
        kept[[0, 2]], means[:3] = False, mean
        pruning.pruned(encoder, kept, means, variant=variant)
        expected = case["bias_paper" if variant == "text" else "bias_authors_code"]
        np.testing.assert_allclose(dense.bias[:2], expected, atol=1e-6)


def test_prompts_are_tuned_for_the_pruned_model(case, kept):
    folder, readout, verbalisers = case
    of = {"kept": kept, "mean": np.zeros(48), "readout": readout, "verbalisers": verbalisers}
    found = pruning.tune(folder, **TRAINING | of | {"steps": 30, "rate": 0.3})
    assert found["loss"][-5:].mean() < found["loss"][:5].mean()
    logits = pruning.classified(folder, **of, tuned=found, texts=TEXTS, length=10)["logits"]
    assert (logits.argmax(1) == LABELS).mean() == pytest.approx(found["accuracy"].max())
    whole = {"prompts": found["prompts"]}  # those of a whole model have no units of their own
    np.testing.assert_array_equal(
        pruning.classified(folder, **of, tuned=whole, texts=TEXTS, length=10)["logits"], logits
    )
    other = ~kept
    other[30] = True
    with pytest.raises(InputError, match="keeps other units"):
        pruning.classified(folder, **of | {"kept": other}, tuned=found, texts=TEXTS, length=10)


def test_times_are_of_both_models(bert, kept):
    of = {"readout": "sentence", "verbalisers": ["bad", "good"], "texts": TEXTS, "length": 10}
    soft = prompts.untuned(bert, n=3)["prompts"]
    found = pruning.times(bert, kept=kept, mean=np.zeros(48), prompts=soft, repeats=2, **of)
    assert found["full"].shape == found["pruned"].shape == (2,) and (found["full"] > 0).all()


def test_bad_input(bert):
    load = lambda: encoders.loaded(bert)  # noqa: E731
    with pytest.raises(InputError, match="48 hidden units"):
        pruning.pruned(load(), np.ones(47), np.zeros(48))
    with pytest.raises(InputError, match="would keep no unit"):
        pruning.pruned(load(), np.arange(48) < 24, np.zeros(48))
    with pytest.raises(InputError, match='variant is "both"'):
        pruning.pruned(load(), np.ones(48), np.zeros(48), variant="both")
