"""A model folder -> a model that trains: padded token ids in, unit vectors out, no instruction in the pooling.

Any sentence-transformers model of text will do whose pooling can leave tokens out; it is loaded by the rules of
`medi.encoder`: no code of other people, no pickles with more than weights.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from medi.encoder import tokenizer_fault, unloadable, why_unloadable
from medi.errors import MediError
from medi.train.micro import Graph
from medi.train.tokens import Padded

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

# Of these, sentence-transformers pools the same with its own prompt left out as we do with our mask.
_POOLINGS = {"mean", "max", "mean_sqrt_len_tokens", "lasttoken"}

_ATTENTION = "sdpa_in_float32"


def load_model(
    name: str, folder: Path, max_length_tokens: int | None, device: "torch.device | str"
) -> "SentenceTransformer":
    """Return the model in float32 on a device, ready to train: prompts out of the pooling, texts cut at the length.

    Raises:
        MediError: it cannot be loaded, has no fast tokenizer, is none of text, or pools in a way that cannot leave the
            instruction out.
    """
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()
    try:
        model = SentenceTransformer(
            str(folder), device=str(device), local_files_only=True, trust_remote_code=False,
            model_kwargs={"dtype": torch.float32},
        )  # fmt: skip
    except unloadable() as error:
        raise MediError(f"--model {name}: cannot be loaded from {folder}: {why_unloadable(error)}") from None
    _check(name, model)
    longest = model.max_seq_length or model.tokenizer.model_max_length
    if max_length_tokens is not None and max_length_tokens > longest:
        raise MediError(f"--max-length {max_length_tokens}: {name} takes {longest} tokens at most; give fewer")
    model.max_seq_length = max_length_tokens or longest
    # The text may be cut, the instruction may not; and padding on the left would move the positions of a text.
    model.tokenizer.truncation_side = model.tokenizer.padding_side = "right"
    # A dense gradient of the vocabulary would be filled and added up in every micro-batch, a tenth of a step on a CPU.
    table = model[0].model.get_input_embeddings()  # pyright: ignore[reportCallIssue]
    table.sparse = model.device.type == "cpu"
    if model.device.type == "cpu":
        _attend_in_float32(model)
    model.set_pooling_include_prompt(False)
    model.prompts, model.default_prompt_name = {}, None
    return model.train()


def _attend_in_float32(model: "SentenceTransformer") -> None:
    """Let attention leave bfloat16 out: on a CPU its backward pass there takes six times as long as in float32."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    body = model[0].model
    if body.config._attn_implementation != "sdpa":
        return
    AttentionInterface.register(_ATTENTION, _attention)
    AttentionMaskInterface.register(_ATTENTION, sdpa_mask)
    body.set_attn_implementation(_ATTENTION)  # pyright: ignore[reportCallIssue]


def _attention(
    module: "torch.nn.Module", query: "torch.Tensor", key: "torch.Tensor", value: "torch.Tensor",
    mask: "torch.Tensor | None", **options: object,
) -> tuple["torch.Tensor", None]:  # fmt: skip
    """Return what torch's own attention gives for these in float32, in the dtype they came in."""
    import torch
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    with torch.autocast("cpu", enabled=False):
        told = (query.float(), key.float(), value.float(), mask)
        taken, _ = sdpa_attention_forward(module, *told, **options)  # pyright: ignore[reportArgumentType]
    return taken.to(query.dtype), None


def _check(name: str, model: "SentenceTransformer") -> None:
    """Raise MediError for a model that cannot be trained here."""
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    if not isinstance(model[0], Transformer) or model[0].modalities != ["text"]:
        raise MediError(f"--model {name}: is no transformer of text alone; choose one, such as gtr-t5-base")
    if fault := tokenizer_fault(model):
        raise MediError(f"--model {name}: {fault}")
    modes = [module.pooling_mode for module in model if isinstance(module, Pooling)]
    if len(modes) != 1 or modes[0] not in _POOLINGS:
        raise MediError(
            f"--model {name}: pools by {', '.join(map(str, modes)) or 'nothing'}, which no instruction can be left out "
            "of; choose a model with mean pooling"
        )


def tokenizer_of(model: "SentenceTransformer") -> "Tokenizer":
    """Return the fast tokenizer behind the model's; it is the model's own, to be copied."""
    return model.tokenizer.backend_tokenizer


def encode(model: "SentenceTransformer", padded: Padded) -> "torch.Tensor":
    """Return unit vectors, float32 [n, D], on the model's device; pooled are the tokens of the pooled mask."""
    from sentence_transformers.sentence_transformer.modules import Pooling
    from torch.nn.functional import normalize

    device = model.device
    features = {"input_ids": padded.input_ids.to(device), "attention_mask": padded.attention_mask.to(device)}
    for module in model:
        if isinstance(module, Pooling):
            features["attention_mask"] = padded.pooled_mask.to(device)
        features = module(features)
    return normalize(features["sentence_embedding"].float(), dim=-1)


def parameters(model: "SentenceTransformer") -> Sequence["torch.nn.Parameter"]:
    """Return what is trained."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def graph(model: "SentenceTransformer") -> Graph:
    """Return what a model keeps for its backward pass, in float32 with dropout.

    Measured on MiniLM: 104 bytes a layer for each dimension of a token, 13 for each head of a pair of tokens; without
    dropout attention keeps nothing, in bfloat16 it is four fifths. A model that does not say its sizes is taken to fit.
    """
    config = model[0].model.config  # pyright: ignore[reportAttributeAccessIssue]
    named = ("num_hidden_layers", "hidden_size", "num_attention_heads")
    if not all(hasattr(config, name) for name in named):
        return Graph(1, 0)
    layers, width, heads = (int(getattr(config, name)) for name in named)
    return Graph(layers * 104 * width, layers * 13 * heads)


def graph_bytes_at_most(device: "torch.device") -> int:
    """Return a third of the device's memory: what the graph of a step may take, beside weights and whoever else."""
    import torch

    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory // 3
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 3 // processes
