"""Numbers in the README and the documentation are those of stored results, or say where they are from."""

import importlib.util
import json
import re
import shlex
from pathlib import Path

import pytest

import toy
from iclgd.errors import Refusal
from iclgd.lab import LABS
from iclgd.running import Where, run_study

ROOT = Path(__file__).parents[1]
_spec = importlib.util.spec_from_file_location("fill", ROOT / "docs/fill.py")
fill = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fill)


@pytest.fixture
def study(tmp_path):
    return run_study("toy", toy.ToySpec(seeds=3, scale=2), Where(tmp_path / "cells", tmp_path / "out"))


@pytest.fixture
def root(tmp_path, study):
    """A repository with one page and one record."""
    (tmp_path / "docs/figures").mkdir(parents=True)
    (tmp_path / "README.md").touch()
    fill.keep(tmp_path, tmp_path / "out", "mine", [])
    return tmp_path


def page(root, *asked: str) -> str:
    """The README with these blocks, filled."""
    (root / "README.md").write_text("\n".join(f"<!-- fill {one} -->?<!-- end -->" for one in asked), encoding="utf-8")
    text = fill.filled(root, root / "README.md")
    (root / "README.md").write_text(text, encoding="utf-8")
    return text


# this repository


def test_every_block_is_what_its_record_gives():
    assert list(fill.faults(ROOT)) == []


@pytest.mark.parametrize("path", fill.pages(ROOT), ids=lambda path: path.name)
def test_a_table_of_numbers_is_filled_or_says_where_it_is_from(path):
    text = fill.BLOCK.sub("", path.read_text(encoding="utf-8"))
    for table in re.finditer(r"(?P<above>[^\n]*)\n(?P<table>(?:\|[^\n]*\n)+)", text):
        measured = re.search(r"[|\s(]-?\d*\.\d", table["table"])
        assert not measured or table["above"].startswith("<!-- by hand: "), f"{path.name}: {table['table'][:200]}"


NOT_MEASURED = re.compile(
    r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$\n]*\$|above \.05", re.DOTALL
)  # code, equations, a limit
MEASURED = re.compile(r"(?<![\w§.])[-−±]?(\.\d{2,}|\d\.\d{3,})")


@pytest.mark.parametrize("path", fill.pages(ROOT), ids=lambda path: path.name)
def test_prose_has_no_number_of_a_measurement_outside_a_block(path):
    """As this project writes them: .149, 1.204. A line that says "by hand" says from where it is."""
    text = NOT_MEASURED.sub("", fill.BLOCK.sub("", path.read_text(encoding="utf-8")))
    prose = [line for line in text.splitlines() if not line.startswith(("|", "    ")) and "<!-- by hand: " not in line]
    assert not [line[:200] for line in prose if MEASURED.search(line)]


@pytest.mark.parametrize("path", fill.pages(ROOT), ids=lambda path: path.name)
def test_a_page_says_where_its_numbers_are_of_an_older_version_of_a_lab(path):
    asked = [shlex.split(block[1]) for block in fill.BLOCK.finditer(path.read_text(encoding="utf-8"))]
    told = {name for name, *words in asked if words == ["version"]}
    for name in {name for name, *words in asked if name != fill.LEDGER and words not in (["command"], ["version"])}:
        file = ROOT / fill.DATA / f"{name}.json"
        record = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        if "lab" in record and record["version"] != LABS[record["lab"]].version:
            assert name in told, f"{path.name} has to say <!-- fill {name} version -->"


def test_records_hold_no_paths_of_a_machine():
    kept = sorted((ROOT / "docs/results/data").glob("*.json"))
    assert kept
    for path in kept:
        assert not fill.PATHS.search(path.read_text(encoding="utf-8")), path.name


def test_what_pages_link_to_is_there_and_every_figure_is_shown():
    shown = set()
    for path in [*fill.pages(ROOT), ROOT / "CONTRIBUTING.md"]:
        for link in re.findall(r"\]\(([^)#\s]+)\)", path.read_text(encoding="utf-8")):
            if not link.startswith("http"):
                assert (path.parent / link).exists(), f"{path.name} links to {link}"
                shown.add((path.parent / link).resolve())
    assert set((ROOT / "docs/figures").iterdir()) <= shown


# the mechanism


def test_a_block_shows_the_table_number_answer_or_command_of_its_record(study, root):
    mean = study.table("Means").rows[1][1]
    assert f"\n| 1 | {mean} |\n" in page(root, 'mine table "Means"')
    assert page(root, f'mine number "Means" row=1 column={study.table().header[1]}').count(f">{mean}<") == 1
    assert study.answer in page(root, "mine answer")
    assert ">version 1 of the lab toy (now 1)<" in page(root, "mine version")
    assert "\n```\niclgd toy --scale 2.0\n```\n" in page(root, "mine command")


def test_a_table_takes_the_rows_columns_and_digits_that_are_asked_for(study, root):
    header = study.table("Means").header
    text = page(root, f'mine table "Means" rows="2; 0" columns="{header[1]}" digits=1')
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| 0", "| 2"]
    assert re.fullmatch(r"\| 0 \| -?\d*\.\d( \[-?\d*\.\d -?\d*\.\d\])? \|", lines[2])


def test_a_row_brings_the_rows_that_stand_below_it():
    lines = ["icl", "gd", "  null", "lcgd", "  null"]
    table = {"header": ["", "cosine"], "rows": [[name, f".{place}"] for place, name in enumerate(lines)]}
    record = {"sections": [{"title": "Likeness", "table": table}]}
    shown = fill.answered(record, ["table", "Likeness", "rows=icl; lcgd"]).strip().splitlines()[2:]
    assert shown == ["| icl | .0 |", "| lcgd | .3 |", "| – null | .4 |"]


def test_a_number_that_was_changed_by_hand_is_a_fault(root):
    text = page(root, 'mine table "Means"', "mine answer")
    assert list(fill.faults(root)) == []
    (root / "README.md").write_text(re.sub(r"\| 1 \| \S+ ", "| 1 | .999 ", text), encoding="utf-8")
    assert list(fill.faults(root)) == ['README.md: <!-- fill mine table "Means" --> is not what its record gives']


def test_a_record_that_changed_is_a_fault(root):
    page(root, "mine answer")
    record = root / "docs/results/data/mine.json"
    record.write_text(record.read_text().replace("The mean is", "The mean was"), encoding="utf-8")
    assert [fault.split(" -->")[0] for fault in fill.faults(root)] == ["README.md: <!-- fill mine answer"]


def test_a_block_without_its_record_shows_no_number(root):
    text = page(root, "absent answer")
    assert text == "<!-- fill absent answer -->not measured yet<!-- end -->"
    (root / "README.md").write_text(text.replace("not measured yet", "the mean is .3"), encoding="utf-8")
    assert len(list(fill.faults(root))) == 1


@pytest.mark.parametrize(
    "asked",
    ['mine table "Modes"', 'mine number "Means" row=9 column=mean', 'mine table "Means" rows=9', 'mine modes "Means"'],
)
def test_what_a_record_does_not_have_is_refused(root, asked):
    with pytest.raises(Refusal, match="README.md, <!-- fill mine"):
        page(root, asked)


def test_a_record_with_a_path_of_the_machine_is_refused(root):
    written = json.loads((root / "out/study.json").read_text())
    assert str(root) not in (root / "docs/results/data/mine.json").read_text()  # the store's path is left out
    (root / "out/study.json").write_text(json.dumps({**written, "answer": "see /home/somebody/runs"}))
    with pytest.raises(Refusal, match="/home/somebody.*a path of this machine"):
        fill.keep(root, root / "out", "mine", [])


def test_a_record_keeps_the_sections_that_pages_show_and_of_a_study_that_no_page_shows_all(root):
    written = json.loads((root / "out/study.json").read_text())
    more = [{**written["sections"][0], "title": title} for title in ("Modes", "Medians")]
    (root / "out/study.json").write_text(json.dumps({**written, "sections": [*written["sections"], *more]}))

    def kept() -> list[str]:
        fill.keep(root, root / "out", "mine", [])
        record = json.loads((root / "docs/results/data/mine.json").read_text())
        return [section["title"] for section in record["sections"]]

    assert kept() == ["Means", "Modes", "Medians"]
    text = page(root, 'mine number "Medians" row=1 column=mean', 'mine table "Means" rows="1; 2"', "mine answer")
    assert kept() == ["Means", "Medians"]
    assert fill.filled(root, root / "README.md") == text
    page(root, "mine answer")
    assert kept() == []


def test_a_large_record_holds_no_table_that_no_page_shows():
    """`python docs/fill.py keep` leaves them out once a page has its blocks."""
    for path in [path for path in (ROOT / "docs/results/data").glob("*.json") if path.stat().st_size > 100_000]:
        sections = json.loads(path.read_text(encoding="utf-8"))["sections"]
        assert {one["title"] for one in sections if "table" in one} <= (fill.asked_for(ROOT, path.stem) or set()), (
            path.name
        )


def test_a_figure_that_is_not_of_its_study_is_a_fault(root):
    (root / "out/curve.svg").write_text("<svg/>")
    fill.keep(root, root / "out", "mine", ["curve"])
    assert "\n![curve](docs/figures/mine-curve.svg)\n" in page(root, "mine figure curve")
    assert list(fill.faults(root)) == []
    (root / "docs/figures/mine-curve.svg").write_text("<svg></svg>")
    assert list(fill.faults(root)) == ["docs/figures/mine-curve.svg is not the figure of its study"]
    with pytest.raises(Refusal, match=r"has no other\.svg"):
        fill.keep(root, root / "out", "mine", ["other"])


def test_numbers_of_a_record_without_texts_have_three_digits(study, root):
    record = root / "docs/results/data/mine.json"
    record.write_text(re.sub(r', "text": "[^"]*"}', "}", record.read_text()), encoding="utf-8")
    assert f"\n| 1 | {study.table('Means').rows[1][1]} |\n" in page(root, 'mine table "Means"')
