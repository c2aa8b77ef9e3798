"""The options of the commands: their types, and what `--help` says of each."""

from pathlib import Path
from typing import Annotated

import typer

Preset = Annotated[
    str, typer.Option(metavar="sample|lite|full", help="Bundled rows, a fiftieth of every quota, or all of it.")
]
Profile = Annotated[
    str | None,
    typer.Option(metavar="paper|clean", help="The rules of mining: the paper's, or stricter.  [default: paper]"),
]
Raw = Annotated[Path | None, typer.Option(metavar="DIR", help="Read the files in this folder; download none.")]
Sources = Annotated[str | None, typer.Option(metavar="A,B", help="Only these sources; `medi sources` lists all.")]
SourceFiles = Annotated[
    list[Path] | None,
    typer.Option("--source", metavar="FILE", help="A Python file with a source of your own; may be repeated."),
]
PairsPlace = Annotated[
    str | None,
    typer.Option("--pairs", metavar="FILE", help="JSONL, CSV or Parquet of your own pairs, or OWNER/NAME on the Hub."),
]
QueryField = Annotated[str | None, typer.Option(metavar="Q", help="Of --pairs, the field with the query.")]
PositiveField = Annotated[str | None, typer.Option(metavar="P", help="That with its positive, or a list of them.")]
NegativesField = Annotated[str | None, typer.Option(metavar="N", help="That with its negatives, if there are any.")]
LabelField = Annotated[
    str | None, typer.Option(metavar="L", help="Of labelled texts, the field with the label, in place of a positive.")
]
PairsName = Annotated[str | None, typer.Option("--name", metavar="NAME", help="Their source.  [default: the file's]")]
PairsRows = Annotated[int | None, typer.Option("--rows", metavar="N", help="Their quota.  [default: at most 50000]")]
Licences = Annotated[
    str | None,
    typer.Option(metavar="A,B", help="Only texts under these, such as mit,cc-by-4.0; or open, or commercial."),
]
SuperNiTasks = Annotated[
    str | None,
    typer.Option(
        metavar="all|listed|FILE",
        help="Super-NI tasks: all there are, the 300 listed, or a file's.  [default: all; lite and full: listed]",
    ),
]
Variant = Annotated[
    list[str] | None, typer.Option(metavar="SOURCE=NAME", help="Where a source comes from; may be repeated.")
]
Take = Annotated[
    str | None,
    typer.Option(
        metavar="hash|first",
        help="Draw lines by their hash from whole files, or take them from the start.  [default: hash; lite: first]",
    ),
]
Scale = Annotated[
    float | None, typer.Option(metavar="F", help="Multiply every quota by this.  [default: 1; lite: 0.02]")
]
Seed = Annotated[int | None, typer.Option(metavar="N", help="Seed of every draw.  [default: 0]")]
Encoder = Annotated[
    str | None,
    typer.Option(
        metavar="NAME_OR_PATH",
        help="The model that mining compares texts with.  [default: all-MiniLM-L6-v2; full: sentence-t5]",
    ),
]
Revision = Annotated[str | None, typer.Option(metavar="R", help="The encoder's revision on the Hub.  [default: main]")]
Dtype = Annotated[
    str | None, typer.Option(metavar="float32|bfloat16", help="The encoder's arithmetic.  [default: float32]")
]
Out = Annotated[Path | None, typer.Option(metavar="DIR", help="The release.  [default: WORKSPACE/medi/PRESET]")]
Workspace = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Downloads and finished artifacts.  [default: $MEDI_HOME, else data]")
]
Workers = Annotated[int | None, typer.Option(metavar="N", help="Sources worked on at once.  [default: the cores]")]
Runner = Annotated[
    str | None,
    typer.Option(metavar="threads|dask|ray|none", help="What runs them; none: no Prefect.  [default: threads]"),
]
Memory = Annotated[
    str | None, typer.Option(metavar="BYTES", help="Memory to keep to, such as 8G.  [default: a quarter]")
]
Offline = Annotated[bool | None, typer.Option("--offline", help="No network call at all.")]
MaxBadRows = Annotated[
    str | None, typer.Option(metavar="N|P%", help="Broken lines of a source that are passed over.  [default: 0]")
]
Strict = Annotated[bool, typer.Option("--strict", help="Lines that would be mended count as broken.")]
CheckAllLines = Annotated[bool, typer.Option("--check-all-lines", help="Parse also lines that are not drawn.")]
Negatives = Annotated[
    int | None, typer.Option(metavar="N", help="Negatives that a row is to have, 1 to 16.  [default: 1; clean: 4]")
]
Strategy = Annotated[
    str | None, typer.Option(metavar="passage|s_neg", help="Search pairs by document, or by s_neg.  [default: passage]")
]
SkipTop = Annotated[int | None, typer.Option(metavar="N", help="Pass over the N nearest candidates.  [default: 0]")]
Window = Annotated[
    int | None, typer.Option(metavar="N", help="Look at the N nearest candidates, 1 to 64.  [default: 64]")
]
MinScore = Annotated[float | None, typer.Option(metavar="F", help="Least cosine of a mined negative.")]
MaxScore = Annotated[float | None, typer.Option(metavar="F", help="Highest cosine of a mined negative.")]
AbsoluteMargin = Annotated[
    float | None, typer.Option(metavar="F", help="A negative scores more than this below the positive.")
]
RelativeMargin = Annotated[
    float | None, typer.Option(metavar="F", help="The same, as a share of the positive's score.  [clean: 0.05]")
]
Sampling = Annotated[
    str | None, typer.Option(metavar="top|random", help="Take the nearest of the window, or any.  [default: top]")
]
Fill = Annotated[
    str | None,
    typer.Option(
        metavar="none|other_rows|random",
        help="Fill up rows that are short: not, with other rows' positives, or with any documents.  [default: none]",
    ),
]
Rescore = Annotated[
    str | None, typer.Option(metavar="MODEL", help="A cross-encoder whose scores replace the window's cosines.")
]
IvfFrom = Annotated[
    int | None,
    typer.Option(
        metavar="DOCUMENTS",
        help="Search so many (10000 at least) or more by an inverted file, recall 0.99.  [default: never]",
    ),
]
ShowParams = Annotated[bool, typer.Option("--show-params", help="Print what decides the bytes; build nothing.")]
