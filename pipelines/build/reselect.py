"""Other negatives for a finished release: chosen again among the kept candidates, without an encoder or a search.

The build is repeated as it was, with other mining options; what reads, tokenizes, encodes or searches must lie in the
workspace already.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from medi.errors import MediError
from medi.release import open_release
from medi.release.manifest import RUN
from medi.release.swap import finish_swap
from pipelines.build import progress
from pipelines.build.contents import finished
from pipelines.build.context import prepare
from pipelines.build.failures import failure_of
from pipelines.build.fetching import located
from pipelines.build.keep import SEARCHED, Missing
from pipelines.build.run import BuildResult, Job, publish, settings_from, tidy
from pipelines.build.steps import finish
from pipelines.build.summary import show_result
from pipelines.build.units import plan_groups
from pipelines.presets import MINING, Settings


def reselect(folder: Path, changes: Mapping[str, object], out: Path | None, console: Console) -> BuildResult:
    """Build the release of `folder` again with other mining options (fields of Settings), into `out` or its place.

    Raises:
        UsageError: an option is wrong, or nothing can come of the options together.
        MediError: the folder does not say how it was built, or its workspace lacks what was found then.
    """
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    finish_swap(folder)
    settings = _settings(folder, changes, out)
    if not settings.workspace.is_dir():
        raise MediError(f"{settings.workspace}, the workspace of this release, is gone; run `medi build` instead")
    tidy(settings)
    reporter = progress.Reporter(console)
    _say_what_is_mined_instead(settings, reporter)
    with progress.showing(reporter):
        context = prepare(settings)
        plan = plan_groups(context)
        if plan.failed:
            raise failure_of(plan.failed)
        plan = replace(plan, groups=tuple(located(context, group) for group in plan.groups))
        units = [unit for group in plan.groups for unit in group.units]
        reporter.begin("mine")
        reporter.expect("mine", len(units))
        chains, seconds = {}, {}
        for unit in units:
            began = time.monotonic()
            try:
                chain = chains[unit.name] = finish(context, unit, SEARCHED)
            except Missing as missing:
                raise MediError(
                    f"{settings.workspace} lacks {missing}: it was cleaned, or the raw files or this version of medi "
                    "are others now; run `medi build` with these options"
                ) from None
            seconds[unit.source] = seconds.get(unit.source, 0.0) + time.monotonic() - began
            reporter.advance("mine", rows=chain.mined.pairs.rows if chain else 0)
        if not units or any(not group.units for group in plan.groups):
            raise MediError(f"{settings.workspace} lacks raw files; run `medi build` with these options")
        result = publish(Job(context, plan, started), finished(context, units, chains), seconds)
    show_result(reporter, result.out, result.content_digest, result.units, result.seconds)
    return result


_GIVEN = ("given_negatives", "given_looked_at")
# How candidates were searched is no choice among them: it stays, or they would not be found again.
_CHOSEN = tuple(name for name in MINING if name not in ("strategy", "ivf_from"))


def _say_what_is_mined_instead(settings: Settings, reporter: progress.Reporter) -> None:
    """Say a line where more given negatives are asked for than were encoded."""
    given = settings.rules.given_negatives
    if settings.negatives is not None and settings.negatives > given:
        reporter.say(
            f"of the negatives that sources give, {given} a row were encoded: further ones are mined instead; "
            "`medi build` with these options takes them"
        )


def _settings(folder: Path, changes: Mapping[str, object], out: Path | None) -> Settings:
    """Return how the release was built, with the changes on top; another profile also ends the old options."""
    open_release(folder)
    try:
        options = json.loads((folder / RUN).read_bytes())["options"]
        if not isinstance(options, dict):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError):
        raise MediError(
            f"{folder / RUN} does not say how the release was built; run `medi build` with the options you want"
        ) from None
    built = settings_from(options).rules
    # How many given negatives a row keeps was found below, the last time; what is asked for now decides it anew.
    outdated = _CHOSEN if "profile" in changes else _GIVEN if "negatives" in changes else ()
    options = {name: value for name, value in options.items() if name not in outdated}
    asked: dict[str, object] = {**options, **changes, "out": str(out or folder), "offline": True, "show_params": False}
    settings = settings_from(asked)
    # Further given negatives of a row were never encoded; mined ones stand in for them.
    given_negatives = min(settings.rules.given_negatives, built.given_looked_at // 2)
    return replace(settings, given_negatives=given_negatives, given_looked_at=built.given_looked_at)
