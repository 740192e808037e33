"""Numbers in the README and the documentation, written from the records of finished studies.

python docs/fill.py                              write every block anew (`make docs-numbers`)
python docs/fill.py --check                      say which blocks are not what their record gives
python docs/fill.py keep FOLDER NAME [FIGURE …]  keep a finished study's record, and figures of it, under a name

A block is a comment that asks, what the record answers, and a comment `<!-- end -->`. It may ask for
<!-- fill demo table "Training" columns="‖ΔW‖" rows="gd 0.001; lcgd 0.001" digits=2 -->
<!-- fill demo number "Training" row="gd 0.001" column="‖ΔW‖" digits=3g -->
<!-- fill demo figure layers-prompt -->, or `answer`, `what` (was run), `command`, `version` (of the lab that ran it)
<!-- fill ledger claims -->, `counts`, `state SECTION`, `table PAPER`, `scorecard`: of the claims' kept verdicts

Numbers are written as on the study's page, unless `digits=2` (after the point) or `digits=3g` (significant) is said.
"""

import hashlib
import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from iclgd.claims.pages import answered as ledger
from iclgd.errors import Refusal
from iclgd.lab import LABS
from iclgd.report.numbers import Number, Size
from iclgd.report.page import Table
from iclgd.spec import read_yaml
from iclgd.study import RECORD, SPEC, repeat_line

ROOT, DATA = Path(__file__).resolve().parents[1], "docs/results/data"
BLOCK = re.compile(r"<!-- fill (.*?) -->(.*?)<!-- end -->", re.DOTALL)
OPTION = re.compile(r"(columns|rows|column|row|digits)=(.*)")
PATHS = re.compile(r"(?<![\w.:/])/[\w.-]+/[\w.-]+|[A-Za-z]:\\\\")  # of somebody's machine
LEDGER = "ledger"  # instead of a record's name: the claims
ABSENT = "not measured yet"  # a block whose record is not there


def keep(root: Path, folder: Path, name: str, figures: list[str]) -> None:
    """What a study's folder says, to six digits and without its machine's paths; figures with their hashes.

    Of its sections those that pages take tables and numbers from: a study may have megabytes. Of a study that no page
    speaks of yet all are kept, so that one can be written; kept again, the record has what the page shows.
    """
    files = [RECORD, SPEC, *(f"{figure}.svg" for figure in figures)]
    if lost := [file for file in files if not (folder / file).is_file()]:
        raise Refusal(f"{folder} has no {lost[0]}: name a study's folder, and figures that are in it.")
    found = json.loads((folder / RECORD).read_text(encoding="utf-8"), parse_float=lambda x: float(f"{float(x):.6g}"))
    asked = read_yaml(folder / SPEC, "spec")
    spec = LABS[found["lab"]].spec.of({**asked, "data": "DIR"} if asked.get("data") else asked)
    record = {part: found[part] for part in ("lab", "title", "what", "answer")}
    record["version"] = LABS[found["lab"]].version
    titles = asked_for(root, name)
    record["sections"] = [one for one in found["sections"] if titles is None or one["title"] in titles]
    record["command"] = repeat_line(found["lab"], spec, None)
    record["figures"] = {figure: _hash(folder / f"{figure}.svg") for figure in figures}
    text = json.dumps(record, ensure_ascii=False).replace('{"title"', '\n{"title"') + "\n"  # a line a section
    if path := PATHS.search(text):
        raise Refusal(f'the record would hold "{path[0]}", a path of this machine: name things, not their folders.')
    (root / DATA).mkdir(parents=True, exist_ok=True)
    (root / DATA / f"{name}.json").write_text(text, encoding="utf-8")
    for figure in figures:
        (root / f"docs/figures/{name}-{figure}.svg").write_bytes((folder / f"{figure}.svg").read_bytes())


def asked_for(root: Path, name: str) -> set[str] | None:
    """Titles of the sections that blocks take from a record; None where no block speaks of it yet."""
    words = [shlex.split(block[1]) for page in pages(root) for block in BLOCK.finditer(page.read_text("utf-8"))]
    asked = [block[1:] for block in words if block[0] == name]
    tables = [block[1:] for block in asked if block[0] in ("table", "number")]
    return {" ".join(word for word in title if not OPTION.fullmatch(word)) for title in tables} if asked else None


def _hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else "absent"


def answered(record: dict[str, Any], words: list[str]) -> str:
    """What a block asks of a record."""
    options = {match[1]: match[2] for word in words if (match := OPTION.fullmatch(word))}
    form, *title = [word for word in words if not OPTION.fullmatch(word)]
    if form == "version":
        return f"version {record['version']} of the lab {record['lab']} (now {LABS[record['lab']].version})"
    if form in ("answer", "what", "command"):
        return f"\n```\n{record[form]}\n```\n" if form == "command" else str(record[form]).replace("*", r"\*")
    if form == "figure":
        return f"\n![{title[0]}](FIGURES/{title[0]}.svg)\n" if title[0] in record["figures"] else ABSENT
    tables = [section for section in record["sections"] if "table" in section]
    table = tables[_place([section["title"] for section in tables], " ".join(title))]["table"]
    texts = [[_text(entry, options.get("digits")) for entry in row] for row in table["rows"]]
    header, names = table["header"], [line[0].strip() for line in texts]
    if form == "number":
        return texts[_place(names, options["row"])][_place(header, options["column"])]
    if form != "table":
        raise Refusal(f'there is no form "{form}": table, number, figure, answer, what, command, version.')
    asked = {name: [word.strip() for word in options[name].split(";")] for name in options if name != "digits"}
    columns = [0, *(_place(header, c) for c in asked["columns"])] if "columns" in asked else list(range(len(header)))
    if lost := set(asked.get("rows", ())) - set(names):
        raise Refusal(f"no row {' or '.join(sorted(lost))} among {'; '.join(names)}.")
    rows, taken = [], False
    for line, name in zip(texts, names, strict=True):
        taken = name in asked.get("rows", names) or (taken and line[0].startswith("  "))  # with the rows below it
        rows += [line] if taken else []
    shown = Table([header[i] for i in columns], [[line[i] for i in columns] for line in rows]).markdown()
    return f"\n{shown}\n".replace("\n|   ", "\n| – ")  # a row of the row above it


def _place(names: list[str], name: str) -> int:
    if names.count(name) != 1:
        raise Refusal(f'"{name}" is there {names.count(name)} times among {"; ".join(names)}.')
    return names.index(name)


def _text(entry: Any, digits: str | None) -> str:
    if isinstance(entry, str) or (digits is None and "text" in entry):
        return str(entry if isinstance(entry, str) else entry["text"])
    value, low, high = (float("nan") if entry.get(end) is None else entry[end] for end in ("value", "low", "high"))
    kind, digits = (Size if (digits or "3").endswith("g") else Number), (digits or "3").rstrip("g")
    return str(kind(value, low, high, int(digits), entry.get("note", "")))


def filled(root: Path, page: Path) -> str:
    """A page with every block as its record has it."""

    def block(match: re.Match[str]) -> str:
        name, *words = shlex.split(match[1])
        file, figures = root / DATA / f"{name}.json", os.path.relpath(root / "docs/figures", page.parent)
        try:
            if name == LEDGER:
                shown = ledger(words, os.path.relpath(root / "docs/claims.md", page.parent))
            else:
                shown = answered(json.loads(file.read_text(encoding="utf-8")), words) if file.is_file() else ABSENT
        except Refusal as refusal:
            raise Refusal(f"{page.relative_to(root)}, <!-- fill {match[1]} -->: {refusal}") from None
        return f"<!-- fill {match[1]} -->{shown.replace('FIGURES/', f'{figures}/{name}-')}<!-- end -->"

    return BLOCK.sub(block, page.read_text(encoding="utf-8"))


def pages(root: Path) -> list[Path]:
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def faults(root: Path) -> Iterator[str]:
    """Blocks that are not what their record gives; figures that are not those of their study."""
    for page in pages(root):
        texts = page.read_text(encoding="utf-8"), filled(root, page)
        for now, then in zip(*map(BLOCK.finditer, texts), strict=True):
            if now[0] != then[0]:
                yield f"{page.relative_to(root)}: <!-- fill {now[1]} --> is not what its record gives"
    for file in sorted((root / DATA).glob("*.json")):
        for name, known in json.loads(file.read_text(encoding="utf-8"))["figures"].items():
            if _hash(root / f"docs/figures/{file.stem}-{name}.svg") != known:
                yield f"docs/figures/{file.stem}-{name}.svg is not the figure of its study"


def main(*words: str) -> str:
    if words == ("--check",):
        return "\n".join(faults(ROOT))
    if words[:1] == ("keep",) and len(words) > 2 and re.fullmatch(r"[a-z0-9-]+", words[2]):
        keep(ROOT, Path(words[1]), words[2], list(words[3:]))
    elif words:
        return "say --check, or keep FOLDER NAME [FIGURE …], the name in lower-case letters, digits and dashes."
    for page in pages(ROOT):
        page.write_text(filled(ROOT, page), encoding="utf-8")
    return ""  # nothing is wrong


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]) or 0)
    except Refusal as refusal:
        sys.exit(f"fill.py: {refusal}")
