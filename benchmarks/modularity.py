"""Maximising modularity: kernels against NumPy, and iterated local search against the paper's Monte Carlo.

The matrices are the eight similarities of both hidden layers of 64-64-64-10 ReLU networks on scikit-learn's
8x8 digits, two untrained and two trained briefly (one with dropout .5): 64 matrices of 64 units. CPU time on
one thread, all in one run. The NumPy baselines run few steps and are compared per step; the scoring is their
own, the choice (temperature by bisection) is the same in both. "Best known" is the best Q of any run here,
with ten more seeds of the iterated search.
"""

import time

import numpy as np
import torch
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits
from torch import nn

from neuronkit.metrics.modularity import maximize, modularity, monte_carlo, spectral
from neuronkit.metrics.similarity import similarities


def timed(call):
    start = time.process_time()
    result = call()
    return result, time.process_time() - start


def matrices():
    pixels, labels = load_digits(return_X_y=True)
    x, y = torch.tensor(pixels / 16, dtype=torch.float32), torch.tensor(labels)
    found = []
    for seed, (steps, dropout) in enumerate([(0, 0.0), (0, 0.0), (600, 0.0), (600, 0.5)]):
        torch.manual_seed(seed)
        hidden = [part for _ in range(2) for part in (nn.Linear(64, 64), nn.ReLU(), nn.Dropout(dropout))]
        module = nn.Sequential(*hidden, nn.Linear(64, 10))
        optimizer = torch.optim.Adam(module.parameters(), 1e-3)
        for _ in range(steps):
            rows = torch.randint(len(x), (200,))
            optimizer.zero_grad()
            nn.functional.cross_entropy(module(x[rows]), y[rows]).backward()
            optimizer.step()
        weights = [(part.weight, part.bias) for part in module if isinstance(part, nn.Linear)]
        found += similarities(weights, x, y).values()
    return np.stack(found)


def choose(scores, rng):
    """An option by exp(Q / T), T bisected to an entropy of 0.15 nats."""
    low, high = np.log(1e-6), np.log(1e6)
    while high - low > 1e-2:
        middle = (low + high) / 2
        p = np.exp((scores - scores.max()) / np.exp(middle))
        p /= p.sum()
        entropy = -np.sum(p * np.log(p + 1e-300))
        if abs(entropy - 0.15) <= 0.01:
            break
        low, high = (low, middle) if entropy > 0.15 else (middle, high)
    return rng.choice(len(scores), p=p)


def recomputed(B, P, i):
    """As published: tr(P' B P) anew for every option of unit i."""
    options = np.append(np.flatnonzero(P.any(0)), np.flatnonzero(~P.any(0))[0])
    scores = np.empty(len(options))
    for number, option in enumerate(options):
        trial = P.copy()
        trial[i] = 0
        trial[i, option] = 1
        scores[number] = np.trace(trial.T @ B @ trial)
    return options, scores


def incremental(B, P, i):
    """Options differ by 2 (B P)_ic alone, unit i left out."""
    sizes = P.sum(0)
    options = np.append(np.flatnonzero(sizes), np.flatnonzero(sizes == 0)[0])
    return options, 2 * (B[i] @ P - B[i, i] * P[i])[options]


def numpy_steps(A, labels, steps, score):
    """Monte Carlo steps in NumPy; `score` gives options and their Q. The baseline."""
    rng = np.random.default_rng(0)
    A = A - np.diag(np.diag(A))
    A = A / A.sum()
    B = A - np.outer(A.sum(1), A.sum(1))
    live = np.flatnonzero(labels >= 0)
    P = (labels[:, None] == np.arange(len(A) + 1)).astype(float)
    for _ in range(steps):
        i = rng.choice(live)
        options, scores = score(B, P, i)
        P[i] = 0
        P[i, options[choose(scores, rng)]] = 1
    return modularity(A, np.where(labels >= 0, P.argmax(1), -1))


def speed(A):
    starts = spectral(A)
    _, seconds = timed(lambda: monte_carlo(A, starts, steps=5000))
    kernel = seconds / (len(A) * 5000)
    print(f"one Monte Carlo step, kernel                {kernel * 1e6:9.2f} us   {len(A)} matrices, 5000 steps")
    for name, score, steps in [("Q anew per option", recomputed, 50), ("incremental", incremental, 200)]:
        some = range(0, len(A), 4)
        start = time.process_time()
        for m in some:
            numpy_steps(A[m], starts[m], steps, score)
        seconds = time.process_time() - start
        step = seconds / (len(some) * steps)
        what = f"{len(some)} matrices, {steps} steps"
        print(f"one step, NumPy, {name:18}         {step * 1e6:9.2f} us   {step / kernel:6.0f} x   {what}")


def quality(A):
    methods = {
        "spectral": lambda: monte_carlo(A, spectral(A), steps=0)[0],
        "spectral, newman2006": lambda: monte_carlo(A, spectral(A, variant="newman2006"), steps=0)[0],
        "paper, 5,000 steps": lambda: maximize(A)[0],
        "paper, 20,000 steps": lambda: maximize(A, steps=20_000)[0],
        "ils, 100 rounds": lambda: maximize(A, method="ils")[0],
    }
    found = {name: timed(call) for name, call in methods.items()}
    more = [maximize(A, method="ils", seed=seed)[0] for seed in range(1, 11)]
    best = np.max([*(q for q, _ in found.values()), *more], axis=0)
    base = found["paper, 5,000 steps"][1]
    for name, (q, seconds) in found.items():
        gap = 1 - q / best
        hits = f"best known in {np.mean(gap < 1e-6):4.0%}"
        cost = f"{seconds / len(A) * 1e3:6.2f} ms per matrix, {seconds / base:.2f} x 5,000 steps"
        print(f"{name:21} mean gap to best known {gap.mean():7.3%}   {hits}   {cost}")


def main():
    torch.set_num_threads(1)
    with threadpool_limits(1):
        A = matrices()
        maximize(A[0], steps=1)  # compiles, or reads what was compiled
        maximize(A[0], method="ils")
        speed(A)
        quality(A)


if __name__ == "__main__":
    main()
