"""Shows how far the long stages of a flow run are, as progress artifacts; nothing of the build depends on them."""

import contextvars
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import httpx
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.exceptions import PrefectException

from pipelines.build.progress import reporter

_EVERY_SECONDS = 5.0


@contextmanager
def progress_shown(every_seconds: float = _EVERY_SECONDS) -> Iterator[None]:
    """Keep an artifact for each stage that has something to do, `medi-ingest` for example, up to date for a while.

    To be entered inside a flow. A server that stops answering ends it without a word: the build goes on.
    """
    made: dict[str, UUID] = {}
    over = threading.Event()

    def update() -> None:
        """Bring all artifacts up to date; those of new stages are made."""
        for stage, (percent, line) in reporter().shares().items():
            if stage in made:
                update_progress_artifact(made[stage], percent, description=line)
            else:
                made[stage] = create_progress_artifact(percent, key=f"medi-{stage}", description=line)  # pyright: ignore[reportArgumentType]

    def keep_up() -> None:
        """Update until it is over, or the server fails."""
        while not over.wait(every_seconds):
            try:
                update()
            except (httpx.HTTPError, PrefectException, RuntimeError):
                return

    update()
    # The thread is to know the flow run and the server of this one.
    thread = threading.Thread(target=contextvars.copy_context().run, args=(keep_up,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(every_seconds)
    update()
