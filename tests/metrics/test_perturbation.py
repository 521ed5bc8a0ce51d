import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.metrics import roc_auc_score

from neuronkit import InputError
from neuronkit.metrics import perturbation

FIXTURES = json.loads((Path(__file__).parent / "fixtures_skill_neurons.json").read_text())


def test_neuronal_importance():
    of = FIXTURES["neuronal_importance"]
    area = perturbation.neuronal_importance(of["rates"], np.array(of["acc_source"]), of["acc_random"])
    assert area == pytest.approx(of["area"])
    assert perturbation.neuronal_importance(of["rates"], of["acc_random"], of["acc_source"]) == pytest.approx(-area)
    z = FIXTURES["zscore"]
    found = perturbation.standardised(np.array(z["importance_of_sources"])[:, None])
    np.testing.assert_allclose(found[:, 0], z["z_population"])
    assert np.isnan(perturbation.standardised(np.ones((3, 1)))).all()


@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 3]))
def test_auc_is_scikit_learns(seed, classes):
    rng = np.random.default_rng(seed)
    logits, labels = rng.normal(size=(2, 30, classes)), np.arange(30) % classes
    if classes == 2:
        logits = logits.round()  # with ties
    for ours, of in zip(perturbation.roc_auc(logits, labels), logits, strict=True):
        scores = of[:, 1] - of[:, 0] if classes == 2 else softmax(of, axis=-1)
        assert ours == pytest.approx(roc_auc_score(labels, scores, multi_class="ovr"))
    np.testing.assert_allclose(perturbation.accuracy(logits, labels), (logits.argmax(-1) == labels).mean(-1))


@given(st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_each_layer_gives_its_share(seed, share):
    widths = [5, 100, 7]
    scores = np.random.default_rng(seed).normal(size=sum(widths))
    mask = perturbation.top_share(scores, widths, share)
    for part, of in zip(np.split(mask, np.cumsum(widths)[:-1]), np.split(scores, np.cumsum(widths)[:-1]), strict=True):
        assert part.sum() == int(round(share * len(part), 9))
        assert not part.any() or part.all() or of[part].min() >= of[~part].max()
    assert perturbation.top_share(scores, widths, share, per_layer=False).sum() == int(round(share * 112, 9))


def test_a_share_that_is_no_binary_fraction():
    assert perturbation.top_share(np.arange(100), [100], 0.29).sum() == 29


def test_same_kind_contrast():
    values = np.array([[9, 1, 0], [1, 9, 0.5], [0, 0.5, 9]])
    assert perturbation.same_kind_contrast(values, ["a", "a", "b"]) == pytest.approx(1 - 0.25)
    assert np.isnan(perturbation.same_kind_contrast(values, ["a", "a", "a"]))


def test_mistakes_are_named():
    with pytest.raises(InputError, match=r"share is 1\.5"):
        perturbation.top_share([1, 2], [2], 1.5)
    with pytest.raises(InputError, match="2 scores and 3 units"):
        perturbation.top_share([1, 2], [3], 0.5)
    with pytest.raises(InputError, match="one class: an AUC needs both"):
        perturbation.roc_auc(np.zeros((2, 2)), [0, 0])
    with pytest.raises(InputError, match="ascend"):
        perturbation.neuronal_importance([0.2, 0.1], [1, 1], [1, 1])
    with pytest.raises(InputError, match=r"must be \(S,\)"):
        perturbation.neuronal_importance([0.1, 0.2], [1], [1, 1])
