"""Fuzzes the readers by coverage, where atheris is installed: `python -m tests.guided LAYOUT SECONDS FOLDER`.

Good files of the layout, plain and packed, are what the fuzzer changes; what must hold of any file is `hold` of
tests/test_fuzz.py. Ends with how many files were tried (`stat::number_of_executed_units`), or with a traceback and the
file with which something does not hold.
"""

import gzip
import sys
from pathlib import Path

import atheris  # pyright: ignore[reportMissingModuleSource]

with atheris.instrument_imports(include=["medi.read", "medi.ingest"]):
    from tests.layouts import LAYOUTS, TABLES, content_of
    from tests.test_fuzz import hold


def main(name: str, seconds: int, folder: Path) -> None:
    """Fuzz one layout for a while; `folder` takes the corpus that grows on the way."""
    layout, corpus = (LAYOUTS | TABLES)[name], folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    good = content_of(layout)
    (corpus / "plain").write_bytes(good)
    (corpus / "packed").write_bytes(gzip.compress(good, mtime=0))
    options = [f"-max_total_time={seconds}", "-rss_limit_mb=2048", "-max_len=20000", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], lambda content: hold(folder, layout, content))
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
