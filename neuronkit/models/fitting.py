"""Train soft prompts, or other tensors of an encoder that reads classes: schedule, early stop, checkpoint (paper 3)."""

import contextlib
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from neuronkit import InputError
from neuronkit.models.encoders import Classes, Encoder, classify, encoded, inputs, logits, own_randomness

BETAS, EPS = (0.9, 0.98), 1e-6
CHECKPOINT_SECONDS = 20.0


def fit(
    encoder: Encoder,
    classes: Classes,
    trained: dict[str, torch.Tensor],
    *,
    texts: list[str],
    labels,
    dev_texts: list[str],
    dev_labels,
    length: int,
    steps: int,
    rate: float,
    batch: int,
    warmup: float,
    evaluate_every: int,
    patience: int,
    dropout: bool = False,
    seed: int,
    progress=lambda steps, what: steps,
    checkpoint: Path | None = None,
) -> dict:
    """Train the tensors `trained` in place, nothing else; one named "prompts" (l, D) goes before the texts.

    labels: ids of the classes. Adam, the rate linear up over the first `warmup` (a share of the steps), then linear
    down to 0; the gradient's norm is cut at 1. Every `evaluate_every` steps and after the last the accuracy on dev is
    taken; the tensors of the best are kept, of equal ones the later, and training stops after `patience` evaluations
    without a better one. [paper 3, sections 2 and 4.1]

    Returns trained: the best, by name, which the tensors then hold too; loss (steps,), evaluated (E,) steps,
    accuracy (E,), cut: texts that were too long. Raises InputError for labels that are no class, one class, settings
    out of range, and a loss that is not finite.
    """
    _check(locals(), len(classes))
    soft = trained.get("prompts")
    ids, cut = encoded(encoder, texts, prompts=0 if soft is None else len(soft), length=length)
    labels = torch.tensor(np.asarray(labels))
    lengths = np.array([len(row) for row in ids])
    tensors = [tensor.requires_grad_() for tensor in trained.values()]
    optimiser = torch.optim.Adam(tensors, betas=BETAS, eps=EPS)
    loss, evaluated, accuracy, best = _resumed(checkpoint, trained, optimiser)
    saved, rising = time.monotonic(), max(1, round(warmup * steps))
    for step in progress(range(len(loss) + 1, steps + 1), "tuning"):
        optimiser.param_groups[0]["lr"] = rate * min(step / rising, (steps - step + 1) / (steps - rising + 1))
        rows = training_batch(lengths, step - 1, batch, seed)
        with _dropping(encoder, seed, step) if dropout else contextlib.nullcontext():
            of = logits(encoder, classes, inputs(encoder, soft, [ids[r] for r in rows]))
        value = F.cross_entropy(of, labels[rows])
        if not torch.isfinite(value):
            raise InputError(f"the loss is not finite at step {step}: use a smaller learning rate.")
        for tensor, gradient in zip(tensors, torch.autograd.grad(value, tensors, allow_unused=True), strict=True):
            tensor.grad = gradient
        nn.utils.clip_grad_norm_(tensors, 1.0)
        optimiser.step()
        loss.append(value.item())
        if step % evaluate_every == 0 or step == steps:
            given = None if soft is None else soft.detach()
            found = classify(encoder, classes, given, dev_texts, length=length, batch=64)
            accuracy.append(float((found.argmax(1) == np.asarray(dev_labels)).mean()))
            evaluated.append(step)
            if accuracy[-1] >= max(accuracy):
                best = _copies(trained)
            if len(accuracy) - _last_gain(accuracy) > patience:
                break
        if checkpoint is not None and time.monotonic() - saved > CHECKPOINT_SECONDS and step < steps:
            _save(checkpoint, trained, optimiser, loss, evaluated, accuracy, best)
            saved = time.monotonic()
    put(trained, best)
    return {
        "trained": {name: tensor.numpy() for name, tensor in best.items()},
        "loss": np.array(loss),
        "evaluated": np.array(evaluated),
        "accuracy": np.array(accuracy),
        "cut": cut,
    }


def put(tensors: dict[str, torch.Tensor], values: dict) -> None:
    """Copy values (arrays or tensors) into tensors of the same names. Raises InputError for other names or shapes."""
    for name, tensor in tensors.items():
        if name not in values or tuple(values[name].shape) != tuple(tensor.shape):
            raise InputError(f"what was trained has no {name} of shape {tuple(tensor.shape)}: train it for this model.")
    with torch.no_grad():
        for name, tensor in tensors.items():
            tensor.copy_(torch.as_tensor(np.asarray(values[name])))


def training_batch(lengths: np.ndarray, number: int, batch: int, seed: int) -> np.ndarray:
    """Rows of batch `number` of an endless series of passes: random, but of about equal length within a batch.

    A pass shuffles the items, sorts each run of 32 batches by length and shuffles the batches, by `seed` and pass
    alone.
    """
    batch = min(batch, len(lengths))
    per_pass = len(lengths) // batch
    turn, at = divmod(number, per_pass)
    rng = np.random.default_rng([seed, turn])
    order, span = rng.permutation(len(lengths))[: per_pass * batch], 32 * batch
    runs = [order[i : i + span] for i in range(0, len(order), span)]
    rows = np.concatenate([run[np.argsort(lengths[run], kind="stable")] for run in runs])
    return rows.reshape(per_pass, batch)[rng.permutation(per_pass)[at]]


@contextlib.contextmanager
def _dropping(encoder: Encoder, seed: int, step: int):
    with own_randomness(hash((seed, step))):
        encoder.body.train()
        try:
            yield
        finally:
            encoder.body.eval()


def _last_gain(accuracy: list[float]) -> int:
    """The evaluation (from 1) of the last accuracy that was higher than all before it."""
    best, at = -1.0, 0
    for i, value in enumerate(accuracy, 1):
        if value > best:
            best, at = value, i
    return at


def _copies(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}


def _save(checkpoint: Path, trained, optimiser, loss, evaluated, accuracy, best) -> None:
    from safetensors.torch import save_file

    state = {f"best.{name}": tensor for name, tensor in best.items()}
    for name, tensor in trained.items():
        state[f"now.{name}"] = tensor.detach()
        state |= {f"{kept}.{name}": value for kept, value in optimiser.state[tensor].items()}
    lists = {"loss": loss, "evaluated": evaluated, "accuracy": accuracy}
    state |= {name: torch.tensor(values, dtype=torch.float64) for name, values in lists.items()}
    checkpoint.mkdir(parents=True, exist_ok=True)
    aside = checkpoint / "state.new"
    save_file(state, aside)
    aside.replace(checkpoint / "state.safetensors")


def _resumed(checkpoint: Path | None, trained, optimiser) -> tuple[list, list, list, dict]:
    """(loss, evaluated, accuracy, best) before the checkpoint; the tensors and the optimiser take over its state."""
    from safetensors.torch import load_file

    if checkpoint is None or not (checkpoint / "state.safetensors").exists():
        return [], [], [], _copies(trained)
    state = load_file(checkpoint / "state.safetensors")
    put(trained, {name: state[f"now.{name}"] for name in trained})
    for name, tensor in trained.items():
        kept = [part for part in ("step", "exp_avg", "exp_avg_sq") if f"{part}.{name}" in state]
        if kept:  # a tensor that the loss does not depend on has none
            optimiser.state[tensor] = {part: state[f"{part}.{name}"] for part in kept}
    evaluated = [int(step) for step in state["evaluated"].tolist()]
    best = {name: state[f"best.{name}"] for name in trained}
    return state["loss"].tolist(), evaluated, state["accuracy"].tolist(), best


def _check(given: dict, classes: int) -> None:
    for name in ("steps", "batch", "evaluate_every", "patience"):
        if given[name] < 1:
            raise InputError(f"{name} is {given[name]}: it must be at least 1.")
    if not given["rate"] > 0 or not 0 <= given["warmup"] < 1:
        raise InputError(f"rate is {given['rate']} and warmup {given['warmup']}: use a rate above 0, a share below 1.")
    for split in ("", "dev_"):
        labels, texts = np.asarray(given[f"{split}labels"]), given[f"{split}texts"]
        if len(labels) != len(texts):
            raise InputError(f"there are {len(texts)} {split}texts and {len(labels)} {split}labels: give one each.")
        strange = set(np.unique(labels)) - set(range(classes))
        if strange:
            raise InputError(f"label {min(strange)} has no verbaliser: labels must be 0 to {classes - 1}.")
    if len(np.unique(given["labels"])) < 2:
        raise InputError("the training texts are of one class only: two are needed.")
