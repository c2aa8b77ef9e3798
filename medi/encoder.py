"""Loads `E`, the encoder of the paper's mining rules: token ids in, unit vectors out, without any instruction."""

import json
import os
import platform
import shutil
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Protocol

import numpy as np

from medi.errors import MediError, UsageError
from medi.fixed_shapes import GPU_SHAPES, SHAPES, FixedShapes, Seen, shapes_for, unseen

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

MAX_LENGTH_TOKENS = 512
# Processors whose instructions know no bfloat16.
_WITHOUT_BFLOAT16 = ("cpu-avx512", "cpu-avx2")


class Encoder(Protocol):
    """The one seam that varies by model."""

    def encode(self, token_ids: Sequence[Sequence[int]], seen: Seen = unseen) -> np.ndarray:
        """Return unit vectors, float32 [n, D], one for each list of token ids, in their order; NaN where none is."""
        ...


Tokenize = Callable[[Sequence[str]], list[list[int]]]


@dataclass(frozen=True)
class EncoderSpec:
    """What decides the bits of a vector. `arithmetic` names the kind of processor, never the machine."""

    name: str
    revision: str
    dtype: str
    max_length_tokens: int
    shapes: tuple[tuple[int, int], ...]
    arithmetic: str
    prompt: str = ""

    def to_json(self) -> dict[str, object]:
        """Return the params of the records, with a JSON form."""
        params: dict[str, object] = asdict(self)
        return params | {"shapes": [list(s) for s in self.shapes]}


@dataclass(frozen=True)
class LoadedEncoder:
    """A tokenizer and the encoder behind it, ready to run."""

    tokenize: Tokenize
    encoder: Encoder


def describe(name: str, folder: Path, revision: str, dtype: str) -> EncoderSpec:
    """Return the identity of an encoder folder, without importing torch.

    Raises:
        UsageError: a dtype other than float32 and bfloat16 (T5 overflows in float16).
        MediError: the folder is not a model.
    """
    if dtype not in ("float32", "bfloat16"):
        raise UsageError(f"--dtype {dtype}: give float32 or bfloat16 (Sentence-T5 overflows in float16)")
    if not (folder / "config.json").exists() and not (folder / "modules.json").exists():
        raise MediError(f"--encoder {name}: {folder} has no config.json; name a sentence-transformers model or folder")
    arithmetic = arithmetic_of(dtype)
    longest = _max_length(folder)
    shapes = shapes_for(longest, GPU_SHAPES if arithmetic.startswith("cuda") else SHAPES)
    return EncoderSpec(name, revision, dtype, longest, shapes, arithmetic)


def load(spec: EncoderSpec, folder: Path) -> LoadedEncoder:
    """Return the encoder of that folder, on the device its arithmetic names. Imports torch.

    Raises:
        MediError: the model cannot be loaded, has no fast tokenizer, or torch finds no such device.
    """
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()
    if spec.arithmetic.startswith("cuda") and not torch.cuda.is_available():
        raise MediError(
            f"a GPU is here ({spec.arithmetic}) but torch {torch.__version__} cannot use it; bring driver and torch "
            "together, or build on the CPU: put CUDA_VISIBLE_DEVICES= before the command"
        )
    try:
        models = [
            SentenceTransformer(
                str(folder), device=device, local_files_only=True, trust_remote_code=False,
                model_kwargs={"dtype": getattr(torch, spec.dtype)},
            )
            for device in _devices(spec)
        ]  # fmt: skip
    except unloadable() as error:
        raise MediError(f"--encoder {spec.name}: cannot be loaded from {folder}: {why_unloadable(error)}") from None
    model = models[0]
    if fault := tokenizer_fault(model):
        raise MediError(f"--encoder {spec.name}: {fault}")
    if min(model.max_seq_length or MAX_LENGTH_TOKENS, MAX_LENGTH_TOKENS) != spec.max_length_tokens:
        raise MediError(
            f"--encoder {spec.name}: its files say {spec.max_length_tokens} tokens at most, but it loads with "
            f"{model.max_seq_length}; set max_seq_length in sentence_bert_config.json"
        )
    return LoadedEncoder(_tokenizer(model, spec), FixedShapes(models, spec.shapes))


def _devices(spec: EncoderSpec) -> list[str]:
    """Return the devices of an encoder: the CPU, or every GPU whose arithmetic is the first one's."""
    import torch

    if not spec.arithmetic.startswith("cuda"):
        return ["cpu"]
    kinds = [torch.cuda.get_device_capability(number) for number in range(torch.cuda.device_count())]
    return [f"cuda:{number}" for number, kind in enumerate(kinds) if kind == kinds[0]]


def _tokenizer(model: "SentenceTransformer", spec: EncoderSpec) -> Tokenize:
    """Return a callable from texts to token ids, special tokens included, cut at the encoder's maximum length."""
    # A fast tokenizer holds the truncation of its last call, so two threads must not call it at once.
    lock = threading.Lock()

    def tokenize(texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each text."""
        with lock:
            return model.tokenizer(
                list(texts), truncation=True, max_length=spec.max_length_tokens, return_attention_mask=False,
                verbose=False,
            )["input_ids"]  # fmt: skip

    return tokenize


def _max_length(folder: Path) -> int:
    """Return the model's maximum length in tokens, at most 512, as sentence-transformers reads it from the folder."""
    declared = _number(folder / "sentence_bert_config.json", "max_seq_length")
    limits = [_number(folder / "tokenizer_config.json", "model_max_length")]
    limits.append(_number(folder / "config.json", "max_position_embeddings"))
    known = [declared] if declared else [limit for limit in limits if limit]
    return min([*known, MAX_LENGTH_TOKENS])


def _number(path: Path, field: str) -> int:
    """Return a positive whole number of a JSON file, 0 where it has none. Raises MediError as `read_settings`."""
    value = read_settings(path).get(field)
    return value if isinstance(value, int) and value > 0 else 0


def arithmetic_of(dtype: str, with_gpu: bool = True) -> str:
    """Return the kind of arithmetic (`cpu-avx512`, `cpu-avx512bf16`, `cuda-sm90`, ...), asked without torch."""
    asked = with_gpu and shows_gpu(os.environ) and not metadata.version("torch").endswith("+cpu")
    if asked and shutil.which("nvidia-smi"):
        call = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
        answer = subprocess.run(call, capture_output=True, text=True, check=False)
        if answer.returncode == 0 and answer.stdout.strip():
            return "cuda-sm" + answer.stdout.split()[0].replace(".", "")
    cpuinfo = Path("/proc/cpuinfo")
    flags = cpuinfo.read_text() if cpuinfo.exists() else ""
    return cpu_arithmetic(dtype, np.show_config(mode="dicts").get("SIMD Extensions", {}), flags)  # pyright: ignore


def shows_gpu(variables: Mapping[str, str]) -> bool:
    """Return whether CUDA_VISIBLE_DEVICES leaves a GPU in sight: not where it is empty or begins with -1."""
    return variables.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip() not in ("", "-1", "NoDevFiles")


def cpu_arithmetic(dtype: str, extensions: Mapping[str, Sequence[str]], flags: str) -> str:
    """Return the kind of a processor from what numpy found beyond its baseline, and the flags of /proc/cpuinfo."""
    # numpy leaves out an empty list: on a processor without these, or one that is no x86.
    found = extensions.get("found", ())
    if "X86_V4" not in found and not any(f.startswith("AVX512") for f in found):
        wide = "X86_V3" in found or "AVX2" in found
        return "cpu-avx2" if wide else f"cpu-{platform.machine().lower()}"
    if dtype == "bfloat16" and "amx_bf16" in flags:
        return "cpu-amxbf16"
    return "cpu-avx512bf16" if dtype == "bfloat16" and "avx512_bf16" in flags else "cpu-avx512"


def slowness_of(dtype: str, arithmetic: str) -> str:
    """Return what a person should know of a dtype on that kind of processor: "" but for one that only slows it down."""
    if dtype != "bfloat16" or arithmetic not in _WITHOUT_BFLOAT16:
        return ""
    return "--dtype bfloat16: this processor has no instructions for it, float32 is faster here; leave --dtype out"


def read_settings(path: Path) -> dict[str, object]:
    """Return the object in a JSON file of a model, an empty one where there is no file.

    Raises MediError where it holds anything else.
    """
    try:
        found = json.loads(path.read_bytes()) if path.is_file() else {}
    except (ValueError, RecursionError) as error:
        raise MediError(f"{path} is not JSON ({error}); fetch the model again") from None
    if not isinstance(found, dict):
        raise MediError(f"{path} holds no object; fetch the model again")
    return found


def tokenizer_fault(model: "SentenceTransformer") -> str:
    """Return why the tokenizer of a model cannot be used, and what to do; nothing where it can."""
    if not getattr(model.tokenizer, "is_fast", False):
        return "has no fast tokenizer (tokenizer.json); convert it or choose another"
    tokens, known = len(model.tokenizer), int(getattr(model[0].model.config, "vocab_size", 0))
    # Where its files are missing, transformers makes one that knows no word.
    if tokens < known // 2:
        return f"its tokenizer knows {tokens:,} tokens, the model {known:,}; put its tokenizer.json into the folder"
    return ""


def unloadable() -> tuple[type[Exception], ...]:
    """Return what the libraries raise for a model that is damaged or means harm. Imports them."""
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError

    ours = (ArithmeticError, AttributeError, ImportError, LookupError, OSError, RuntimeError, TypeError, ValueError)
    return (*ours, UnpicklingError, SafetensorError, StrictDataclassError)


def why_unloadable(error: Exception) -> str:
    """Return in one line why a model cannot be loaded; what a library advises may be unsafe, and is left out."""
    text = str(error)
    if isinstance(error, UnpicklingError):
        return "a .bin file of it holds more than weights, or is damaged; choose a model with safetensors"
    if "trust_remote_code" in text:
        return "it brings code of its own, which medi never runs; choose another model"
    return (text.splitlines() or [type(error).__name__])[0]
