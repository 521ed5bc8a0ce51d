"""Recording the use of hidden units: its cost beside a training step, against keeping activations, and in memory.

One thread, one run. The model is that of the laptop profile (width 64, 6 layers of 1,024 units, 8 sequences of 128
tokens). A recording is the hooks' counting in one forward pass and the summary of its counts, without the pass
itself, which evaluation needs anyway.
"""

import time
import tracemalloc

import numpy as np
import torch
from torch import nn

from neuronkit.metrics import sparsity
from neuronkit.models import decoder
from neuronkit.models.activations import UseRecorder

BATCH, LENGTH, UNITS, LAYERS = 8, 128, 1024, 6
REPEATS = 25


def cpu_ms(call, repeats=REPEATS):
    """Median CPU milliseconds of some calls after one that warms up."""
    call()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(1000 * (time.process_time() - start))
    return float(np.median(times))


def summary(counts, lengths):
    """All that training records of one layer."""
    return (
        *sparsity.hidden_unit_use(counts, lengths),
        *sparsity.frequency_percentiles(counts, lengths, decoder.PERCENTILES),
    )


def materialised(h):
    """The same numbers from the activations (B, T, F) themselves, as one would write them first: the baseline."""
    on = h > 0
    token, sequence, batch = on.float().mean(), on.any(1).float().mean(), on.any(1).any(0).float().mean()
    frequency = on.float().mean(1)
    q = torch.tensor(decoder.PERCENTILES) / 100
    percentiles = torch.stack([torch.quantile(f[f > 0], q) for f in frequency if (f > 0).any()]).mean(0)
    return (token.item(), sequence.item(), batch.item(), *percentiles.tolist())


def beside_training():
    """(CPU ms of a training step, CPU ms of a recording and its summary)."""
    shape = decoder.Shape(2048, LENGTH, 64, 4, (UNITS,) * LAYERS, 0.125)
    model = decoder.Decoder(shape, seed=0)
    optimiser = decoder.AdamW(model, 0.1)
    rows = torch.randint(0, 2048, (BATCH, LENGTH + 1), generator=torch.Generator().manual_seed(0))

    def step():
        decoder._loss(model, rows).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step(1e-3)

    def forward():
        with torch.no_grad():
            model(rows[:, :-1])

    spent = []  # on the sites alone: the difference of two passes would drown in noise

    class Timed(UseRecorder):
        def _see(self, index, activations):
            start = time.process_time()
            super()._see(index, activations)
            spent[-1] += 1000 * (time.process_time() - start)

    def recorded():
        spent.append(0.0)
        with Timed(model) as recorder:
            forward()
        start = time.process_time()
        for counts, lengths in zip(recorder.counts, recorder.lengths, strict=True):
            summary(counts, lengths)
        spent[-1] += 1000 * (time.process_time() - start)

    for _ in range(REPEATS + 1):
        recorded()
    return cpu_ms(step), float(np.median(spent[1:]))


def against_materialised():
    """(CPU ms of the baseline, of ours) for one layer, after a check that both give the same numbers."""
    h = torch.relu(torch.randn(BATCH, LENGTH, UNITS, generator=torch.Generator().manual_seed(1)) - 1.5)
    lengths = np.full(BATCH, LENGTH)

    def ours():
        return summary(sparsity.active_counts(h), lengths)

    np.testing.assert_allclose(ours(), materialised(h), rtol=1e-5)
    return cpu_ms(lambda: materialised(h)), cpu_ms(ours)


def peak_kib(length, calls):
    """Peak memory of Python and NumPy while a recorder counts `calls` batches of sequences of a length, in KiB.

    The counts of each sequence are kept, (B, F) a batch; what is measured is what comes on top of them.
    """
    model = nn.Module()
    model.mlp = nn.Module()
    model.mlp.up, model.mlp.act = nn.Linear(4, UNITS), nn.ReLU()
    model.forward = lambda x: model.mlp.act(model.mlp.up(x))
    x = torch.randn(BATCH, length, 4)
    with torch.no_grad(), UseRecorder(model, sites=["mlp.act"]) as recorder:
        model(x)
        tracemalloc.start()
        for _ in range(calls):
            model(x)
        kept = sum(c.nbytes for c, _ in recorder._found[0][1:])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return (peak - kept) / 1024


def main():
    torch.set_num_threads(1)
    step, recording = beside_training()
    print(f"recording and summary {recording:.2f} ms of CPU, a training step {step:.1f} ms: {recording / step:.1%}")
    plain, ours = against_materialised()
    print(
        f"one layer: activations and torch.quantile {plain:.2f} ms, counts {ours:.2f} ms: {plain / ours:.1f} x faster"
    )
    for length, calls in ((128, 5), (512, 5), (128, 50)):
        print(f"memory beside the counts, {calls} batches of length {length}: {peak_kib(length, calls):.0f} KiB")


if __name__ == "__main__":
    main()
