import numpy as np
import pytest

from neuronkit import InputError
from neuronkit.metrics import perturbation
from neuronkit.models import skills

TEXTS = [f"text {i}" for i in range(30)]
THREE = (TEXTS, np.tile([0, 1, 2], 10))
TWO = (TEXTS, np.tile([0, 1], 15))
SPLITS = {"a": dict.fromkeys(("train", "dev", "test"), TWO), "b": dict.fromkeys(("train", "dev", "test"), THREE)}


def test_subtasks_are_balanced():
    assert skills.subtasks(TWO[1]) == {"": ((0,), (1,))}
    outer, middle = (skills.cut(THREE, *ids) for ids in skills.subtasks(THREE[1]).values())
    of = dict(zip(*THREE, strict=True))
    assert {of[text] for text in outer[0]} == {0, 2} and {of[text] for text in middle[0]} == {0, 1, 2}
    assert np.bincount(outer[1]).tolist() == [10, 10] == np.bincount(middle[1]).tolist()
    assert all((of[text] == 1) == label for text, label in zip(*middle, strict=True))


def test_jobs_have_what_they_need():
    words = {"a": ["x", "y"], "b": ["x", "y", "z"]}
    jobs = skills.tuning(SPLITS, words, steps={"a": 3, "b": 4}, trials=2, seed=5, model="m")
    assert [(key, job["seed"], job["steps"]) for key, job in jobs.items()] == [
        (("a", 0), 5, 3),
        (("a", 1), 6, 3),
        (("b", 0), 5, 4),
        (("b", 1), 6, 4),
    ]
    tuned = {key: {"prompts": np.zeros((2, 3))} for key in jobs}
    probes = skills.probing(SPLITS, tuned, baseline=4, shuffles=3, seed=0, model="m")
    assert len(probes) == 2 + 4
    job = probes["b", 1, "middle"]
    assert len(job["train"]) == 4 and len(job["texts"]) == 40 and job["columns"].shape == (40, 5)


def probe(accuracy, std=1.0):
    """Two columns of four, one unit more at the mask than anywhere else."""
    accuracy = np.asarray(accuracy, dtype=float)
    return {"accuracy": accuracy, "std": np.full(accuracy.shape[1:], std), "accuracy_average": accuracy[:, 1]} | {
        "std_average": np.full(accuracy.shape[2], std)
    }


def test_the_mask_does_not_count():
    found = probe([[[1.0, 1.0], [0.6, 0.2]], [[1.0, 1.0], [0.7, 0.3]], [[0.9, 0.5], [0.5, 0.6]]])
    of = skills.chosen(found)
    np.testing.assert_allclose(of.predictivity, [0.6, 0.8])
    np.testing.assert_allclose(of.test, [0.7, 0.7])
    np.testing.assert_allclose(skills.chosen(found, read="average").predictivity, [0.6, 0.8])
    assert skills.ceiling(found) == pytest.approx(0.6)


def test_scores_are_means_over_trials():
    probes = {
        ("a", 0, ""): probe([[[0.5, 0.5], [0.6, 0.9]]] * 3),
        ("a", 1, ""): probe([[[0.5, 0.5], [0.2, 0.9]]] * 3),
        ("b", 0, "outer"): probe([[[0.5, 0.5], [0.7, 0.5]]] * 3),
        ("b", 0, "middle"): probe([[[0.5, 0.5], [0.5, 0.6]]] * 3),
    }
    found = skills.scores(probes)
    np.testing.assert_allclose(found["a"], [[0.7, 0.9]])
    np.testing.assert_allclose(found["b"], [[0.7, 0.5], [0.5, 0.6]])


def test_orders_and_their_curves():
    widths = [20, 40]
    scores = {"a": np.linspace(1, 0, 60)[None], "b": np.stack([np.linspace(1, 0, 60), np.linspace(0, 1, 60)])}
    orders = skills.orders(scores, widths, rates=[0.1, 0.2], random=3, seed=0)
    assert list(orders) == ["a", "b", "random 0", "random 1", "random 2"]
    assert all([m[:, :20].sum(1).tolist(), m[:, 20:].sum(1).tolist()] == [[2, 4], [4, 8]] for m in orders.values())
    assert all((m[1] | ~m[0]).all() for m in orders.values())  # a rate takes in the one below
    assert np.flatnonzero(orders["b"][0]).tolist() == [0, 19, 20, 21, 58, 59]
    tuned = {("a", 0): {"prompts": np.zeros((2, 3))}}
    probes = {("a", 0, ""): {"mean": np.stack([np.full(60, 9.0), np.arange(60), 2 + np.arange(60)])}}
    probes["a", 0, ""]["std"] = probes["a", 0, ""]["mean"]
    given = (SPLITS, tuned, probes, {"a": ["x", "y"]}, orders)
    job = skills.perturbing(*given, how="mean", sigma=0.1, items=7, seed=0, model="m")["a", 0]
    assert len(job["texts"]) == 7 and job["masks"].shape == (11, 60) and not job["masks"][0].any()
    assert job["how"] == "set" and job["values"].tolist() == (1 + np.arange(60)).tolist()  # the mask does not count
    job = skills.perturbing(*given, how="relative", sigma=0.5, items=7, seed=0, model="m")["a", 0]
    assert job["how"] == "noise" and job["values"].tolist() == (0.5 + np.arange(60) / 2).tolist()
    with pytest.raises(InputError, match='how is "shake"'):
        skills.perturbing(*given, how="shake", sigma=0.1, items=7, seed=0)
    logits = np.zeros((11, 4, 2))
    logits[..., 1] = np.array([0, 1, 1, 1] + [1] * 7)[:, None]
    labels = np.array([0, 0, 0, 1])
    found = skills.curves(logits, labels, orders, perturbation.accuracy)
    assert list(found) == ["a", "b", "random"]
    np.testing.assert_allclose(found["a"], [0.75, 0.25, 0.25])
    np.testing.assert_allclose(found["random"], [0.75, 0.25, 0.25])
