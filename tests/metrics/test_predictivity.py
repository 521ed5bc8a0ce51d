import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from neuronkit import InputError
from neuronkit.metrics import predictivity

FIXTURES = json.loads((Path(__file__).parent / "fixtures_skill_neurons.json").read_text())
TOY = FIXTURES["toy_predictivity"]


def toy(layer):
    train, dev = (np.array(TOY[split][layer]) for split in ("train", "dev"))
    return train, dev, np.array(TOY["y"])


def streamed(train, dev, columns):
    moments = predictivity.Moments()
    for part in torch.tensor(train).split(3):
        moments.add(part)
    hits = predictivity.Hits(moments.mean, columns)
    rows = np.random.default_rng(0).permutation(len(dev))
    for part in np.array_split(rows, 3):
        hits.add(part, torch.tensor(dev[part]))
    return hits.accuracy().numpy(), moments


@pytest.mark.parametrize("layer", [0, 1])
def test_the_papers_toy(layer):
    train, dev, y = toy(layer)
    accuracy, moments = streamed(train, dev, predictivity.columns(y)[:, None])
    np.testing.assert_allclose(moments.mean, TOY["baseline"][layer])
    np.testing.assert_allclose(accuracy[0], TOY["acc"][layer])
    np.testing.assert_allclose(predictivity.either_sign(accuracy[0]), TOY["pred"][layer])
    np.testing.assert_allclose(
        predictivity.predictivity(train, dev, y, strict=False), TOY["pred_max_over_prompts"][layer]
    )
    for variant, key in (("mean", "pred_mean_over_prompts"), ("positive", "positive_only_max")):
        found = predictivity.chosen(accuracy[0], accuracy[0], variant=variant)
        np.testing.assert_allclose(found.predictivity, TOY[key][layer])
        np.testing.assert_allclose(found.test, TOY[key][layer])


def test_a_near_constant_unit_scores_chance_unless_told_otherwise():
    train, dev = np.zeros((4, 1, 2)), np.zeros((4, 1, 2))
    dev[2:] = 1e-9  # rounding would tell the classes apart
    train[::2, 0, 1] = 1
    y = [0, 0, 1, 1]
    assert predictivity.predictivity(train, dev, y).tolist() == [0.5, 0.5]
    assert predictivity.predictivity(train, dev, y, strict=False).tolist() == [1.0, 0.5]


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(1, 5), st.integers(2, 20))
def test_the_stream_is_the_definition(seed, prompts, units, n):
    rng = np.random.default_rng(seed)
    train, dev = rng.normal(size=(n, prompts, units)), rng.normal(size=(n, prompts, units))
    y = np.arange(n) % 2
    weights = rng.integers(0, 4, n) + (np.arange(n) < 2)  # a bootstrap that leaves items of both classes
    z = predictivity.columns(y)
    accuracy, moments = streamed(train, dev, np.stack([z, z * weights], 1))
    right = (dev > train.mean(0)) == y[:, None, None].astype(bool)
    np.testing.assert_allclose(moments.std, train.std(0), atol=1e-6)
    np.testing.assert_allclose(accuracy[0], right.mean(0), atol=1e-6)
    np.testing.assert_allclose(accuracy[1], np.average(right, axis=0, weights=weights), atol=1e-6)


@given(st.integers(0, 2**32 - 1))
def test_swapping_the_classes_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    train, dev, y = rng.normal(size=(9, 2, 4)), rng.normal(size=(8, 2, 4)), np.arange(8) % 2
    a, b = (predictivity.predictivity(train, dev, labels) for labels in (y, 1 - y))
    np.testing.assert_allclose(a, b, atol=1e-6)
    assert (a >= 0.5).all()


def test_columns_of_two_classes_among_three():
    assert predictivity.columns([0, 1, 2], of=(0, 2)).tolist() == [-1, 0, 1]
    with pytest.raises(InputError, match="one class"):
        predictivity.columns([0, 0, 1], of=(0, 2))
    with pytest.raises(InputError, match="2 is among them"):
        predictivity.columns([0, 1, 2])


def test_prompt_and_sign_are_fixed_on_dev():
    dev, test = np.array([[0.6, 0.1, 0.5], [0.3, 0.8, 0.5]]), np.array([[0.9, 0.4, 0.2], [0.2, 0.9, 0.1]])
    found = predictivity.chosen(dev, test)
    np.testing.assert_allclose(found.predictivity, [0.7, 0.9, 0.5])
    assert found.position.tolist() == [1, 0, 0]
    np.testing.assert_allclose(found.test, [0.8, 0.6, 0.2])
    positive = predictivity.chosen(dev, test, variant="positive")
    np.testing.assert_allclose(positive.test, [0.9, 0.9, 0.2])
    np.testing.assert_allclose(predictivity.chosen(dev, test, variant="mean").test, [0.85, 0.75, 0.15])
    std = np.array([[1.0, 1e-5, 1.0], [1e-5, 1.0, 1.0]])
    np.testing.assert_allclose(predictivity.chosen(dev, test, std).test, [0.9, 0.9, 0.2])
    with pytest.raises(InputError, match='variant is "least"'):
        predictivity.chosen(dev, test, variant="least")


def test_columns_of_dev_and_test():
    dev, test = np.array([0, 1, 1, 0]), np.array([1, 0])
    found = predictivity.dev_and_test(dev, test, shuffles=3, seed=0)
    assert found.shape == (6, 5)
    assert found[:, 0].tolist() == [-1, 1, 1, -1, 0, 0] and found[:, 1].tolist() == [0, 0, 0, 0, 1, -1]
    assert not found[4:, 2:].any() and (found[:4, 2:].sum(0) == 0).all() and (np.abs(found[:4, 2:]) == 1).all()


def test_overlap_of_trials():
    assert predictivity.overlap([[3, 2, 1, 0], [0, 3, 2, 1], [3, 2, 1, 0]], 2) == pytest.approx(2 / 3)
    assert np.isnan(predictivity.overlap([[1, 2]], 1))


def test_trials_are_averaged_before_units_are_chosen():
    toy_trials = FIXTURES["toy_trials"]
    trials = np.array([np.concatenate(t) for t in toy_trials["trial_preds"]])
    np.testing.assert_allclose(trials.mean(0), np.concatenate(toy_trials["pred_mean"]))
    assert predictivity.skill_neurons(trials, 6).tolist() == [0, 3, 1, 2, 4, 5]


def test_units_of_two_subtasks():
    fixture = FIXTURES["multiclass_topk"]
    scores = []
    for order in (fixture["order_subtask_1"], fixture["order_subtask_2"]):
        of = np.zeros(8)
        of[order] = np.linspace(1, 0.5, len(order))
        scores.append(of)
    assert predictivity.merge_subtasks(scores, 4).tolist() == fixture["expected_authors"]
    assert predictivity.merge_subtasks(scores, 6).tolist() == fixture["expected_k6"]
    assert predictivity.merge_subtasks(scores, 5).tolist() == [5, 2, 4, 7, 3]
    with pytest.raises(InputError, match="k is 1"):
        predictivity.merge_subtasks(scores, 1)


def test_selectivity_index():
    fixture = FIXTURES["selectivity_index"]
    np.testing.assert_allclose(predictivity.selectivity_index(fixture["class_means_class_by_unit"]), fixture["si"])
    assert predictivity.selectivity_index([[0.0], [0.0]]).tolist() == [0.0]
    with pytest.raises(InputError, match="rectify"):
        predictivity.selectivity_index([[-1.0], [2.0]])


def test_a_small_spread_beside_a_large_mean():
    moments = predictivity.Moments()
    values = 1000 + 1e-3 * torch.randn(500, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    moments.add(values)
    np.testing.assert_allclose(moments.std, values.numpy().std(0), rtol=1e-5)


def test_mistakes_are_named():
    train = dev = np.random.default_rng(0).normal(size=(4, 2, 3))
    with pytest.raises(InputError, match="one class"):
        predictivity.predictivity(train, dev, [1, 1, 1, 1])
    with pytest.raises(InputError, match="not finite"):
        predictivity.predictivity(train, np.full_like(dev, np.nan), [0, 1, 0, 1])
    with pytest.raises(InputError, match="4 samples, labels 3"):
        predictivity.predictivity(train, dev, [0, 1, 0])
    with pytest.raises(InputError, match="samples, prompts, units"):
        predictivity.predictivity(train, dev[:, :1], [0, 1, 0, 1])
    with pytest.raises(InputError, match="k is 4"):
        predictivity.skill_neurons([0.5, 0.6, 0.7], 4)
    with pytest.raises(InputError, match="no training items"):
        _ = predictivity.Moments().mean
    hits = predictivity.Hits(torch.zeros(2, 3), [[1.0], [-1.0]])
    with pytest.raises(InputError, match="same model and prompts"):
        hits.add([0], torch.zeros(1, 3, 3))
    with pytest.raises(InputError, match="one class"):
        predictivity.Hits(torch.zeros(2, 3), [[1.0], [0.0]])
