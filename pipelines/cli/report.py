"""`medi report DIR`: writes the page that shows a release to a person, made from the release's folder alone."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from medi.screen import shown


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A release.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it here. [default: DIR/report.html, in the manifest]")
    ] = None,
) -> None:
    """Write report.html, a page that shows a release.

    It says what was built and what to look at first, with histograms and examples of every task. One file for a
    browser, without a network. Each build writes it; this writes that of an older or imported release.
    """
    from medi.publish import write_whole
    from medi.release import open_release
    from medi.release.manifest import MEASURES_FILE
    from medi.report.page import report_page
    from medi.shards import renew_report

    release = open_release(folder)
    if out is None:
        path = renew_report(folder)
    else:
        path = out
        write_whole(path, report_page(release))
    if not (folder / MEASURES_FILE).is_file():
        print("no lengths in tokens, ranks or map: the release has no audit/measures.json", file=sys.stderr)
    print(shown(str(path)))
