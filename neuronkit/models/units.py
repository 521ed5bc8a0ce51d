"""Similarity and modularity of the units of many networks at once. [paper 1, sections 2 and 4]

Arrays have the axes network M, hidden layer L, measure K (in the order of MEASURES), then units.
"""

import time
import warnings

import numpy as np

from neuronkit import InputError
from neuronkit.metrics import modularity, partitions
from neuronkit.metrics.intervals import mean_and_sem
from neuronkit.metrics.similarity import KINDS, similarities
from neuronkit.models.mlp import pixels

MEASURES = tuple(name for kind in KINDS for name in (kind, f"{kind}_norm"))
UPSTREAM = ("cov", "cov_norm", "isens", "isens_norm")


def similarity(networks: dict, images, labels, *, progress=lambda steps, what: steps) -> dict:
    """{"S": (M, L, K, n, n)}: the eight similarities of every hidden layer of every network, float64.

    networks: as `mlp.train_ensemble` returns them. images (N, …) uint8 or float, labels (N,).
    """
    x, weights = pixels(images), networks["weights"]
    found = []
    for m in progress(range(len(weights[0]["b"])), "similarities"):
        S = similarities([(layer["W"][m].copy(), layer["b"][m].copy()) for layer in weights], x, labels)
        found.append([[S[depth, kind] for kind in MEASURES] for depth in range(1, len(weights))])
    return {"S": np.array(found)}


def partition(similarities: dict, *, method: str = "paper", steps: int = 5000, seed: int = 0) -> dict:
    """Q* and P* of every matrix S of `similarity`: {"q": (M, L, K), "labels": (…, n), "clusters": (M, L, K)}.

    method, steps, seed: as in `modularity.maximize`. A matrix of zeros has q nan, labels -1 and clusters nan.
    """
    S = np.asarray(similarities["S"])
    q, labels = _on_all(lambda A: modularity.maximize(A, method=method, steps=steps, seed=seed), S)
    flat = labels.reshape(-1, S.shape[-1])
    clusters = np.array([modularity.number_of_clusters(p) if p.max() >= 0 else np.nan for p in flat])
    return {"q": q, "labels": labels, "clusters": clusters.reshape(q.shape)}


def searches(S, *, steps: int = 5000, seed: int = 0) -> dict:
    """Q and CPU time per matrix of each way to search, {"q": {name: (…)}, "seconds": {name: …}}, for S (…, n, n).

    Names: spectral (bisection only), monte_carlo_together and monte_carlo_apart (random moves from one cluster and
    from single units), both (the paper's method), newman2006 (bisection by the largest eigenvalue), ils. [paper 1, S2]
    """
    S = np.asarray(S)
    n = S.shape[-1]

    def start(A, labels):
        return modularity.monte_carlo(A, np.tile(labels, (len(A), 1)), steps=steps, seed=seed)

    def bisection(A, variant):
        labels = modularity.spectral(A, variant=variant)
        q = [modularity.modularity(a, p) for a, p in zip(A, labels, strict=True)]
        return np.array(q), labels

    ways = {
        "spectral": lambda A: bisection(A, "paper"),
        "newman2006": lambda A: bisection(A, "newman2006"),
        "monte_carlo_together": lambda A: start(A, np.zeros(n, int)),
        "monte_carlo_apart": lambda A: start(A, np.arange(n)),
        "both": lambda A: modularity.maximize(A, steps=steps, seed=seed),
        "ils": lambda A: modularity.maximize(A, method="ils", seed=seed),
    }
    q, seconds = {}, {}
    for name, search in ways.items():
        _on_all(search, S.reshape(-1, n, n)[:1])  # compiles where that was not done before
        began = time.process_time()
        q[name], _ = _on_all(search, S)
        seconds[name] = (time.process_time() - began) / (S.size / n**2)
    return {"q": q, "seconds": seconds}


def _on_all(search, S) -> tuple[np.ndarray, np.ndarray]:
    """search((m, n, n)) -> (q, labels) on S (…, n, n); that a matrix is all zeros shows as nan, without a warning."""
    if S.size == 0:
        raise InputError("no network is left to look at: lower the accuracy limit, or train for longer.")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*all zeros", category=RuntimeWarning)
        q, labels = search(S.reshape(-1, *S.shape[-2:]))
    return np.asarray(q).reshape(S.shape[:-2]), np.asarray(labels).reshape(S.shape[:-1])


def indices(labels) -> dict:
    """How alike the partitions of the measures are, by each index of `metrics.partitions`. [paper 1, section 5]

    labels (M, L, K, n), as `partition` gives them. Returns {"element": (K, K), "nmi": …, "undefined": {index: count}}:
    means over networks and layers; a pair of trivial partitions, for which an index is 0 / 0, is left out and counted.
    """
    found, undefined = {}, {}
    for name in ("element", *partitions.INDICES):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*trivial alike", category=RuntimeWarning)
            values = partitions.pairwise(labels, name)
        undefined[name] = int(np.isnan(values).sum())
        found[name] = mean_and_sem(values, (0, 1))[0]
    return found | {"undefined": undefined}
