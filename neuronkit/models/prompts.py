"""Soft prompts before a frozen encoder: tuning them, reading classes, tapping and perturbing hidden units (paper 3).

The input is [MASK], p_1 … p_l, <s>, x, </s>: l trained vectors among the word embeddings, position 0 before them. A
class is read in one of two ways:

- "mask": the logits of the label words at position 0, by the model's own masked-LM head where its checkpoint has one,
  else by the word embeddings (tied, times 10);
- "sentence": 20 times the cosine between the mean of all outputs and the embedding of the class's phrase, for
  encoders that were trained to embed sentences.

Hidden units are those of all feed-forward blocks, one after the other: N in all, `widths` per layer. Shapes: B items,
P = l + 1 positions, T tokens in all, D width, C classes.
"""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from neuronkit import InputError
from neuronkit.metrics import predictivity
from neuronkit.models.activations import ffn_sites, intervene, stream

INITIAL_STD = 0.03
TIED_SCALE, COSINE_SCALE = 10.0, 20.0
BETAS, EPS = (0.9, 0.98), 1e-6
CHECKPOINT_SECONDS = 20.0


@dataclass(frozen=True)
class Encoder:
    """A frozen encoder with its tokenizer; `head` maps an output to logits over the vocabulary, None without one."""

    body: nn.Module
    head: nn.Module | None
    tokenizer: object
    sites: tuple[str, ...]
    widths: tuple[int, ...]
    positions: int

    @property
    def words(self) -> torch.Tensor:
        """The word embeddings (V, D)."""
        return self.body.get_input_embeddings().weight


@dataclass(frozen=True)
class Classes:
    """What the classes are read with: `ids` (C,) of label words, or `phrases` (C, D) of unit length."""

    ids: torch.Tensor | None = None
    phrases: torch.Tensor | None = None


def loaded(model: Path | str, *, random: int | None = None) -> Encoder:
    """The encoder of a folder or hub id, in eval mode, its weights frozen; no code that comes with it is run.

    random: a seed; the same architecture with weights as before pre-training. Raises InputError where the model can't
    be had, is no encoder with a mask token, or has no feed-forward block that `models.activations` knows.
    """
    import transformers

    try:
        config = transformers.AutoConfig.from_pretrained(model)
        tokenizer = transformers.AutoTokenizer.from_pretrained(model)
        if tokenizer.mask_token_id is None or config.is_decoder:
            raise InputError(
                f"{_name(model)} is no encoder with a mask token: use a BERT or RoBERTa, or one like them."
            )
        masked = any("ForMaskedLM" in name for name in config.architectures or ())
        kind = transformers.AutoModelForMaskedLM if masked else transformers.AutoModel
        with _own_randomness(random or 0), _quiet():
            whole = kind.from_pretrained(model, use_safetensors=True) if random is None else kind.from_config(config)
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(
            f"the model {_name(model)} could not be had ({str(error).splitlines()[0]}): check the network, or give a "
            "folder with a model in safetensors and its tokenizer."
        ) from error
    body = getattr(whole, whole.base_model_prefix) if masked else whole
    head = next(m for n, m in whole.named_children() if n != whole.base_model_prefix) if masked else None
    whole.eval().requires_grad_(False)
    sites = ffn_sites(body)
    return Encoder(body, head, tokenizer, tuple(sites), _widths(body, sites), _positions(body, config))


def read_with(encoder: Encoder, readout: str, verbalisers: list[str]) -> Classes:
    """The classes by their label words ("mask") or phrases ("sentence"), in the order of the label ids.

    Raises InputError for another readout, fewer than two classes, a word that is not one token (its first is not taken
    in its stead), and a phrase without tokens.
    """
    if len(verbalisers) < 2:
        raise InputError(f"there is {len(verbalisers)} class: a classifier needs two words or phrases.")
    pieces = [encoder.tokenizer(v, add_special_tokens=False)["input_ids"] for v in verbalisers]
    empty = [v for v, ids in zip(verbalisers, pieces, strict=True) if not ids]
    if empty:
        raise InputError(f'"{empty[0]}" has no token that the model knows: use another word or phrase.')
    if readout == "mask":
        long = [v for v, ids in zip(verbalisers, pieces, strict=True) if len(ids) > 1]
        if long:
            raise InputError(f'"{long[0]}" is more than one token: a label word must be one; take another.')
        return Classes(ids=torch.tensor([ids[0] for ids in pieces]))
    if readout != "sentence":
        raise InputError(f'readout is "{readout}": use "mask" or "sentence".')
    with torch.no_grad():
        ids = encoder.tokenizer(list(verbalisers), padding=True, return_tensors="pt")
        outputs = encoder.body(**ids).last_hidden_state
        return Classes(phrases=F.normalize(_pooled(outputs, ids["attention_mask"]), dim=-1))


def encoded(encoder: Encoder, texts: list[str], *, prompts: int, length: int) -> tuple[list[list[int]], int]:
    """(token ids of each text with its special tokens, how many texts were cut to `length` tokens).

    Raises InputError for an empty list and where prompts and text don't fit the model's positions.
    """
    if not texts:
        raise InputError("there are no texts: give at least one.")
    room = encoder.positions - prompts - 1
    if not 3 <= length <= room:
        raise InputError(f"length is {length}: beside {prompts} prompts it must be from 3 to {room} tokens.")
    ids = encoder.tokenizer(list(texts), truncation=True, max_length=length)["input_ids"]
    whole = encoder.tokenizer(list(texts), verbose=False)["input_ids"]
    return ids, sum(len(w) > length for w in whole)


def random_prompts(encoder: Encoder, n: int, seed: int) -> torch.Tensor:
    """n vectors (n, D) from a normal distribution of standard deviation .03: where tuning begins."""
    if n < 1:
        raise InputError(f"prompts is {n}: at least 1 is needed.")
    generator = torch.Generator().manual_seed(seed)
    return INITIAL_STD * torch.randn(n, encoder.words.shape[1], generator=generator)


def hard_prompts(encoder: Encoder, sentence: str, n: int) -> torch.Tensor:
    """The word embeddings (n, D) of a sentence, begun again where it is shorter than n tokens."""
    ids = encoder.tokenizer(sentence, add_special_tokens=False)["input_ids"]
    if not ids:
        raise InputError(f'"{sentence}" has no token that the model knows: use another sentence.')
    return encoder.words[torch.tensor((ids * n)[:n])].clone()


def inputs(encoder: Encoder, prompts: torch.Tensor, ids: list[list[int]]) -> dict:
    """What the encoder is called with: inputs_embeds (B, P + T, D) and attention_mask, padded on the right."""
    if prompts.shape[1] != encoder.words.shape[1]:
        raise InputError(f"prompts are {prompts.shape[1]} wide, the model {encoder.words.shape[1]}: use its own.")
    longest = max(map(len, ids))
    pad = encoder.tokenizer.pad_token_id
    tokens = torch.tensor([[*row, *[pad] * (longest - len(row))] for row in ids])
    lengths = torch.tensor([len(row) for row in ids])
    front = torch.cat([encoder.words[encoder.tokenizer.mask_token_id][None], prompts])  # (P, D)
    embedded = torch.cat([front.expand(len(ids), -1, -1), encoder.words[tokens]], 1)
    mask = torch.arange(embedded.shape[1]) < (len(front) + lengths)[:, None]
    return {"inputs_embeds": embedded, "attention_mask": mask.long()}


def logits(encoder: Encoder, classes: Classes, given: dict) -> torch.Tensor:
    """(B, C) of the inputs that `inputs` gives."""
    outputs = encoder.body(**given).last_hidden_state
    if classes.phrases is not None:
        pooled = F.normalize(_pooled(outputs, given["attention_mask"]), dim=-1)
        return COSINE_SCALE * pooled @ classes.phrases.T
    at_mask = outputs[:, 0]
    if encoder.head is not None:
        return encoder.head(at_mask[:, None])[:, 0][:, classes.ids]
    return TIED_SCALE * at_mask @ encoder.words[classes.ids].T


def tune(
    model: Path | str,
    *,
    readout: str,
    verbalisers: list[str],
    texts: list[str],
    labels,
    dev_texts: list[str],
    dev_labels,
    prompts: int,
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
    """Tune soft prompts; nothing else trains. [paper 3, sections 2 and 4.1]

    labels: ids of the classes, in the order of `verbalisers`. Adam, the rate linear up over the first `warmup` (a share
    of the steps), then linear down to 0; the gradient's norm is cut at 1. Every `evaluate_every` steps and after the
    last the accuracy on dev is taken; the prompts of the best are kept, of equal ones the later, and training stops
    after `patience` evaluations without a better one.

    Returns prompts (l, D), loss (steps,), evaluated (E,) steps, accuracy (E,), cut: texts that were too long.
    Raises InputError for labels that are no class, one class, settings out of range, and a loss that is not finite.
    """
    _check_training(locals())
    encoder = loaded(model)
    classes = read_with(encoder, readout, verbalisers)
    ids, cut = encoded(encoder, texts, prompts=prompts, length=length)
    labels = torch.tensor(np.asarray(labels))
    lengths = np.array([len(row) for row in ids])
    soft = random_prompts(encoder, prompts, seed).requires_grad_()
    optimiser = torch.optim.Adam([soft], betas=BETAS, eps=EPS)
    state = _resumed(checkpoint, soft, optimiser)
    loss, evaluated, accuracy, best = (state[name] for name in ("loss", "evaluated", "accuracy", "best"))
    saved, rising = time.monotonic(), max(1, round(warmup * steps))
    for step in progress(range(len(loss) + 1, steps + 1), "tuning prompts"):
        optimiser.param_groups[0]["lr"] = rate * min(step / rising, (steps - step + 1) / (steps - rising + 1))
        rows = training_batch(lengths, step - 1, batch, seed)
        with _dropping(encoder, seed, step) if dropout else contextlib.nullcontext():
            of = logits(encoder, classes, inputs(encoder, soft, [ids[r] for r in rows]))
        value = F.cross_entropy(of, labels[rows])
        if not torch.isfinite(value):
            raise InputError(f"the loss is not finite at step {step}: use a smaller learning rate.")
        (soft.grad,) = torch.autograd.grad(value, soft)
        nn.utils.clip_grad_norm_([soft], 1.0)
        optimiser.step()
        loss.append(value.item())
        if step % evaluate_every == 0 or step == steps:
            found = classify(encoder, classes, soft.detach(), dev_texts, length=length, batch=64)
            accuracy.append(float((found.argmax(1) == np.asarray(dev_labels)).mean()))
            evaluated.append(step)
            if accuracy[-1] >= max(accuracy):
                best = soft.detach().clone()
            if len(accuracy) - _last_gain(accuracy) > patience:
                break
        if checkpoint is not None and time.monotonic() - saved > CHECKPOINT_SECONDS and step < steps:
            _save(checkpoint, soft, optimiser, loss, evaluated, accuracy, best)
            saved = time.monotonic()
    return {
        "prompts": best.numpy(),
        "loss": np.array(loss),
        "evaluated": np.array(evaluated),
        "accuracy": np.array(accuracy),
        "cut": cut,
    }


def classify(
    encoder: Encoder, classes: Classes, prompts: torch.Tensor, texts: list[str], *, length: int, batch: int
) -> np.ndarray:
    """Logits (n, C) of the texts, in their order."""
    ids, _ = encoded(encoder, texts, prompts=len(prompts), length=length)
    found = np.empty((len(ids), len(classes.ids if classes.phrases is None else classes.phrases)), dtype=np.float32)
    with torch.no_grad():
        for rows in by_length([len(row) for row in ids], batch):
            found[rows] = logits(encoder, classes, inputs(encoder, prompts, [ids[r] for r in rows]))
    return found


def classified(
    model: Path | str,
    *,
    prompts,
    readout: str,
    verbalisers: list[str],
    texts: list[str],
    length: int,
    batch: int = 64,
) -> dict:
    """{"logits": (n, C)} of the texts with given prompts (l, D)."""
    encoder = loaded(model)
    classes = read_with(encoder, readout, verbalisers)
    return {"logits": classify(encoder, classes, torch.tensor(np.asarray(prompts)), texts, length=length, batch=batch)}


def probe(
    model: Path | str,
    *,
    prompts,
    train: list[str],
    train_labels,
    texts: list[str],
    columns,
    length: int,
    batch: int = 64,
    random: int | None = None,
    progress=lambda batches, what: batches,
) -> dict:
    """Accuracy of every hidden unit at every prompt as a classifier, in two passes. [paper 3, eqs. 3-5]

    prompts: (l, D), or an integer: so many random ones, of that seed where `random` is given, else of seed 0. columns:
    (len(texts), R) label columns (see `metrics.predictivity`). random: the seed of a model that was not pretrained.

    Returns accuracy (R, P, N) with position 0 the mask, std (P, N) and mean (P, N) over `train`, class_means (C, P, N)
    of the rectified activations; for the average and the maximum over the text's own tokens accuracy_average,
    accuracy_maximum (R, N), std_average, std_maximum (N,); widths: units per layer.
    """
    encoder = loaded(model, random=random)
    soft = (
        random_prompts(encoder, prompts, random or 0) if isinstance(prompts, int) else torch.tensor(np.asarray(prompts))
    )
    tap = _Tap(encoder, soft, length, batch)
    kinds = ("prompts", "average", "maximum")
    moments = {kind: predictivity.Moments() for kind in kinds}
    train_labels = np.asarray(train_labels)
    sums = torch.zeros(int(train_labels.max()) + 1, len(soft) + 1, sum(encoder.widths))
    for rows, seen in progress(tap.read(train), "baseline"):
        for kind in kinds:
            moments[kind].add(seen[kind])
        sums.index_add_(0, torch.tensor(train_labels[rows]), seen["prompts"].relu())
    hits = {kind: predictivity.Hits(moments[kind].mean, columns) for kind in kinds}
    for rows, seen in progress(tap.read(texts), "probing"):
        for kind in kinds:
            hits[kind].add(rows, seen[kind])
    of_class = torch.bincount(torch.tensor(train_labels))[:, None, None]
    found = {"mean": moments["prompts"].mean, "std": moments["prompts"].std, "class_means": sums / of_class}
    found["accuracy"] = hits["prompts"].accuracy()
    for kind in ("average", "maximum"):
        found |= {f"accuracy_{kind}": hits[kind].accuracy(), f"std_{kind}": moments[kind].std}
    return {name: tensor.numpy() for name, tensor in found.items()} | {"widths": list(encoder.widths)}


def activations(
    model: Path | str, *, prompts, texts: list[str], units, positions, length: int, batch: int = 64
) -> dict:
    """{"activations": (n, k)} of k hidden units, each at a position of its own (0 is the mask)."""
    encoder = loaded(model)
    soft, found = torch.tensor(np.asarray(prompts)), np.empty((len(texts), len(units)), dtype=np.float32)
    for rows, seen in _Tap(encoder, soft, length, batch).read(texts):
        found[rows] = seen["prompts"][:, np.asarray(positions), np.asarray(units)]
    return {"activations": found}


def perturbed(
    model: Path | str,
    *,
    prompts,
    readout: str,
    verbalisers: list[str],
    texts: list[str],
    masks,
    how: str,
    values=0.0,
    length: int,
    batch: int = 64,
    seed: int = 0,
    progress=lambda masks, what: masks,
) -> dict:
    """{"logits": (M, n, C)} with the units of each mask (M, N) perturbed at all positions. [paper 3, section 4.2]

    how: "noise" adds a normal number times `values` (a number, or (N,): one per unit), the same at all positions of a
    text, drawn by text, unit and `seed`; "set" puts `values` (a number, or (N,)) in place of the activation: 0, or
    means. Raises InputError for another `how`, masks of another width, and a negative or non-finite value for noise.
    """
    encoder = loaded(model)
    classes = read_with(encoder, readout, verbalisers)
    soft, masks = torch.tensor(np.asarray(prompts)), np.asarray(masks, dtype=bool)
    n = sum(encoder.widths)
    values = np.broadcast_to(np.asarray(values, dtype=np.float32), n).copy()
    _check_perturbation(masks, n, how, values)
    ids, _ = encoded(encoder, texts, prompts=len(soft), length=length)
    batches = by_length([len(row) for row in ids], batch)
    found, ends = np.empty((len(masks), len(ids), len(verbalisers)), dtype=np.float32), np.cumsum(encoder.widths)
    for rows in progress(batches, "perturbing"):
        given = inputs(encoder, soft, [ids[r] for r in rows])
        noise = _noise(rows, n, seed) * torch.from_numpy(values) if how == "noise" else None
        with torch.no_grad(), _Lower(encoder) as lower:
            plain = logits(encoder, classes, given)
            for m, mask in enumerate(masks):
                if not mask.any():
                    found[m, rows] = plain
                    continue
                if how == "noise":
                    edit = _adding(noise * torch.from_numpy(mask), encoder.widths)
                else:
                    edit = _setting(torch.from_numpy(mask), torch.from_numpy(values), encoder.widths)
                with intervene(encoder.body, edit), lower.skipped(np.searchsorted(ends, mask.argmax(), "right")):
                    found[m, rows] = logits(encoder, classes, given)
    return {"logits": found}


def attribution(
    model: Path | str,
    *,
    prompts,
    readout: str,
    verbalisers: list[str],
    texts: list[str],
    labels,
    mean,
    length: int,
    batch: int = 32,
) -> dict:
    """{"score": (N,)}: mean over texts of |sum over prompts of gradient x (activation - baseline)|.

    The gradient is that of the log-probability of the right class; mean: (P, N), the baselines of `probe`.
    """
    encoder = loaded(model)
    classes = read_with(encoder, readout, verbalisers)
    soft, labels = torch.tensor(np.asarray(prompts)), np.asarray(labels)
    ids, _ = encoded(encoder, texts, prompts=len(soft), length=length)
    baseline = torch.tensor(np.asarray(mean)).split(encoder.widths, -1)
    total = torch.zeros(sum(encoder.widths))
    for rows in by_length([len(row) for row in ids], batch):
        given, nudges, seen = inputs(encoder, soft, [ids[r] for r in rows]), {}, {}

        def edit(site, h, nudges=nudges, seen=seen):
            nudges[site], seen[site] = torch.zeros_like(h, requires_grad=True), h.detach()
            return h + nudges[site]

        with intervene(encoder.body, edit):
            right = F.cross_entropy(logits(encoder, classes, given), torch.tensor(labels[rows]), reduction="sum")
        gradients = torch.autograd.grad(-right, [nudges[s] for s in range(len(encoder.sites))])
        at = slice(0, len(soft) + 1)
        products = [(g[:, at] * (seen[s][:, at] - baseline[s])).sum(1) for s, g in enumerate(gradients)]
        total += torch.cat(products, -1).abs().sum(0)
    return {"score": (total / len(ids)).numpy()}


def by_length(lengths, batch: int) -> list[np.ndarray]:
    """Rows in batches of about equal length, so that little is padded."""
    order = np.argsort(lengths, kind="stable")
    return [order[i : i + batch] for i in range(0, len(order), batch)]


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


class _Tap:
    """Reads the hidden units of texts with prompts before them, batch by batch."""

    def __init__(self, encoder: Encoder, prompts: torch.Tensor, length: int, batch: int):
        self._encoder, self._prompts, self._length, self._batch = encoder, prompts, length, batch

    def read(self, texts: list[str]) -> "_Batches":
        """Batches of (rows, {"prompts": (B, P, N), "average": (B, N), "maximum": (B, N)})."""
        ids, _ = encoded(self._encoder, texts, prompts=len(self._prompts), length=self._length)
        return _Batches(self._encoder, self._prompts, ids, by_length([len(row) for row in ids], self._batch))


class _Batches:
    """A sized iterable, so that progress can say how long it will take."""

    def __init__(self, encoder, prompts, ids, rows):
        self._encoder, self._prompts, self._ids, self._rows = encoder, prompts, ids, rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[tuple[np.ndarray, dict]]:
        positions = len(self._prompts) + 1
        for rows in self._rows:
            found = {"prompts": [], "average": [], "maximum": []}

            def keep(site, h, mask, found=found):
                text, is_text = h[:, positions:], mask[:, positions:, None]
                found["prompts"].append(h[:, :positions])
                found["average"].append((text * is_text).sum(1) / is_text.sum(1))
                found["maximum"].append(text.masked_fill(~is_text, -torch.inf).amax(1))

            given = inputs(self._encoder, self._prompts, [self._ids[r] for r in rows])
            stream(self._encoder.body, [given], keep)
            yield rows, {kind: torch.cat(parts, -1) for kind, parts in found.items()}


class _Lower:
    """Computes the layers below the lowest one that is perturbed once for a batch, and not for each perturbation."""

    def __init__(self, encoder: Encoder):
        place, _, _ = encoder.sites[0].partition(".0.")
        layers = dict(encoder.body.named_modules()).get(place)
        # Where blocks are not in one list (or there is a single one), nothing is skipped.
        self._layers = layers if isinstance(layers, nn.ModuleList) and len(layers) == len(encoder.sites) else []
        self._outputs: dict = {}

    def __enter__(self):
        """The first call of the model in the context is the unperturbed one; the outputs of its layers are kept."""
        keep = self._outputs.setdefault
        self._hooks = [
            layer.register_forward_hook(lambda _, __, output, i=i: (keep(i, output), None)[1])
            for i, layer in enumerate(self._layers)
        ]
        return self

    def __exit__(self, *error):
        for hook in self._hooks:
            hook.remove()

    @contextlib.contextmanager
    def skipped(self, n: int):
        """Within it the lowest n layers give what they gave in the unperturbed call."""
        kept = list(self._layers)
        for i in range(n if self._layers else 0):
            self._layers[i] = _Known(self._outputs[i])
        try:
            yield
        finally:
            for i, layer in enumerate(kept):
                self._layers[i] = layer


class _Known(nn.Module):
    def __init__(self, output):
        super().__init__()
        self._output = output

    def forward(self, *args, **kwargs):
        return self._output


def _pooled(outputs: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean of the outputs (B, T, D) over the tokens that are not padding."""
    mask = mask[..., None].to(outputs.dtype)
    return (outputs * mask).sum(1) / mask.sum(1)


def _noise(rows: np.ndarray, n: int, seed: int) -> torch.Tensor:
    """(B, N) standard normal numbers that depend on the text and the seed, not on its batch."""
    return torch.from_numpy(
        np.stack([np.random.default_rng([seed, int(row)]).standard_normal(n, dtype=np.float32) for row in rows])
    )


def _adding(noise: torch.Tensor, widths):
    parts = [part[:, None] for part in noise.split(widths, -1)]  # (B, 1, F)
    return lambda site, h: h + parts[site]


def _setting(mask: torch.Tensor, values: torch.Tensor, widths):
    masks, parts = mask.split(widths), values.split(widths)
    return lambda site, h: torch.where(masks[site], parts[site], h) if masks[site].any() else h


def _widths(body: nn.Module, sites: list[str]) -> tuple[int, ...]:
    """Units at each site, as one token shows them."""
    widths: dict[int, int] = {}
    stream(body, [{"input_ids": torch.zeros(1, 1, dtype=torch.long)}], lambda s, h, _: widths.update({s: h.shape[-1]}))
    return tuple(widths[s] for s in range(len(sites)))


def _positions(body: nn.Module, config) -> int:
    """How many tokens the model has positions for; RoBERTa counts them from behind its padding id."""
    offset = getattr(getattr(body, "embeddings", None), "padding_idx", None)
    return config.max_position_embeddings - (0 if offset is None else offset + 1)


def _name(model: Path | str) -> str:
    return model.name if isinstance(model, Path) else model


@contextlib.contextmanager
def _own_randomness(seed: int):
    """Initialisation and dropout draw from torch's global generator: it is seeded here and restored after."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@contextlib.contextmanager
def _dropping(encoder: Encoder, seed: int, step: int):
    with _own_randomness(hash((seed, step))):
        encoder.body.train()
        try:
            yield
        finally:
            encoder.body.eval()


@contextlib.contextmanager
def _quiet():
    """transformers draws a progress bar and reports weights that a checkpoint lacks or has beside these (a pooler)."""
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        logging.enable_progress_bar()


def _last_gain(accuracy: list[float]) -> int:
    """The evaluation (from 1) of the last accuracy that was higher than all before it."""
    best, at = -1.0, 0
    for i, value in enumerate(accuracy, 1):
        if value > best:
            best, at = value, i
    return at


def _save(checkpoint: Path, soft, optimiser, loss, evaluated, accuracy, best) -> None:
    from safetensors.torch import save_file

    of = optimiser.state[soft]
    state = {"soft": soft.detach(), "step": of["step"], "exp_avg": of["exp_avg"], "exp_avg_sq": of["exp_avg_sq"]}
    lists = {"loss": loss, "evaluated": evaluated, "accuracy": accuracy}
    state |= {name: torch.tensor(values, dtype=torch.float64) for name, values in lists.items()}
    checkpoint.mkdir(parents=True, exist_ok=True)
    aside = checkpoint / "state.new"
    save_file(state | {"best": best}, aside)
    aside.replace(checkpoint / "state.safetensors")


def _resumed(checkpoint: Path | None, soft: torch.Tensor, optimiser) -> dict:
    """What was found before the checkpoint; prompts and optimiser take over its state."""
    from safetensors.torch import load_file

    if checkpoint is None or not (checkpoint / "state.safetensors").exists():
        return {"loss": [], "evaluated": [], "accuracy": [], "best": soft.detach().clone()}
    state = load_file(checkpoint / "state.safetensors")
    with torch.no_grad():
        soft.copy_(state["soft"])
    optimiser.state[soft] = {name: state[name] for name in ("step", "exp_avg", "exp_avg_sq")}
    found = {name: state[name].tolist() for name in ("loss", "evaluated", "accuracy")}
    found["evaluated"] = [int(step) for step in found["evaluated"]]
    return found | {"best": state["best"]}


def _check_training(given: dict) -> None:
    for name in ("prompts", "steps", "batch", "evaluate_every", "patience"):
        if given[name] < 1:
            raise InputError(f"{name} is {given[name]}: it must be at least 1.")
    if not given["rate"] > 0 or not 0 <= given["warmup"] < 1:
        raise InputError(f"rate is {given['rate']} and warmup {given['warmup']}: use a rate above 0, a share below 1.")
    for split in ("", "dev_"):
        labels, texts = np.asarray(given[f"{split}labels"]), given[f"{split}texts"]
        if len(labels) != len(texts):
            raise InputError(f"there are {len(texts)} {split}texts and {len(labels)} {split}labels: give one each.")
        strange = set(np.unique(labels)) - set(range(len(given["verbalisers"])))
        if strange:
            raise InputError(
                f"label {min(strange)} has no verbaliser: labels must be 0 to {len(given['verbalisers']) - 1}."
            )
    if len(np.unique(given["labels"])) < 2:
        raise InputError("the training texts are of one class only: two are needed.")


def _check_perturbation(masks: np.ndarray, n: int, how: str, values: np.ndarray) -> None:
    if masks.ndim != 2 or masks.shape[1] != n:
        raise InputError(f"masks are {masks.shape}, the model has {n} hidden units: give (masks, units).")
    if how not in ("noise", "set"):
        raise InputError(f'how is "{how}": use "noise" or "set".')
    if not np.isfinite(values).all() or (how == "noise" and (values < 0).any()):
        raise InputError("values must be finite, and for noise, as standard deviations, not negative.")
