"""A release -> a file or folder that other trainers read; each format is a function (release, path) -> Tally.

Rows are read one row group at a time, so memory does not grow with the release. What a format cannot hold is counted.
"""

from collections.abc import Callable
from pathlib import Path

from medi.errors import MediError, UsageError
from medi.export.lines import write_flagembedding, write_jsonl, write_tevatron
from medi.export.medi_json import write_medi_json
from medi.export.place import placing
from medi.export.rows import Tally
from medi.export.sentence_transformers import write_sentence_transformers
from medi.release import Release, as_written, open_release

__all__ = ["FORMATS", "Tally", "export"]

MEDI_JSON = "medi-json"
_WRITERS: dict[str, Callable[[Release, Path], Tally]] = {
    "sentence-transformers": write_sentence_transformers,
    "flagembedding": write_flagembedding,
    "tevatron": write_tevatron,
    "jsonl": write_jsonl,
}
FORMATS = (MEDI_JSON, *_WRITERS)


def export(folder: Path, to: str, out: Path, block_rows: int = 1) -> Tally:
    """Write the release in `folder` in one of FORMATS to `out`, which is replaced where it is an export of ours.

    `block_rows` is the batch size that a medi-json is for; other formats have no use for it.

    Raises:
        UsageError: there is no such format, the folder is no release, or `out` lies in it.
        MediError: `out` is something else, the release is damaged, or the format can hold none of its rows.
    """
    if to not in FORMATS:
        raise UsageError(f"--to {to}: there is no such format; give one of {', '.join(FORMATS)}")
    release = open_release(folder)
    if out.resolve().is_relative_to(folder.resolve()):
        raise UsageError(f"{out} lies in the release; name a path outside of {folder}")
    with placing(out) as (path, facts):
        with as_written(release):
            tally = write_medi_json(release, path, block_rows) if to == MEDI_JSON else _WRITERS[to](release, path)
        lost = release.rows() - tally.rows - sum(tally.left_out.values())
        if lost:
            raise MediError(f"{folder}: {lost} rows of the manifest are not in the shards; see `medi verify {folder}`")
        if not tally.rows:
            why = ", ".join(f"{reason}: {rows:,}" for reason, rows in sorted(tally.left_out.items())) or "it has none"
            raise MediError(f"{folder}: none of its rows can be a row of {to} ({why}); nothing was written")
        facts |= {
            "to": to, "content_digest": release.manifest["content_digest"], "tasks": tally.tasks, "rows": tally.rows,
            "left_out": dict(sorted(tally.left_out.items())), "negatives_left_out": tally.negatives_left_out,
        } | ({"batch_size": block_rows} if to == MEDI_JSON else {})  # fmt: skip
    return tally
