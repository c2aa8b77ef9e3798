"""Licences as sources state them, as the Hub names them, and a build that has only some of them."""

import json
import shutil
from pathlib import Path

import pytest

from medi.errors import UsageError
from medi.licences import OPEN, allow_list, identifiers, is_allowed, may_be_handed_on
from medi.release.verify import verify
from medi.sources import ALL
from pipelines.cli.app import main
from tests.builds import manifest_of


@pytest.mark.parametrize(
    ("stated", "names", "handed_on"),
    [
        ("CC BY-SA 4.0", ("cc-by-sa-4.0",), True),
        ("ODC-By 1.0", ("odc-by",), True),
        ("MIT (KILT); Reddit's texts", ("mit", "other"), False),
        ("ODC-By / Apache-2.0", ("apache-2.0", "odc-by"), True),
        ("SNLI: CC BY-SA 4.0; MultiNLI: OANC and others", ("cc-by-sa-4.0", "other"), False),
        ("Apache 2.0", ("apache-2.0",), True),
        ("CC BY-NC-ND 4.0", ("cc-by-nc-nd-4.0",), False),
        ("wikihow, CC BY-NC-SA 3.0", ("cc-by-nc-sa-3.0", "other"), False),
        ("Unknown", ("unknown",), False),
        ("", ("other",), False),
    ],
)
def test_words_of_a_licence(stated: str, names: tuple[str, ...], handed_on: bool) -> None:
    assert identifiers(stated) == names
    assert may_be_handed_on(stated) is handed_on


def test_what_of_table_5_may_be_handed_on() -> None:
    assert {source.name for source in ALL if may_be_handed_on(source.licence)} == set(
        "stackexchange squad_pairs NQ specter_train_triples triviaqa zero_shot_re hotpotqa fever S2ORC_title_abstract "
        "PAQ_pairs wow trex pubmed medmcqa wikihow simple_wiki".split()
    )


def test_an_allow_list() -> None:
    assert allow_list(" MIT , cc-by-4.0,mit") == ("cc-by-4.0", "mit")
    assert set(allow_list("open")) == OPEN
    assert {name for name in OPEN if "-nc-" in name} == OPEN - set(allow_list("commercial"))
    assert is_allowed("Apache-2.0 (Hub); MIT (GitHub)", ("apache-2.0", "mit"))
    assert not is_allowed("Apache-2.0 (Hub); MIT (GitHub)", ("mit",))
    with pytest.raises(UsageError, match="--licences cc-by-40: the Hub has no such licence; near are cc-by-4.0"):
        allow_list("cc-by-40")
    with pytest.raises(UsageError, match="--licences: empty"):
        allow_list(" , ")


def test_a_build_leaves_out_what_is_not_allowed_and_says_why(
    cut: Path, tmp_path: Path, tiny_encoder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw, out = tmp_path / "raw", tmp_path / "w" / "out"
    shutil.copytree(cut, raw)
    closed = raw / "super_ni" / "tasks" / "task9009_medi_news_summarization.json"
    closed.write_text(json.dumps(json.loads(closed.read_text()) | {"Instance License": ["Unknown"]}))
    places = ["--raw", str(raw), "--encoder", str(tiny_encoder), "--workspace", str(tmp_path / "w"), "--runner", "none"]
    assert main(["build", *places, "--out", str(out), "--licences", "open"]) == 0
    err = capsys.readouterr().err
    assert "left out by --licences: gooaq_pairs (Apache-2.0 (code); Google's snippets); " in err
    assert "left out (licence Unknown): task9009_medi_news_summarization" in err
    manifest = manifest_of(out)
    assert [source["name"] for source in manifest["sources"]] == ["NQ", "fever", "super_ni"]
    told = manifest["params"]["absent"]["licences"]  # type: ignore[call-overload]
    assert told["allowed"] == sorted(OPEN) and told["left_out"]["WikiAnswers"] == "unstated (research)"
    (task,) = [task for task in manifest["tasks"] if task["task"] == closed.stem]
    assert task["got"] == 0 and set(task["dropped"]) == {"licence"}  # type: ignore[call-overload]
    assert list(verify(out)) == []
    assert main(["build", *places, "--licences", "mit", "--sources", "NQ"]) == 2
    said = "medi: --sources NQ: --licences does not allow 'CC BY-SA 3.0'; leave one of them out\n"
    assert capsys.readouterr().err == said
