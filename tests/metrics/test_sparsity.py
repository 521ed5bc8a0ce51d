import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from neuronkit import InputError
from neuronkit.metrics.sparsity import active_counts, frequency_percentiles, hidden_unit_use, turned, union_curve

# Two sequences of four tokens and five units, worked out by hand; the last token of the second is padding.
ACTIVATIONS = np.array(
    [
        [[1, 0, 0, 2, 0], [1, 0, 0, 0, 0], [1, 3, 0, 0, 0], [1, 0, 0, 0, 0]],
        [[0, 0, 0, 1, 0], [0, 0, 0, 1, 0], [0, 0, 0.5, 0, 0], [9, 9, 9, 9, 9]],
    ],
    dtype=np.float32,
)
MASK = np.array([[1, 1, 1, 1], [1, 1, 1, 0]])
LENGTHS = MASK.sum(1)


def by_loops(activations, mask, threshold=0.0):
    counts = np.zeros((len(activations), activations.shape[2]), dtype=int)
    for s, t, u in np.ndindex(activations.shape):
        counts[s, u] += mask[s, t] > 0 and activations[s, t, u] > threshold
    return counts


def test_the_case_by_hand():
    counts = active_counts(ACTIVATIONS, MASK)
    assert counts.tolist() == [[4, 1, 0, 1, 0], [0, 0, 1, 2, 0]] and counts.dtype == np.int64
    use = hidden_unit_use(counts, LENGTHS)
    assert use == pytest.approx((9 / 35, 0.5, 0.8))
    assert frequency_percentiles(counts, LENGTHS, [50, 65, 90]) == pytest.approx([0.375, 0.5125, 0.7416666666666667])
    assert union_curve(counts).tolist() == [3, 4]
    found = turned(np.array([1, 1, 0, 0, 0], bool), np.array([1, 1, 1, 1, 0], bool))
    assert found == pytest.approx((0.4, 0.0, 2 / 3, 0.0))
    assert active_counts(torch.from_numpy(ACTIVATIONS), torch.from_numpy(MASK)).tolist() == counts.tolist()
    assert active_counts(ACTIVATIONS, threshold=1.5)[0].tolist() == [0, 1, 0, 1, 0]


arrays = st.tuples(st.integers(1, 4), st.integers(1, 6), st.integers(1, 5), st.integers(0, 2**16))


@settings(max_examples=60)
@given(arrays)
def test_equals_loops_and_numpy_and_the_order_holds(shape):
    s, t, f, seed = shape
    rng = np.random.default_rng(seed)
    activations = np.maximum(rng.normal(-0.5, 1, (s, t, f)), 0).astype(np.float32)
    lengths = rng.integers(1, t + 1, s)
    mask = np.arange(t) < lengths[:, None]
    counts = active_counts(activations, mask)
    assert np.array_equal(counts, by_loops(activations, mask))
    use = hidden_unit_use(counts, lengths)
    assert use.token <= use.sequence + 1e-12 or len(set(lengths)) > 1
    assert use.sequence <= use.batch + 1e-12
    q = [0, 10, 50, 65, 90, 100]
    expected = [np.percentile(c[c > 0] / n, q) for c, n in zip(counts, lengths, strict=True) if c.any()]
    found = frequency_percentiles(counts, lengths, q)
    assert np.isnan(found).all() if not expected else found == pytest.approx(np.mean(expected, axis=0))
    order = rng.permutation(f)
    assert np.array_equal(active_counts(activations[:, :, order] * 7, mask), counts[:, order])
    wider = np.concatenate([activations, np.ones((s, 2, f), np.float32)], 1)
    assert np.array_equal(active_counts(wider, np.pad(mask, ((0, 0), (0, 2)))), counts)
    assert union_curve(counts)[-1] == round(use.batch * f)


def test_independent_units_are_used_as_binomials_say():
    rng = np.random.default_rng(0)
    p, s, t, f = 0.02, 16, 32, 4000
    counts = active_counts((rng.random((s, t, f)) < p).astype(np.float32))
    use = hidden_unit_use(counts, np.full(s, t))
    sequence, batch = 1 - (1 - p) ** t, 1 - (1 - p) ** (s * t)
    for found, expected, n in [(use.token, p, s * t * f), (use.sequence, sequence, s * f), (use.batch, batch, f)]:
        assert abs(found - expected) < 4 * np.sqrt(expected * (1 - expected) / n)


def test_batches_of_fewer_sequences():
    counts = np.array([[1, 0], [0, 1], [0, 0], [0, 1], [1, 1]])
    lengths = np.ones(5, int)
    assert hidden_unit_use(counts, lengths, batch=2).batch == pytest.approx((1 + 0.5) / 2), "the fifth fills no batch"
    assert hidden_unit_use(counts, lengths, batch=1).batch == hidden_unit_use(counts[:5], lengths).sequence
    with pytest.raises(InputError, match="from 1 to the 5"):
        hidden_unit_use(counts, lengths, batch=6)


def test_the_empty_cases():
    assert np.isnan(frequency_percentiles(np.zeros((2, 3), int), [4, 4], [50, 90])).all()
    none, every = np.zeros(3, bool), np.ones(3, bool)
    assert np.isnan(turned(every, every).on_of_off) and np.isnan(turned(none, none).off_of_on)
    assert turned(none, every) == (1, 0, 1, pytest.approx(np.nan, nan_ok=True))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: active_counts(np.zeros((2, 3))), r"\(sequences, tokens, units\)"),
        (lambda: active_counts(np.full((1, 2, 3), np.nan)), "NaN or infinite"),
        (lambda: active_counts(ACTIVATIONS, MASK[:, :3]), "one entry per token"),
        (lambda: hidden_unit_use(np.zeros((2, 3)), [1, 1]), "must be integers"),
        (lambda: hidden_unit_use(np.zeros((2, 3), int), [1, 0]), "at least 1"),
        (lambda: hidden_unit_use(np.full((1, 3), 5), [4]), "above the length"),
        (lambda: frequency_percentiles(np.ones((1, 3), int), [4], [101]), "0 to 100"),
        (lambda: turned(np.ones(2, bool), np.ones(3, bool)), "alike"),
        (lambda: turned(np.ones(2), np.ones(2)), "boolean"),
    ],
)
def test_bad_input_is_one_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_counts_are_exact_in_every_precision(dtype):
    tensor = torch.relu(torch.randn(3, 300, 5, generator=torch.Generator().manual_seed(0)))
    tensor[0, :, 0] = 1.0  # 300 tokens: more than bfloat16 can count
    counts = active_counts(tensor.to(dtype))
    assert counts.dtype == np.int64 and counts[0, 0] == 300
    assert np.array_equal(counts, (tensor.to(dtype) > 0).sum(1).numpy())


def test_a_transposed_tensor_with_gradients_is_counted_as_it_looks():
    tensor = torch.randn(4, 2, 3, generator=torch.Generator().manual_seed(1), requires_grad=True).transpose(0, 1)
    assert np.array_equal(active_counts(tensor), (tensor > 0).sum(1).numpy())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_strange_value_is_enough_in_padding_too(value):
    activations = np.zeros((2, 3, 4), np.float32)
    activations[1, 2, 3] = value
    with pytest.raises(InputError, match="NaN or infinite"):
        active_counts(activations, [[1, 1, 1], [1, 1, 0]])


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_counts_as_the_cpu_does():
    tensor = torch.randn(3, 50, 7, generator=torch.Generator().manual_seed(0))
    mask = np.arange(150).reshape(3, 50) % 3
    assert np.array_equal(active_counts(tensor.cuda(), mask), active_counts(tensor, mask))
