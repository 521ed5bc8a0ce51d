"""Eight similarities of both hidden layers of a 784-64-64-10 ReLU network on 10,000 images: closed form
against automatic differentiation, CPU seconds on one thread, all in one run.

The images are random: no route's time depends on their values. The closed form is timed on all of them. The
two automatic routes are timed on few and scaled to 10,000, which is fair to them, for their cost per image is
constant: torch.func with vmap in chunks of 64 (`from_module`), and one image, one backward pass at a time
(below).
"""

import itertools
import math
import time

import numpy as np
import torch
from torch import nn
from torch.autograd.functional import hessian, jacobian
from torch.nn.functional import cross_entropy

from neuronkit.metrics.similarity import KINDS, from_module, similarities

IMAGES = 10_000


def cpu_seconds(call, repeats):
    """Median of some runs after one that warms up."""
    call()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return float(np.median(times))


def network(seed, sizes=(784, 64, 64, 10)):
    torch.manual_seed(seed)
    parts = [[nn.Linear(i, o), nn.ReLU()] for i, o in itertools.pairwise(sizes)]
    return nn.Sequential(*itertools.chain(*parts))[:-1]


def by_loop(module, x, y):
    """The raw similarities of both layers, sample by sample from their definitions: the baseline."""
    found = {}
    for depth in (2, 4):
        head, tail = module[:depth], module[depth:]
        h, J2, G2, H = [], 0, 0, 0
        for sample, label in zip(x, y, strict=True):
            h.append(head(sample).detach())
            J, G = jacobian(head, sample), jacobian(tail, h[-1])
            J2, G2 = J2 + J @ J.T, G2 + G.T @ G
            H = H + hessian(lambda h, tail=tail, label=label: cross_entropy(tail(h), label), h[-1])
        cov = torch.cov(torch.stack(h).double().T, correction=0)
        raw = (cov, J2 / len(x), H / len(x), G2 / len(x))
        found |= {(depth // 2, kind): S.abs() for kind, S in zip(KINDS, raw, strict=True)}
    return found


def main():
    torch.set_num_threads(1)
    module = network(0)
    weights = [(part.weight.detach(), part.bias.detach()) for part in module if hasattr(part, "weight")]
    g = torch.Generator().manual_seed(0)
    x = torch.rand(IMAGES, 784, generator=g)
    y = torch.randint(10, (IMAGES,), generator=g)

    few = 20
    closed, looped = similarities(weights, x[:few], y[:few]), by_loop(module, x[:few], y[:few])
    off = max(float(np.abs(closed[key] - S.detach().numpy()).max() / S.max()) for key, S in looped.items())
    print(f"same answer: largest difference {off:.1e} of a matrix's largest entry ({few} images)")

    one = cpu_seconds(lambda: similarities(weights, x, y), 5)
    print(f"closed form           {one:8.3f} s   {IMAGES} images, measured")
    routes = {
        "torch.func with vmap": (lambda n: [from_module(module, x[:n], y[:n], site) for site in "13"], 128),
        "one image at a time": (lambda n: by_loop(module, x[:n], y[:n]), few),
    }
    for name, (route, images) in routes.items():
        seconds = cpu_seconds(lambda route=route, images=images: route(images), 3) * IMAGES / images
        scaled = f"{images} images, scaled by {math.ceil(IMAGES / images)}"
        print(f"{name:21} {seconds:8.2f} s   {seconds / one:6.0f} x the closed form   ({scaled})")


if __name__ == "__main__":
    main()
