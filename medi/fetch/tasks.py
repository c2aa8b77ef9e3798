"""Super-NI: names of tasks become their files at one pinned commit, over plain HTTP, only those that were chosen.

There are hundreds of small files, so a few are fetched at a time; the lock file is written once.
"""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed

from medi.errors import MediError
from medi.fetch.download import arrive, note_all
from medi.fetch.hosts import Unreachable
from medi.fetch.http import address, reach
from medi.fetch.local import LocalFile
from medi.fetch.places import Remote
from medi.fetch.settings import Settings

SUPER_NI_COMMIT = "fd2da121ae684832d1c5c6c6ccd57560df06f790"
SUPER_NI = f"https://raw.githubusercontent.com/allenai/natural-instructions/{SUPER_NI_COMMIT}"


def fetch_tasks(names: Iterable[str], settings: Settings, place: str = SUPER_NI) -> list[LocalFile]:
    """Return the files of the named tasks, sorted by name.

    Raises NotThere where one is absent, Unreachable where the place cannot be asked, MediError where it fails.
    What had arrived before a failure is kept and noted.
    """
    commit = place.rstrip("/").rpartition("/")[2]
    remotes = [
        Remote(place.rstrip("/"), f"tasks/{name}.json", f"super_ni/tasks/{name}.json", commit=commit)
        for name in sorted(set(names))
    ]
    _refuse_missing([remote.path for remote in remotes if not remote.target(settings).is_file()], settings)
    arrivals = []
    try:
        with ThreadPoolExecutor(settings.threads) as pool:
            running = [pool.submit(arrive, remote, settings) for remote in remotes]
            try:
                for done in as_completed(running):
                    arrivals.append(done.result())
            finally:
                # After a failure nobody waits for the files that have not been begun.
                pool.shutdown(wait=True, cancel_futures=True)
    except Unreachable as error:
        raise _by_hand(place, error.why) from error
    finally:
        note_all(arrivals, settings)
    return sorted((arrival.local for arrival in arrivals), key=lambda file: file.name)


def reach_tasks(settings: Settings, place: str = SUPER_NI) -> None:
    """Pass where the place of the tasks answers. Raises Unreachable where it does not, MediError where it fails."""
    try:
        reach(place, address(place), settings)
    except Unreachable as error:
        raise _by_hand(place, error.why) from error


def _by_hand(place: str, why: str) -> Unreachable:
    """Return the error for tasks whose place cannot be asked: the same for all of them."""
    return Unreachable(f"super_ni: tasks of {place}", why, "put them into DIR/super_ni/tasks and give --raw DIR")


def _refuse_missing(paths: list[str], settings: Settings) -> None:
    """Raise MediError when offline and tasks are missing, naming the first of them."""
    if paths and settings.offline:
        more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
        raise MediError(
            f"super_ni: offline, and {', '.join(paths[:5])}{more} are not in {settings.hub}; "
            "run the same command once without --offline"
        )
