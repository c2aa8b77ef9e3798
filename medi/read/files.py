"""A raw folder -> its Super-NI task files; those of the other sources `medi.fetch` finds by their declared globs."""

from pathlib import Path


def super_ni_tasks(raw: Path) -> list[Path]:
    """Return the task files below `super_ni/tasks`, by name; whatever is not `*.json` there is no task."""
    return sorted((p for p in (raw / "super_ni" / "tasks").glob("*.json") if p.name[0] != "."), key=lambda p: p.name)
