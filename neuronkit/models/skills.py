"""The jobs of paper 3: tune prompts for each task and trial, probe every unit, perturb them.

A *split* is (texts, labels); `splits` holds "train", "dev" and "test" of each task. What is returned are the arguments
of `prompts.tune`, `prompts.probe` and so on, to be computed one by one and kept.
"""

import numpy as np

from neuronkit import InputError
from neuronkit.metrics import predictivity
from neuronkit.metrics.perturbation import top_share


def tuning(splits: dict, verbalisers: dict, *, steps: dict, trials: int, seed: int, **settings) -> dict:
    """{(task, trial): arguments of `prompts.tune`}; the trials of a task differ in their seed alone.

    verbalisers, steps: of each task. settings: model, readout, prompts, length and how to train.
    """
    jobs = {}
    for task, parts in splits.items():
        (texts, labels), (dev_texts, dev_labels) = parts["train"], parts["dev"]
        items = {"texts": texts, "labels": labels, "dev_texts": dev_texts, "dev_labels": dev_labels}
        for trial in range(trials):
            own = {"verbalisers": verbalisers[task], "steps": steps[task], "seed": seed + trial}
            jobs[task, trial] = {**settings, **items, **own}
    return jobs


def subtasks(labels) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
    """The two-class subtasks of a task: {name: (ids that count as 0, ids that count as 1)}. [paper 3, section 3.2]

    A task of two classes is its own, with no name. Of three, the outer two against each other, then the middle one
    against the rest.
    """
    if len(np.unique(labels)) == 2:
        return {"": ((0,), (1,))}
    return {"outer": ((0,), (2,)), "middle": ((0, 2), (1,))}


def cut(split, zero: tuple[int, ...], one: tuple[int, ...]) -> tuple[list[str], np.ndarray]:
    """The items of a split as a subtask, (texts, labels 0 or 1), the larger class cut so that both are as large."""
    texts, labels = split
    binary = np.where(np.isin(labels, one), 1, np.where(np.isin(labels, zero), 0, -1))
    each = np.bincount(binary[binary >= 0], minlength=2).min()
    kept = np.sort(np.concatenate([np.flatnonzero(binary == label)[:each] for label in (0, 1)]))
    return [texts[i] for i in kept], binary[kept]


def probing(splits: dict, tuned: dict, *, baseline: int, shuffles: int, seed: int, **settings) -> dict:
    """{(task, trial, subtask): arguments of `prompts.probe`}.

    tuned: {(task, trial): what `prompts.tune` gave}. baseline: so many training items give the mean. The label columns
    are those of `predictivity.dev_and_test`.
    """
    jobs = {}
    for (task, trial), of in tuned.items():
        for name, ids in subtasks(splits[task]["train"][1]).items():
            train, dev, test = (cut(splits[task][split], *ids) for split in ("train", "dev", "test"))
            columns = predictivity.dev_and_test(dev[1], test[1], shuffles=shuffles, seed=seed)
            behind = {"train": train[0][:baseline], "train_labels": train[1][:baseline]}
            items = {"texts": dev[0] + test[0], "columns": columns}
            jobs[task, trial, name] = {**settings, "prompts": of["prompts"], **behind, **items}
    return jobs


def chosen(probe: dict, *, read: str = "prompts", variant: str = "max", strict: bool = True) -> predictivity.Chosen:
    """Units with prompt and sign chosen on dev, and scored on test, from what `prompts.probe` counted.

    read: "prompts" (without the mask), or the text's own tokens: "average", "maximum". strict: see `predictivity`.
    """
    if read == "prompts":
        accuracy, std = probe["accuracy"][:2, 1:], probe["std"][1:]
    else:
        accuracy, std = probe[f"accuracy_{read}"][:2, None], probe[f"std_{read}"][None]
    return predictivity.chosen(*accuracy, std if strict else None, variant=variant)


def ceiling(probe: dict, *, strict: bool = True) -> float:
    """The highest predictivity of all units and prompts where the labels are shuffled, mean over shuffles."""
    found = predictivity.either_sign(probe["accuracy"][2:, 1:], probe["std"][1:] if strict else None)
    return float(found.max((1, 2)).mean())


def scores(probes: dict, *, strict: bool = True) -> dict:
    """{task: (subtasks, N)}: predictivity, averaged over trials. [eq. 6]"""
    names = {(task, name): None for task, _, name in probes}
    found: dict = {}
    for task, name in names:
        of = [chosen(p, strict=strict).predictivity for (t, _, n), p in probes.items() if (t, n) == (task, name)]
        found.setdefault(task, []).append(np.mean(of, axis=0))
    return {task: np.array(rows) for task, rows in found.items()}


def orders(scores: dict, widths, *, rates, random: int, seed: int) -> dict:
    """{name of the order: (rates, N) boolean}: the top units of each task, and as many of each layer at random.

    scores: {task: (subtasks, N)}. The random orders are named "random 0" and so on; each rate takes in the one below.
    """
    rng = np.random.default_rng(seed)
    given = {**scores, **{f"random {i}": rng.random(sum(widths)) for i in range(random)}}
    return {name: np.array([top_share(of, widths, rate) for rate in rates]) for name, of in given.items()}


def perturbing(
    splits: dict,
    tuned: dict,
    probes: dict,
    verbalisers: dict,
    orders: dict,
    *,
    how: str,
    sigma: float,
    items: int,
    seed: int,
    **settings,
) -> dict:
    """{(task, trial): arguments of `prompts.perturbed`}: first no unit, then each order at each rate, in turn.

    how: "noise" of standard deviation sigma; "relative", of sigma times the unit's own; "zero"; or "mean", the unit's
    mean. A unit's mean and deviation are those over training items, averaged over prompts. items: test items.
    Raises InputError for another `how`.
    """
    if how not in ("noise", "relative", "zero", "mean"):
        raise InputError(f'how is "{how}": use "noise", "relative", "zero" or "mean".')
    masks = np.concatenate(list(orders.values()))
    masks = np.concatenate([np.zeros_like(masks[:1]), masks])
    kind, jobs = "set" if how in ("zero", "mean") else "noise", {}
    for (task, trial), of in tuned.items():
        probe = next(p for key, p in probes.items() if key[:2] == (task, trial))
        mean, std = (probe[name][1:].mean(0) for name in ("mean", "std"))
        put = {"noise": sigma, "relative": sigma * std, "zero": 0.0, "mean": mean}[how]
        own = {"prompts": of["prompts"], "verbalisers": verbalisers[task], "texts": splits[task]["test"][0][:items]}
        jobs[task, trial] = {**settings, **own, "masks": masks, "how": kind, "values": put, "seed": seed}
    return jobs


def curves(logits, labels, orders: dict, measure) -> dict:
    """{order: (1 + rates,)} of a measure of logits (M, n, C) as `perturbing` asked for them; the random ones averaged.

    measure: (logits, labels) -> (M,). Rate 0, where nothing is perturbed, comes first.
    """
    found = measure(logits, labels)
    rates = len(next(iter(orders.values())))
    parts = dict(zip(orders, found[1:].reshape(-1, rates), strict=True))
    named = {name: part for name, part in parts.items() if not name.startswith("random")}
    named["random"] = np.mean([part for name, part in parts.items() if name.startswith("random")], axis=0)
    return {name: np.concatenate([found[:1], part]) for name, part in named.items()}
