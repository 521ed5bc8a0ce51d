"""Frozen encoders that read a class: loading, the two readouts, inputs with or without soft prompts (paper 3).

The input is [MASK], p_1 … p_l, <s>, x, </s>: l vectors among the word embeddings, position 0 before them; without
prompts it is the text alone. A class is read in one of two ways:

- "mask": the logits of the label words at position 0, by the model's own masked-LM head where its checkpoint has one,
  else by the word embeddings (tied, times 10);
- "sentence": 20 times the cosine between the mean of all outputs and the embedding of the class's phrase, for
  encoders that were trained to embed sentences.

Hidden units are those of all feed-forward blocks, one after the other: N in all, `widths` per layer. Shapes: B items,
P = l + 1 positions, T tokens in all, D width, C classes.
"""

import contextlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from neuronkit import InputError
from neuronkit.models.activations import ffn_sites, stream

TIED_SCALE, COSINE_SCALE = 10.0, 20.0


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

    def __len__(self) -> int:
        return len(self.ids if self.phrases is None else self.phrases)


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
        with own_randomness(random or 0), _quiet():
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


def inputs(encoder: Encoder, prompts: torch.Tensor | None, ids: list[list[int]]) -> dict:
    """What the encoder is called with: inputs_embeds (B, P + T, D) and attention_mask, padded on the right.

    prompts: (l, D), behind the mask; None for the text alone, without the mask. Raises InputError for another width.
    """
    if prompts is not None and prompts.shape[1] != encoder.words.shape[1]:
        raise InputError(f"prompts are {prompts.shape[1]} wide, the model {encoder.words.shape[1]}: use its own.")
    longest = max(map(len, ids))
    pad = encoder.tokenizer.pad_token_id
    tokens = torch.tensor([[*row, *[pad] * (longest - len(row))] for row in ids])
    lengths = torch.tensor([len(row) for row in ids])
    front = encoder.words[:0]
    if prompts is not None:
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


def classify(
    encoder: Encoder, classes: Classes, prompts: torch.Tensor | None, texts: list[str], *, length: int, batch: int
) -> np.ndarray:
    """Logits (n, C) of the texts, in their order; prompts as in `inputs`."""
    ids, _ = encoded(encoder, texts, prompts=0 if prompts is None else len(prompts), length=length)
    found = np.empty((len(ids), len(classes)), dtype=np.float32)
    with torch.no_grad():
        for rows in by_length([len(row) for row in ids], batch):
            found[rows] = logits(encoder, classes, inputs(encoder, prompts, [ids[r] for r in rows]))
    return found


def by_length(lengths, batch: int) -> list[np.ndarray]:
    """Rows in batches of about equal length, so that little is padded."""
    order = np.argsort(lengths, kind="stable")
    return [order[i : i + batch] for i in range(0, len(order), batch)]


def _pooled(outputs: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean of the outputs (B, T, D) over the tokens that are not padding."""
    mask = mask[..., None].to(outputs.dtype)
    return (outputs * mask).sum(1) / mask.sum(1)


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
def own_randomness(seed: int):
    """Initialisation and dropout draw from torch's global generator: it is seeded here and restored after."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


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
