"""`--source FILE`: a Python file with SOURCE and INSTRUCTIONS becomes an Own. The file is run: it is the person's code.

What it reads is guarded: a record on which its `read` stumbles is a bad record, with the line of the file, and counts
as in the built-in sources.
"""

import hashlib
import json
import sys
import traceback
from collections.abc import Callable
from dataclasses import astuple, replace
from pathlib import Path
from types import ModuleType

from medi.errors import UsageError
from medi.instruct import Sides, Slots
from medi.own.declared import Own, check_name
from medi.own.spec import MOST_ROWS, SourceFile
from medi.schema import is_visible
from medi.source import Bad, Drop, Fields, Json, Source, Variant

# What a slip in a person's code raises. Anything else is no slip, and ends the command as it is.
_SLIPS = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError, OSError, RuntimeError,
    SyntaxError, TypeError, ValueError,
)  # fmt: skip
_SLOTS = "INSTRUCTIONS = Sides(query=Slots(...), document=Slots(...))"


def spec_of(path: Path) -> SourceFile:
    """Return the Spec of a Python file. Raises UsageError where it cannot be read."""
    return SourceFile(path.absolute(), hashlib.sha256(_bytes_of(path)).hexdigest())


def load_file(spec: SourceFile) -> Own:
    """Run the file and return what it declares.

    Raises:
        UsageError: it is another file by now, does not run, declares no Source or no slots, or what it declares
            cannot be built; the message says which.
    """
    code = _bytes_of(spec.path)
    if hashlib.sha256(code).hexdigest() != spec.sha256:
        raise UsageError(f"{spec.what}: the file changed while it was used; run the command again")
    module = ModuleType(f"medi_own_{spec.sha256[:16]}")
    module.__file__ = str(spec.path)
    # Dataclasses of the file look their own module up.
    sys.modules[module.__name__] = module
    try:
        exec(compile(code, str(spec.path), "exec"), module.__dict__)
    except _SLIPS as slip:
        raise UsageError(f"{spec.what}: {_slip(slip, spec.path)}; mend the file") from None
    declared: dict[str, Json] = {"file": spec.path.name, "sha256": spec.sha256}
    source = _source_of(module, spec)
    return Own(source, _sides_of(module, source, spec.what), spec.path.parent, spec.what, declared)


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        why = (error.strerror or "cannot be read").lower()
        raise UsageError(f"--source {path}: {why}; name a Python file") from None


def _slip(error: BaseException, path: Path) -> str:
    """Return what went wrong in a person's file, with its line there."""
    frames = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    number = error.lineno if isinstance(error, SyntaxError) and error.filename == str(path) else (frames or [0])[-1]
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{f'line {number}: ' if number else ''}{type(error).__name__}: {' '.join(str(said).split()) or 'no reason'}"


def _source_of(module: ModuleType, spec: SourceFile) -> Source:
    """Return the Source of a module, its variants guarded. Raises UsageError where there is none that can be built."""
    source, what = getattr(module, "SOURCE", None), spec.what
    if not isinstance(source, Source):
        raise UsageError(f"{what}: has no SOURCE; write SOURCE = Source(...), from medi.source")
    check_name(source.name, what)
    for name in ("licence", "citation"):
        if not (isinstance(text := getattr(source, name), str) and text.isprintable()):
            raise UsageError(f"{what}: the {name} is {text!r}; write a text of one line")
    if type(source.quota_rows) is not int or not 1 <= source.quota_rows <= MOST_ROWS:
        told = f"write how many rows it may give, from 1 to {MOST_ROWS:,}"
        raise UsageError(f"{what}: quota_rows is {source.quota_rows!r}; {told}")
    if not source.variants or not all(isinstance(v, Variant) and v.files for v in source.variants):
        raise UsageError(f"{what}: has no Variant with a File; write where its raw files are")
    if len({variant.name for variant in source.variants}) < len(source.variants):
        raise UsageError(f"{what}: two variants have one name; rename one")
    return replace(source, variants=tuple(_guarded(variant, spec) for variant in source.variants))


def _guarded(variant: Variant, spec: SourceFile) -> Variant:
    """Return the variant with a `read` that calls a record bad where it stumbles; its own sample must be readable."""
    guarded = replace(variant, read=_reader(variant.read, spec.path))
    try:
        guarded.read(json.loads(variant.sample))
    except (ValueError, TypeError):
        raise UsageError(f"{spec.what}: the sample of {variant.name} is no JSON; write one raw record") from None
    except (Bad, Drop) as reason:
        raise UsageError(f"{spec.what}: {variant.name} does not read its own sample ({reason}); mend either") from None
    return guarded


def _reader(read: Callable[[Json], Fields], path: Path) -> Callable[[Json], Fields]:
    """Return `read` with a slip turned into Bad, and what it gives checked."""

    def guarded(record: Json) -> Fields:
        """Return the Fields of a record. Raises Bad and Drop."""
        try:
            found = read(record)
        except _SLIPS as slip:
            raise Bad(f"{path.name} cannot read it ({_slip(slip, path)})") from slip
        if not isinstance(found, Fields):
            raise Bad(f"{path.name} gave {type(found).__name__} where Fields belong")
        texts = (found.query, found.positive, *found.other_positives, *found.negatives)
        if strange := [text for text in texts if not isinstance(text, str)]:
            raise Bad(f"{path.name} gave {strange[0]!r} where a text belongs")
        return found

    return guarded


def _sides_of(module: ModuleType, source: Source, what: str) -> Sides:
    """Return the instruction slots of a module. Raises UsageError where one is missing or the sides do not fit."""
    sides = getattr(module, "INSTRUCTIONS", None)
    if not isinstance(sides, Sides):
        raise UsageError(f"{what}: has no INSTRUCTIONS; write {_SLOTS}, from medi.instruct")
    for side, slots in sides._asdict().items():
        if not isinstance(slots, Slots) or not all(isinstance(text, str) for text in astuple(slots)):
            raise UsageError(f"{what}: the slots of the {side} are no texts; write Slots(text_type=..., domain=...)")
        if not is_visible(slots.text_type):
            raise UsageError(f"{what}: the {side} has no text_type; say what its texts are, such as question")
    if source.symmetric and sides.query != sides.document:
        raise UsageError(f"{what}: a symmetric source says the same of both sides; give both the same Slots")
    return sides
