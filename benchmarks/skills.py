"""Soft prompts and predictivity: a tuning step and a probe against the plain scheme, label columns, and memory.

One thread, one run, the packaged MiniLM on its sentiment task. The plain scheme is that of the published code, in
our words: every text is padded to one length, the weights take part in the gradient, and each statistic has a pass
and a loop over samples of its own.
"""

import time
import tracemalloc

import numpy as np
import torch

from neuronkit.data import tasks, weights
from neuronkit.metrics import predictivity
from neuronkit.models import encoders, fitting, prompts
from neuronkit.models.activations import stream

PROMPTS, LENGTH, ITEMS, BATCH = 8, 32, 256, 16


def cpu(call, repeats):
    """Median CPU seconds of some calls after one that warms up."""
    call()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return float(np.median(times))


def padded(encoder, soft, ids):
    """Inputs of one length for all texts."""
    pad = encoder.tokenizer.pad_token_id
    given = encoders.inputs(encoder, soft, [row + [pad] * (LENGTH - len(row)) for row in ids])
    lengths = torch.tensor([len(row) for row in ids])
    given["attention_mask"] = (torch.arange(given["attention_mask"].shape[1]) < PROMPTS + 1 + lengths[:, None]).long()
    return given


def training(encoder, classes, texts, labels):
    """(CPU seconds of a plain training step, of ours)."""
    ids, _ = encoders.encoded(encoder, texts, prompts=PROMPTS, length=LENGTH)
    lengths = np.array([len(row) for row in ids])
    soft = prompts.random_prompts(encoder, PROMPTS, 0).requires_grad_()
    turn = iter(range(10_000))

    def plain():
        rows = np.random.default_rng(next(turn)).permutation(len(ids))[:BATCH]
        encoder.body.requires_grad_(True)
        encoder.body.train()
        of = encoders.logits(encoder, classes, padded(encoder, soft, [ids[r] for r in rows]))
        torch.nn.functional.cross_entropy(of, torch.tensor(labels[rows])).backward()
        encoder.body.zero_grad()
        encoder.body.requires_grad_(False)
        encoder.body.eval()

    def ours():
        rows = fitting.training_batch(lengths, next(turn), BATCH, 0)
        of = encoders.logits(encoder, classes, encoders.inputs(encoder, soft, [ids[r] for r in rows]))
        torch.autograd.grad(torch.nn.functional.cross_entropy(of, torch.tensor(labels[rows])), soft)

    return cpu(plain, 12), cpu(ours, 12)


def plain_probe(encoder, soft, texts, labels):
    """Accuracy at the prompts, by average and by maximum over words: three baselines and three scores, six passes."""
    ids, _ = encoders.encoded(encoder, texts, prompts=PROMPTS, length=LENGTH)

    def kept(kind):
        found = []
        for start in range(0, len(ids), BATCH):
            part, layers = ids[start : start + BATCH], []
            stream(encoder.body, [padded(encoder, soft, part)], lambda _, h, __, layers=layers: layers.append(h))
            h = torch.cat(layers, -1)
            for row, text in zip(h, part, strict=True):
                words = row[PROMPTS + 1 : PROMPTS + 1 + len(text)]
                found.append({"prompts": row[: PROMPTS + 1], "average": words.mean(0), "maximum": words.amax(0)}[kind])
        return found

    accuracy = {}
    for kind in ("prompts", "average", "maximum"):
        total = 0
        for activation in kept(kind):
            total = total + activation
        baseline, right = total / len(ids), 0
        for activation, label in zip(kept(kind), labels, strict=True):
            right = right + ((activation > baseline) == bool(label)).float()
        accuracy[kind] = right / len(ids)
    return accuracy


def probing(folder, encoder, texts, labels):
    """(CPU seconds of the plain probe, of ours), after a check that both say the same."""
    soft = prompts.random_prompts(encoder, PROMPTS, 0)
    column = predictivity.columns(labels)[:, None]
    given = {"prompts": soft.numpy(), "train": texts, "train_labels": labels, "texts": texts, "length": LENGTH}
    plain, ours = plain_probe(encoder, soft, texts, labels), prompts.probe(folder, **given, columns=column)
    apart = np.abs(plain["prompts"].numpy() - ours["accuracy"][0])
    assert np.median(apart) < 1e-6 and (apart[ours["std"] > 1e-3] <= 1.5 / len(texts)).all()
    return (
        cpu(lambda: plain_probe(encoder, soft, texts, labels), 1),
        cpu(lambda: prompts.probe(folder, **given, columns=column), 3),
    )


def label_columns(folder, texts, labels):
    """(CPU seconds of a probe with one label column, with 64)."""
    rng = np.random.default_rng(0)
    many = np.stack([predictivity.columns(rng.permutation(labels)) for _ in range(64)], 1)
    soft = prompts.random_prompts(encoders.loaded(folder), PROMPTS, 0).numpy()
    given = {"prompts": soft, "train": texts, "train_labels": labels, "texts": texts, "length": LENGTH}
    one, all_ = (
        cpu(lambda columns=columns: prompts.probe(folder, **given, columns=columns), 3)
        for columns in (many[:, :1], many)
    )
    return one, all_


def peak_mib(samples):
    """Peak MiB of the two passes over so many samples; torch's own buffers are counted by their size."""
    rng = torch.Generator().manual_seed(0)
    shape = (64, PROMPTS + 1, 1536)
    columns = np.tile([[1.0], [-1.0]], (samples // 2, 1))
    tracemalloc.start()
    moments = predictivity.Moments()
    for _ in range(samples // 64):
        moments.add(torch.randn(shape, generator=rng))
    hits = predictivity.Hits(moments.mean, columns)
    for i in range(samples // 64):
        hits.add(np.arange(64 * i, 64 * (i + 1)), torch.randn(shape, generator=rng))
    state = sum(
        t.numel() * t.element_size() for t in (*vars(moments).values(), *vars(hits).values()) if torch.is_tensor(t)
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (peak + state) / 2**20


def main():
    torch.set_num_threads(1)
    folder = weights.named("minilm-l6")
    encoder, about = encoders.loaded(folder), tasks.about("rotten_tomatoes")
    texts, labels = tasks.load("rotten_tomatoes", train=ITEMS * 4, dev=2, test=2)["train"]
    classes = encoders.read_with(encoder, "sentence", list(about.phrases))
    plain, ours = training(encoder, classes, texts, labels)
    print(f"training step: plain {plain:.3f} s, ours {ours:.3f} s: {plain / ours:.2f} x faster")
    plain, ours = probing(folder, encoder, texts[:ITEMS], labels[:ITEMS])
    print(f"probe of {ITEMS} texts: plain {plain:.1f} s, ours {ours:.1f} s: {plain / ours:.2f} x faster")
    one, many = label_columns(folder, texts[:ITEMS], labels[:ITEMS])
    print(f"label columns: one {one:.2f} s, 64 {many:.2f} s: {many / one:.2f} x the cost")
    for samples in (512, 2048):
        print(f"memory of both passes, {samples} samples: {peak_mib(samples):.2f} MiB")


if __name__ == "__main__":
    main()
