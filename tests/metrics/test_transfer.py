import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from neuronkit import InputError
from neuronkit.metrics.transfer import activated_overlap

A, B = [1.2, -0.1, 0.0, 0.3, -0.2, 2.0], [0.5, 0.4, -0.1, -0.3, -0.1, 0.1]


def test_overlap_by_hand():
    assert activated_overlap(A, B) == pytest.approx(2 / 3)
    assert activated_overlap(A, B, neurons=[0, 3]) == pytest.approx(0.70711, abs=1e-5)
    assert np.isnan(activated_overlap([1.0, 1.0], [-1.0, 0.0]))


VECTORS = arrays(np.float64, 12, elements=st.floats(-3, 3))


@given(VECTORS, VECTORS)
def test_overlap_is_symmetric_and_blind_to_scale(a, b):
    found = activated_overlap(a, b)
    np.testing.assert_equal(activated_overlap(b, a), found)
    np.testing.assert_equal(activated_overlap(3 * a, b), found)
    assert np.isnan(found) or 0 <= found <= 1 + 1e-12
    assert np.isnan(activated_overlap(a, a)) or activated_overlap(a, a) == pytest.approx(1)


@pytest.mark.parametrize(("a", "b", "says"), [(A, B[:5], r"\(6,\) and \(5,\)"), (A, [np.nan] * 6, "not finite")])
def test_bad_input(a, b, says):
    with pytest.raises(InputError, match=says):
        activated_overlap(a, b)
