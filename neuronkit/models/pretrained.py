"""Hidden unit use of a pretrained ReLU Transformer, of the hub or in a folder. transformers is imported when needed."""

import numpy as np
import torch

from neuronkit import InputError
from neuronkit.metrics import sparsity
from neuronkit.models.activations import UseRecorder


def use(name: str, documents: list[str], *, length: int, sequences: int, batch: int) -> list[dict]:
    """Use and median frequency of each layer of a causal language model, one dict per site.

    name: a hub id or a folder with a model (safetensors) and its tokenizer; no code that comes with it is run.
    documents: encoded by the model's own tokenizer, one after the other, and cut into `sequences` sequences of `length`
    tokens, shown `batch` at a time.

    Raises InputError where the model can't be had, has no ReLU units, or takes fewer positions than `length`, and where
    the documents are too short.
    """
    model, tokenizer = _loaded(name)
    positions = getattr(model.config, "max_position_embeddings", length)
    if length > positions:
        raise InputError(f"{name} takes {positions} tokens, length is {length}: use shorter sequences.")
    ids = np.concatenate([tokenizer(d, add_special_tokens=False)["input_ids"] for d in documents])
    if len(ids) < sequences * length:
        raise InputError(f"the documents have {len(ids)} tokens, {sequences * length} are needed: ask for fewer.")
    rows = torch.tensor(ids[: sequences * length].astype(np.int64)).reshape(sequences, length)
    with torch.no_grad(), UseRecorder(model) as recorder:
        for part in rows.split(batch):
            model(input_ids=part)
    return [
        {
            "site": site,
            **sparsity.hidden_unit_use(counts, lengths, batch=batch)._asdict(),
            "median frequency": sparsity.frequency_percentiles(counts, lengths, [50])[0],
        }
        for site, counts, lengths in zip(recorder.sites, recorder.counts, recorder.lengths, strict=True)
    ]


def _loaded(name: str):
    import transformers

    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(name, use_safetensors=True)
        return model.eval(), transformers.AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise InputError(
            f"the model {name} could not be had ({str(error).splitlines()[0]}): "
            "check the network, or give a folder with a model in safetensors and its tokenizer."
        ) from error
