import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuronkit import InputError
from neuronkit.metrics import dynamics

STEPS = np.array([0, 1, 3, 10, 30, 100])


@given(st.integers(0, 2**32 - 1))
def test_half_fall_is_where_a_dense_curve_crosses(seed):
    values = np.random.default_rng(seed).random((6, 3))
    found = dynamics.half_fall(STEPS, values)
    dense = np.linspace(0, 100, 100_001)
    for layer, at in enumerate(found):
        curve = np.interp(dense, STEPS, values[:, layer])
        half = (values[0, layer] + values[:, layer].min()) / 2
        if values[:, layer].argmin() == 0:
            assert np.isnan(at)
        else:
            assert at == pytest.approx(dense[(curve <= half).argmax()], abs=2e-3)


def test_half_fall_does_not_change_with_level_and_scale():
    values = np.random.default_rng(0).random((6, 4))
    assert np.allclose(dynamics.half_fall(STEPS, values), dynamics.half_fall(STEPS, 3 * values + 7), equal_nan=True)


def test_turn_off_rate_counts_each_unit_that_goes():
    used = np.random.default_rng(0).random((6, 40)) < 0.5
    by_hand = [
        1000 * sum(a and not b for a, b in zip(used[i], used[i + 1], strict=True)) / 40 / (STEPS[i + 1] - STEPS[i])
        for i in range(5)
    ]
    assert np.allclose(dynamics.turn_off_rate(STEPS, used), by_hand)
    assert not dynamics.turn_off_rate(STEPS, np.cumsum(used, 0) > 0).any()  # units that only wake


def test_at_loss_is_linear_between_records_and_nan_beyond():
    loss = np.array([4.0, 3.0, 3.5, 1.0])
    values = np.stack([loss * 2, -loss], axis=1)
    assert np.allclose(dynamics.at_loss(loss, values, 3.2), [6.4, -3.2])
    assert np.array_equal(dynamics.at_loss(loss, values, 5.0), values[0])
    assert np.isnan(dynamics.at_loss(loss, values, 0.5)).all()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: dynamics.half_fall([0, 1], [[1.0]]), "one value per record"),
        (lambda: dynamics.at_loss([], [], 1.0), "one value per record"),
        (lambda: dynamics.at_loss([1.0, np.nan], [1.0, 2.0], 1.0), "NaN or infinite"),
        (lambda: dynamics.turn_off_rate([0, 1], [[1], [0]]), "must be boolean"),
    ],
)
def test_a_mistake_is_one_sentence(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()
