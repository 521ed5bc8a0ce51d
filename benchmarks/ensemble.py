"""Training the 30 settings of Table 1 as one ensemble, against one plain PyTorch network after the other.

Both do the same steps of 200 images with one thread on the same data (random pixels: time does not depend on them).
The plain loop is what one would write first: nn.Sequential, DataLoader, autograd for the penalty, torch.optim.Adam. The
second baseline cuts the batches by index instead, which is the faster half of it.
"""

import time

import numpy as np
import torch
from torch import nn

from neuronkit.models import mlp

STEPS, BATCH = 60, 200


def plain_loop(batches, setting: dict) -> None:
    p = setting["dropout"]
    hidden = [nn.Linear(784, 64), nn.ReLU(), nn.Dropout(p), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(p)]
    net = nn.Sequential(*hidden, nn.Linear(64, 10))
    adam = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _, (x, y) in zip(range(STEPS), batches, strict=False):
        weights = [p for p in net.parameters() if p.ndim == 2]
        l1, l2 = sum(w.abs().sum() for w in weights), sum(w.square().sum() for w in weights)
        loss = nn.functional.cross_entropy(net(x), y) + setting["l1"] * l1 + setting["l2"] * l2
        adam.zero_grad()
        loss.backward()
        adam.step()


def ensemble(x, y, settings: list[dict]) -> None:
    nets = mlp.Ensemble(mlp.initial_weights(0), settings, batch=BATCH, lr=1e-3)
    random = np.random.default_rng(0)
    for batch in torch.randperm(len(x)).split(BATCH)[:STEPS]:
        nets.step(x[batch], y[batch], random)


def per_step(function, networks: int) -> float:
    """Median of 3 of the microseconds per network and step."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        function()
        times.append((time.perf_counter() - start) / networks / STEPS * 1e6)
    return float(np.median(times))


def main() -> None:
    torch.set_num_threads(1)
    x, y = torch.rand(STEPS * BATCH, 784), torch.randint(0, 10, (STEPS * BATCH,))
    settings = mlp.table1()
    parts = [settings[:16], settings[16:]]  # as mlp.jobs makes them
    some = settings[::10]  # the plain loop takes the same time for each setting but for dropout

    def loader():
        return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=BATCH, shuffle=True)

    def by_index():
        return ((x[i], y[i]) for i in torch.randperm(len(x)).split(BATCH))

    ours = per_step(lambda: [ensemble(x, y, part) for part in parts], len(settings))
    plain = per_step(lambda: [plain_loop(loader(), s) for s in some], len(some))
    indexed = per_step(lambda: [plain_loop(by_index(), s) for s in some], len(some))
    print(f"ensemble of 30: {ours:.0f} µs per network and step of {BATCH}")
    print(f"plain PyTorch loop: {plain:.0f} µs, with batches cut by index {indexed:.0f} µs")
    print(f"ensemble / plain loop: {plain / ours:.1f} times as fast (batches cut by index: {indexed / ours:.1f})")


if __name__ == "__main__":
    main()
