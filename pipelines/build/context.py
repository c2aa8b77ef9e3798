"""What every step of one build needs to know: settings, workspace, encoder; small, picklable, made once.

Heavy things (the loaded encoder, open vector chunks) are made in the process that needs them and kept there.
"""

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from medi import fetch, rescore
from medi.encoder import EncoderSpec, LoadedEncoder, describe, load, slowness_of
from medi.installed import check_faiss
from medi.instruct import Instructions, load_instructions
from medi.mine import Search
from medi.mine.engine import find_gpu
from medi.own import load as load_own
from medi.profiles import Rules
from medi.rescore import CrossScorer
from medi.schema import digest_of
from medi.stages import VERSIONS
from medi.store import Store
from medi.vectors import VectorStore
from pipelines.build.progress import reporter
from pipelines.presets import Settings


@dataclass(frozen=True)
class Context:
    """One build's settings, encoder and, with `--rescore`, cross-encoder; their weights may still be on the Hub."""

    settings: Settings
    spec: EncoderSpec
    encoder_files: fetch.EncoderFiles
    scorer: EncoderSpec | None = None
    scorer_files: fetch.EncoderFiles | None = None

    @property
    def workspace(self) -> Path:
        """Return the folder of downloads, artifacts and Prefect's home."""
        return self.settings.workspace

    @property
    def store(self) -> Store:
        """Return the store of the workspace."""
        return Store(self.workspace / "store")

    @property
    def vectors(self) -> VectorStore:
        """Return this encoder's vectors."""
        return _vectors(self.workspace / "store" / "vectors", digest_of(self.encoder_params)[:32])

    @property
    def encoder_params(self) -> dict[str, object]:
        """Return what decides the bits of a vector, as params of the stages that use vectors."""
        return {**self.spec.to_json(), "version": VERSIONS["embed"]}

    @property
    def manners(self) -> fetch.Settings:
        """Return how downloads behave in this build."""
        return manners(self.settings)

    @property
    def instructions(self) -> Instructions:
        """Return the instruction texts."""
        words, own = _instructions(), [load_own(spec) for spec in self.settings.own]
        return replace(words, sources=words.sources | {one.source.name: one.sides for one in own}) if own else words

    @property
    def rules(self) -> Rules:
        """Return how negatives are chosen."""
        rules = self.settings.rules
        return rules if self.scorer is None else replace(rules, rescore=self.scorer.to_json())

    @property
    def search(self) -> Search:
        """Return what one search may use: a sixteenth of the memory budget, within 8 MB and 256 MB, and the GPU."""
        budget_bytes = self.settings.memory_bytes or _machine_bytes() // 4
        return Search(min(max(budget_bytes // 16, 8 << 20), 256 << 20), _gpu())

    def encoder(self) -> LoadedEncoder:
        """Return the encoder, fetched where it is not here yet and loaded once a process. Imports torch."""
        with _LOADING:
            return _loaded(self.spec, self.encoder_files, self.manners)

    def cross_encoder(self) -> CrossScorer:
        """Return the cross-encoder of `--rescore`, loaded once a process. Imports torch."""
        assert self.scorer is not None and self.scorer_files is not None
        with _LOADING:
            return _loaded_scorer(self.scorer, self.scorer_files, self.manners)

    @contextmanager
    def device(self, stage: str) -> Iterator[None]:
        """Hold the device: one encoding at a time in a workspace, whatever the runner and whoever else builds.

        Where another build holds it, the stage shows that it waits.
        """
        # This process's own threads wait here, so that whoever holds the file is somebody else.
        with _ENCODING, (self.workspace / "encoder.lock").open("w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                with reporter().waiting(stage, "waits for the encoder: another build uses it"):
                    fcntl.flock(handle, fcntl.LOCK_EX)
            yield


def prepare(settings: Settings) -> Context:
    """Return the context of a build. Imports no torch; of an encoder on the Hub, only its settings are fetched.

    Raises:
        MediError: FAISS is not installed rightly, or the encoder is not there and cannot be had.
    """
    check_faiss()
    settings.workspace.mkdir(parents=True, exist_ok=True)
    files = fetch.find_encoder(settings.encoder, settings.revision, manners(settings))
    spec = describe(files.name, files.folder, files.revision, settings.dtype)
    if settings.rescore is None:
        return Context(settings, spec, files)
    scorer_files = fetch.find_encoder(settings.rescore, None, manners(settings))
    return Context(settings, spec, files, rescore.describe(scorer_files), scorer_files)


def manners(settings: Settings) -> fetch.Settings:
    """Return how downloads behave: where they go, whether they may happen, who hears of it."""
    return fetch.Settings(settings.workspace, offline=settings.offline, say=_say, progress=_fetched)


def _say(message: str) -> None:
    """Hand a line of the downloads to whoever reports in this process."""
    reporter().say(message)


def _fetched(name: str, done_bytes: int, total_bytes: int | None) -> None:
    """Hand on how far a download is."""
    reporter().fetched(name, done_bytes, total_bytes)


# Threads that ask at once must not load the model once each.
_LOADING = threading.Lock()
_ENCODING = threading.Lock()


def _machine_bytes() -> int:
    """Return the machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@cache
def _vectors(root: Path, encoder_key: str) -> VectorStore:
    return VectorStore(root, encoder_key)


@cache
def _gpu() -> bool:
    """Return whether FAISS may search on a GPU; where one is here and is not right, a line says so."""
    return find_gpu(_say)


@cache
def _loaded_scorer(spec: EncoderSpec, files: fetch.EncoderFiles, how: fetch.Settings) -> CrossScorer:
    return rescore.load(spec, fetch.fetch_encoder(files, how))


@cache
def _instructions() -> Instructions:
    return load_instructions()


@cache
def _loaded(spec: EncoderSpec, files: fetch.EncoderFiles, how: fetch.Settings) -> LoadedEncoder:
    if slowness := slowness_of(spec.dtype, spec.arithmetic):
        _say(slowness)
    return load(spec, fetch.fetch_encoder(files, how))
