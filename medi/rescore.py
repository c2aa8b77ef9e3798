"""Scores pairs of texts with a cross-encoder, a second opinion on what mining found: (query, document) in, float32 out.

Batches have fixed shapes, as the mining encoder's have, so a pair's score depends on that pair alone: whatever else is
asked for beside it, its bits are the same.
"""

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from medi import encoder
from medi.encoder import EncoderSpec
from medi.errors import MediError, UsageError
from medi.fetch import EncoderFiles, Settings, fetch_encoder, find_encoder
from medi.fixed_shapes import SHAPES, shapes_for
from medi.screen import many

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

Pairs = Sequence[tuple[str, str]]
# Heads whose output is a score of the pair; on any other model the library puts a new head of random numbers.
_HEADS = ("ForSequenceClassification", "ForCausalLM")
_MEASURED_AT_ONCE_ROWS = 256
# A head gives one number a row, and such products sum the last rows in another order where the rows are no multiple of
# eight: with 10 or 42 of them a score would depend on the place of its pair.
_SHAPES = tuple((length, max(8, 2_048 // length // 8 * 8)) for length, _ in SHAPES)


def load_cross_encoder(name: str, revision: str | None, offline: bool, cache: Path) -> "CrossScorer":
    """Return the scorer of a local folder or a Hub name, whose files are kept below `cache`. Imports torch.

    Raises:
        UsageError: the name is neither, or the model does not give one score a pair.
        MediError: its files cannot be had or loaded.
    """
    settings = Settings(cache, offline=offline)
    files = find_encoder(name, revision, settings)
    return load(describe(files), fetch_encoder(files, settings))


def describe(files: EncoderFiles) -> EncoderSpec:
    """Return what decides the bits of a score, without importing torch; its `to_json()` is for the records.

    Raises:
        UsageError: the folder is another kind of model than a cross-encoder, or gives several scores a pair.
    """
    config = encoder.read_settings(files.folder / "config.json")
    kind = encoder.read_settings(files.folder / "config_sentence_transformers.json").get("model_type")
    heads = config.get("architectures")
    head = str(heads[0]) if isinstance(heads, list) and heads else "no known class"
    if kind != "CrossEncoder" and not head.endswith(_HEADS):
        raise UsageError(f"--rescore {files.name}: {head} has no head that scores a pair; name a cross-encoder")
    labels = config.get("id2label")
    if isinstance(labels, dict):
        _check_labels(files.name, len(labels))
    spec = encoder.describe(files.name, files.folder, files.revision, "float32")
    return replace(spec, shapes=shapes_for(spec.max_length_tokens, _SHAPES))


def load(spec: EncoderSpec, folder: Path) -> "CrossScorer":
    """Return the scorer of that folder, on the device its arithmetic names. Imports torch.

    Raises:
        UsageError: it gives several scores a pair.
        MediError: it cannot be loaded, or torch finds no such device.
    """
    import torch
    from sentence_transformers import CrossEncoder
    from transformers.utils import logging

    logging.disable_progress_bar()
    device = "cuda" if spec.arithmetic.startswith("cuda") else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        raise MediError(
            f"--rescore {spec.name}: torch {torch.__version__} cannot use the GPU that is here; "
            "score on the CPU: put CUDA_VISIBLE_DEVICES= before the command"
        )
    try:
        model = CrossEncoder(
            str(folder), device=device, local_files_only=True, trust_remote_code=False,
            model_kwargs={"dtype": torch.float32},
        )  # fmt: skip
    except encoder.unloadable() as error:
        reason = encoder.why_unloadable(error)
        raise MediError(f"--rescore {spec.name}: cannot be loaded from {folder}: {reason}") from None
    _check_labels(spec.name, model.num_labels)
    return CrossScorer(model, spec)


class CrossScorer:
    """A cross-encoder that scores a pair as its author meant it (its own prompt and activation), in fixed shapes."""

    def __init__(self, model: "CrossEncoder", spec: EncoderSpec) -> None:
        self._model = model.eval()
        self._spec = spec
        self._prompt = model.prompts.get(model.default_prompt_name or "")
        # A fast tokenizer holds the padding of its last call, so two threads must not score at once.
        self._lock = threading.Lock()

    @property
    def params(self) -> dict[str, object]:
        """Return the params of the records, with a JSON form."""
        return self._spec.to_json()

    def score(self, pairs: Pairs) -> np.ndarray:
        """Return a score for each (query, document), float32 [n]. Raises MediError for one that is not finite."""
        with self._lock:
            scores = self._scores(pairs)
        bad = np.flatnonzero(~np.isfinite(scores))
        if len(bad):
            first = int(bad[0])
            raise MediError(
                f"--rescore {self._spec.name}: {many(len(bad), 'score')} not finite (first: {scores[first]}, of pair "
                f"{first}, query {pairs[first][0][:60]!r}); choose another cross-encoder"
            )
        return scores

    def _scores(self, pairs: Pairs) -> np.ndarray:
        """Return the scores as the model gives them, float32 [n]."""
        shapes = self._spec.shapes
        buckets = np.searchsorted([length for length, _ in shapes], self._lengths(pairs))
        scores = np.empty(len(pairs), dtype=np.float32)
        for bucket, (length, rows) in enumerate(shapes):
            members = np.flatnonzero(buckets == bucket)
            for start in range(0, len(members), rows):
                batch = members[start : start + rows]
                scores[batch] = self._forward([pairs[i] for i in batch], length, rows)
        return scores

    def _lengths(self, pairs: Pairs) -> np.ndarray:
        """Return how many tokens each pair has after truncation, int64 [n]."""
        counts = [np.empty(0, dtype=np.int64)]
        for start in range(0, len(pairs), _MEASURED_AT_ONCE_ROWS):
            chunk = list(pairs[start : start + _MEASURED_AT_ONCE_ROWS])
            limits = {"text": {"max_length": self._spec.max_length_tokens}}
            features = self._model.preprocess(chunk, prompt=self._prompt, processing_kwargs=limits)
            counts.append(features["attention_mask"].sum(dim=1).numpy())
        return np.concatenate(counts)

    def _forward(self, batch: list[tuple[str, str]], length: int, rows: int) -> np.ndarray:
        """Return the scores of one batch, padded to [rows, length]; its first pair fills the rows that are left."""
        import torch

        filled = batch + batch[:1] * (rows - len(batch))
        shape = {"text": {"padding": "max_length", "max_length": length}}
        features = self._model.preprocess(filled, prompt=self._prompt, processing_kwargs=shape)
        if features["input_ids"].shape != (rows, length):
            raise MediError(f"--rescore {self._spec.name}: does not pad to {length} tokens; choose another model")
        on_device = {k: v.to(self._model.device) if torch.is_tensor(v) else v for k, v in features.items()}
        activate = self._model.activation_fn or torch.nn.Identity()
        with torch.inference_mode():
            scores = activate(self._model(on_device)["scores"].float())
        return scores.reshape(rows)[: len(batch)].cpu().numpy()


def _check_labels(name: str, labels: int) -> None:
    """Raise UsageError unless the model gives one score a pair."""
    if labels != 1:
        raise UsageError(f"--rescore {name}: gives {labels} scores a pair; name a cross-encoder with one label")
