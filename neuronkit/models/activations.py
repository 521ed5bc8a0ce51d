"""One tap and one intervention for the hidden units of any Transformer.

The hidden units are those of the feed-forward blocks, taken after the non-linearity. A *site* is the module whose
output is that vector: by name as in `model.named_modules()`, found by the shape of the block and not by its class.
In a gated block (Llama, gated T5) it is the gate, before the product. Shapes: B sequences, T tokens, F units.
"""

import contextlib
import difflib
import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from neuronkit import InputError
from neuronkit.metrics.sparsity import active_counts


class Block(NamedTuple):
    """A kind of feed-forward block: the names of its activation and of the dense layer that feeds it.

    whole: the block ends with the activation, so its own output is tapped; the activation may be a plain function.
    """

    activation: str
    dense: str
    whole: bool = False


BLOCKS = (
    Block("activation_fn", "fc1"),  # OPT
    Block("act", "wi"),  # T5
    Block("act", "wi_0"),  # gated T5
    Block("act", "c_fc"),  # GPT-2
    Block("act_fn", "gate_proj"),  # Llama, Mistral
    Block("act", "up"),  # our own decoder
    Block("intermediate_act_fn", "dense", whole=True),  # BERT, RoBERTa
)


_ABOVE = "give threshold= above 0 (and then say near-zero)."


class _Site(NamedTuple):
    """A module to hook, with its non-linearity alone and its width where they are known."""

    name: str
    module: nn.Module
    activation: Callable | None
    width: int | None


def ffn_sites(model: nn.Module) -> list[str]:
    """Names of the modules whose output is the hidden unit vector of each feed-forward block, in order of depth.

    Raises InputError where none is found, or where two blocks share one activation module.
    """
    return [site.name for site in _sites(model, None)]


def stream(model: nn.Module, batches: Iterable, reduce: Callable, *, sites: list[str] | None = None) -> None:
    """Run the model over batches and call `reduce(site, activations, mask)` for each batch and each site.

    batches: each a dict of keyword arguments of the model, or a tensor, its only positional argument.
    reduce: gets the index of the site, activations (B, T, F) and mask (B, T) bool, or None where the call has no
    attention_mask; a decoder that follows an encoder has the decoder_attention_mask. Nothing is kept for it.
    The model runs in eval mode without gradients; the mode of each of its modules is restored. Raises InputError.
    """
    modes = [(module, module.training) for module in model.modules()]
    with _Stream(model, sites, reduce), torch.no_grad():
        model.eval()
        try:
            for batch in batches:
                if isinstance(batch, Mapping):
                    model(**batch)
                else:
                    model(batch)
        finally:
            for module, mode in modes:
                module.training = mode


def intervene(model: nn.Module, edit: Callable, *, sites: list[str] | None = None) -> contextlib.AbstractContextManager:
    """A context manager inside which each site gives `edit(site, activations)` in place of its activations.

    edit: gets the index of the site and activations (B, T, F), and returns as many; gradients flow through it. Of
    nested interventions the inner one sees what the outer one made. Raises InputError for an edit of another shape.
    """
    return _Edit(model, sites, edit)


class _Tap:
    """Hooks on a model and on its sites while the context lasts; a subclass says what to do with what they see."""

    def __init__(self, model: nn.Module, sites: list[str] | None):
        self._model = model
        self._sites = _sites(model, sites)
        self._names = list(inspect.signature(model.forward).parameters)
        self._given: dict = {}  # the arguments of the model's last call, by name: checkpointing needs them after it
        self._reached: set | None = None  # the sites that the present call has reached, None between calls
        self._hooks: list = []

    def __enter__(self):
        self._hooks = [
            self._model.register_forward_pre_hook(self._begin, with_kwargs=True),
            self._model.register_forward_hook(self._end),
            *(site.module.register_forward_hook(self._hook(i)) for i, site in enumerate(self._sites)),
        ]
        return self

    def __exit__(self, *error):
        for hook in self._hooks:
            hook.remove()
        self._reached = None

    def _see(self, index: int, activations: torch.Tensor) -> torch.Tensor | None:
        """Called with the activations (B, T, F) of a site; what it returns replaces them."""
        raise NotImplementedError

    def _begin(self, model, args, kwargs):
        self._given = dict(zip(self._names, args, strict=False)) | kwargs
        self._reached = set()

    def _end(self, model, args, output):
        self._reached = None

    def _hook(self, index: int) -> Callable:
        def hook(module, args, output):
            if not self._wants(index):
                return None
            seen = self._see(index, self._by_token(self._sites[index], output))
            return None if seen is None else seen.reshape(output.shape)

        return hook

    def _wants(self, index: int) -> bool:
        """Whether to look at a site that runs now: only in the model's own call, checkpointing runs it again later."""
        if self._reached is None:
            return False
        if index in self._reached:
            raise InputError(
                f"{self._sites[index].name} ran twice in one call of the model: "
                "give layers that share it modules of their own, and run it on all tokens at once."
            )
        self._reached.add(index)
        return True

    def _by_token(self, site: _Site, output) -> torch.Tensor:
        """The output of a site as (B, T, F): some blocks work on (B·T, F)."""
        if not torch.is_tensor(output) or output.ndim not in (2, 3):
            what = f"shape {tuple(output.shape)}" if torch.is_tensor(output) else type(output).__name__
            raise InputError(
                f"{site.name} gives {what}: name a module that gives (sequences, tokens, units) in sites=."
            )
        if site.width not in (None, output.shape[-1]):
            raise InputError(
                f"{site.name} gives {output.shape[-1]} units, the dense layer before it {site.width}: "
                "name the module whose output is the hidden vector in sites=."
            )
        if output.ndim == 3:
            return output
        tokens = self._tokens(site)
        if tokens is None or tokens.numel() != len(output):
            of = "no input was seen" if tokens is None else f"the input is {tuple(tokens)}"
            raise InputError(
                f"{site.name} gives {len(output)} rows, but {of}: call the model with (sequences, tokens)."
            )
        return output.reshape(*tokens, output.shape[-1])

    def _prefix(self, site: _Site) -> str:
        """What the names of a site's arguments start with: a model with two inputs names those of its decoder apart."""
        two = "decoder_input_ids" in self._names
        return "decoder_" if two and "decoder" in site.name.split(".") else ""

    def _tokens(self, site: _Site) -> torch.Size | None:
        """(B, T) of what the model was called with."""
        prefix = self._prefix(site)
        # A decoder that is given labels only makes its own input of them.
        last = "labels" if prefix else self._names[0]
        inputs = [self._given.get(name) for name in (f"{prefix}input_ids", f"{prefix}inputs_embeds", last)]
        return next((tensor.shape[:2] for tensor in inputs if torch.is_tensor(tensor)), None)

    def _mask(self, index: int, activations: torch.Tensor) -> torch.Tensor | None:
        """The attention mask of the model's own call for this site, (B, T) bool, None where it has none."""
        site = self._sites[index]
        name = f"{self._prefix(site)}attention_mask"
        mask = self._given.get(name)
        if mask is None:
            return None
        if not torch.is_tensor(mask) or mask.shape != activations.shape[:2]:
            what = tuple(mask.shape) if torch.is_tensor(mask) else type(mask).__name__
            raise InputError(
                f"{name} is {what} at {site.name}: it must be {tuple(activations.shape[:2])}, one entry per token."
            )
        return mask > 0


class _Stream(_Tap):
    def __init__(self, model, sites, reduce):
        super().__init__(model, sites)
        self._reduce = reduce

    def _see(self, index, activations):
        self._reduce(index, activations, self._mask(index, activations))


class _Edit(_Tap):
    def __init__(self, model, sites, edit):
        super().__init__(model, sites)
        self._edit = edit

    def _wants(self, index):
        return True  # outside the model's own call too: what checkpointing computes again must be edited again

    def _see(self, index, activations):
        edited = self._edit(index, activations)
        if not torch.is_tensor(edited) or edited.shape != activations.shape:
            what = tuple(edited.shape) if torch.is_tensor(edited) else type(edited).__name__
            raise InputError(
                f"the edit of {self._sites[index].name} gave {what}: "
                f"it must return a tensor {tuple(activations.shape)}, as it was given."
            )
        return edited


class UseRecorder(_Tap):
    """A context manager that counts on how many unmasked tokens of each sequence each unit is active.

    Every call of the model inside it is counted, with the attention_mask of that call; a call that fails is not.
    threshold: a unit is active above it. At 0 the non-linearity must be a ReLU; above 0 what is below counts as
    near-zero. sites: the names of the sites, those of `ffn_sites` where none are given.
    Raises InputError for a non-linearity that is never 0, dropout in training mode, a mask of another shape, and NaN
    or infinite activations.
    """

    def __init__(self, model: nn.Module, sites: list[str] | None = None, threshold: float = 0.0):
        super().__init__(model, sites)
        if not threshold >= 0:
            raise InputError(f"threshold is {threshold}: it must be 0 or more.")
        if threshold == 0:
            _check_rectified(self._sites)
        self.sites = [site.name for site in self._sites]
        self.threshold = threshold
        self._drops = any(_drops(module) for module in model.modules())
        self._found: list[list] = [[] for _ in self.sites]  # per site and call: (counts, lengths)
        self._pending: dict = {}  # the same of the present call, by site

    @property
    def counts(self) -> list[np.ndarray]:
        """Active tokens per sequence and unit, one (S, F) int64 per site. Raises InputError before the first call."""
        return self._all(0)

    @property
    def lengths(self) -> list[np.ndarray]:
        """Unmasked tokens per sequence, one (S,) int64 per site. Raises InputError before the first call."""
        return self._all(1)

    def _all(self, which: int) -> list[np.ndarray]:
        for name, found in zip(self.sites, self._found, strict=True):
            if not found:
                raise InputError(f"no call of the model has reached {name}: call the model inside the recorder.")
        return [np.concatenate([pair[which] for pair in found]) for found in self._found]

    def __enter__(self):
        self._check_mode()
        return super().__enter__()

    def _begin(self, model, args, kwargs):
        self._check_mode()
        self._pending = {}
        super()._begin(model, args, kwargs)

    def _end(self, model, args, output):
        super()._end(model, args, output)
        for index, pair in self._pending.items():
            self._found[index].append(pair)

    def _see(self, index, activations):
        self._pending[index] = self._counted(index, activations.detach())

    def _counted(self, index: int, activations: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
        mask = self._mask(index, activations)
        if mask is None:
            mask = torch.ones(activations.shape[:2], dtype=torch.bool)
        mask = mask.cpu()  # where active_counts expects it
        name = self.sites[index]
        try:
            counts = active_counts(activations, mask, threshold=self.threshold)
        except InputError as error:
            raise InputError(f"{name}: {error}") from error
        if self.threshold == 0 and self._sites[index].activation is None and (activations < 0).any():
            raise InputError(f"{name} gives negative values, which no ReLU does: {_ABOVE}")
        return counts, mask.sum(1).numpy()

    def _check_mode(self) -> None:
        if self._model.training and self._drops:
            raise InputError("the model is training with dropout, which changes the counts: call model.eval() first.")


def _sites(model: nn.Module, names: list[str] | None) -> list[_Site]:
    """The sites of these names, those of the known blocks for None; raises InputError."""
    found = _known(model)
    if names is None:
        if not found:
            raise _none_found(model)
        sites = list(found.values())
    else:
        sites = [found.get(name) or _given_site(model, name) for name in names]
        if not sites:
            raise InputError("sites= is empty: name at least one module, or leave it out.")
    for a, b in itertools.combinations(sites, 2):
        if a.module is b.module:
            raise InputError(
                f"{a.name} and {b.name} are one module, so their units cannot be told apart: "
                "give each block an activation module of its own, and name each site once."
            )
    return sites


def _known(model: nn.Module) -> dict[str, _Site]:
    """The sites of all blocks that are among `BLOCKS`, by name. A block that has two names counts under its first."""
    found = {}
    for name, module in model.named_modules():
        for block in BLOCKS:
            activation = getattr(module, block.activation, None)
            width = _width(getattr(module, block.dense, None))
            if width is None or not (isinstance(activation, nn.Module) or (block.whole and callable(activation))):
                continue
            at = name if block.whole else f"{name}.{block.activation}".lstrip(".")
            found[at] = _Site(at, module if block.whole else activation, _alone(activation), width)
    return found


def _given_site(model: nn.Module, name: str) -> _Site:
    """The site of a name that the user gave; raises InputError where there is no such submodule."""
    modules = dict(model.named_modules(remove_duplicate=False))
    if not name or name not in modules:
        near = difflib.get_close_matches(name, modules, n=1)
        hint = f'did you mean "{near[0]}"?' if near else "model.named_modules() lists their names."
        raise InputError(f'the model has no submodule "{name}": {hint}')
    return _Site(name, modules[name], _alone(modules[name]), None)


def _alone(activation: Callable) -> Callable | None:
    """The activation where it is a function of its input alone, None for a module with parameters."""
    has_parameters = isinstance(activation, nn.Module) and any(True for _ in activation.parameters())
    return None if has_parameters else activation


def _width(dense) -> int | None:
    """Units that a dense layer gives; None for anything else."""
    return getattr(dense, "out_features", getattr(dense, "nf", None))  # nf: transformers' Conv1D


def _none_found(model: nn.Module) -> InputError:
    blocks = ", ".join(f"{block.activation} beside {block.dense}" for block in BLOCKS)
    # Both torch and transformers define their activations in a module of that name.
    there = [f"{name} ({type(m).__name__})" for name, m in model.named_modules() if "activation" in type(m).__module__]
    some = ", ".join(there[:5]) + (", …" if len(there) > 5 else "")
    return InputError(
        f"no feed-forward block was found (looked for {blocks}; activation modules there: {some or 'none'}): "
        "give sites=, the names of the modules whose outputs are the hidden vectors."
    )


def _check_rectified(sites: list[_Site]) -> None:
    """Raise InputError for a non-linearity that is not exactly 0 on negative numbers."""
    negative = -torch.logspace(-3, 1, 20)[None, None]
    for site in sites:
        if site.activation is None:
            continue
        # Not the module itself: hooks of others on it are not meant for this.
        f = site.activation.forward if isinstance(site.activation, nn.Module) else site.activation
        with torch.no_grad():
            rectified = not f(negative).any()
        if not rectified:
            kind = getattr(site.activation, "__name__", type(site.activation).__name__)
            raise InputError(f"{kind} at {site.name} is never exactly zero: {_ABOVE}")


def _drops(module: nn.Module) -> bool:
    """Whether a module drops something out in training: it holds a rate, as dropout modules and OPT's layers do."""
    rates = [value for name, value in vars(module).items() if "drop" in name]
    if "Dropout" in type(module).__name__:
        rates.append(module.p)
    return any(isinstance(rate, float) and rate > 0 for rate in rates)
