"""Bad input of every kind, to every command: exit code 2, one sentence that says what to do, nothing left behind.

The tables are the files of `bad_input`: a command line, and below it the sentence. `…` stands for whatever there is
(names that are known grow in number), HERE for the folder, which `bad_place` fills with everything that can be wrong,
LONG for a name that no system takes.
"""

import os
import re
import shlex
from pathlib import Path

import pytest
from bad_place import bad_place

from said import run

TABLES = Path(__file__).parent / "bad_input"
LONG = "n" * 300
# how a sentence tells what to do: the bounds or the values there are, or a verb
REMEDY = re.compile(
    r"(?<!cannot )\b(takes|must|needs|has to|give|name|lower|raise|leave|use|set|write|put|check|choose|change|add"
    r"|unset|read|quote|convert|export|pack|save|simplify|allow|run|ask|exclude|lists?|It has|There are|Did you mean"
    r"|See|see|install|correct|download)\b"
)


def cases(table: str) -> list[tuple[str, str]]:
    lines = (TABLES / f"{table}.txt").read_text(encoding="utf-8").splitlines()
    return [(command, sentence.strip()) for command, sentence in zip(lines[::2], lines[1::2], strict=True)]


CASES = [(table, *case) for table in ("labs", "files", "others") for case in cases(table)]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return bad_place(tmp_path_factory.mktemp("place"))


@pytest.fixture
def alone(place, tmp_path_factory, monkeypatch):
    """In the folder, with an empty cache and no way to the hub."""
    monkeypatch.chdir(place)
    monkeypatch.setenv("ICLGD_CACHE", str(tmp_path_factory.mktemp("cache")))
    for name in ("ICLGD_DATA", "ICLGD_STORE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("iclgd.report.terminal.EVERY", 60.0)  # no line of progress, however busy the machine is
    return place


def everything(folder: Path) -> list[tuple[str, int, float]]:
    """Every file with its size and time; folders have times of their own that a file built aside changes."""
    found = []
    for path in sorted(folder.rglob("*")):
        state = path.lstat()
        found.append((str(path), *((0, 0.0) if path.is_dir() else (state.st_size, state.st_mtime))))
    return found


@pytest.mark.parametrize("table, command, sentence", CASES, ids=[command for _, command, _ in CASES])
def test_bad_input_is_answered_with_one_sentence_and_leaves_nothing(capsys, alone, table, command, sentence):
    if "pipe." in command and not hasattr(os, "mkfifo"):
        pytest.skip("there are no pipes in folders here")
    before = everything(alone)
    code, out, err = run(capsys, *shlex.split(command.replace("LONG", LONG)))
    assert (code, out, err.count("\n")) == (2, "", 1), err
    pattern = ".*".join(map(re.escape, sentence.replace("HERE", str(alone)).split("…")))
    assert re.fullmatch(f"iclgd: {pattern}\n", err)
    assert REMEDY.search(err)
    assert everything(alone) == before


def test_there_are_hundreds_of_kinds_and_none_twice():
    commands = [command for _, command, _ in CASES]
    assert len(set(commands)) == len(commands) >= 200


def test_every_command_is_in_the_tables():
    from iclgd.cli import OTHERS
    from iclgd.lab import LABS

    commands = [command for _, command, _ in CASES]
    own = [name for name in LABS if LABS[name].spec.__module__.startswith("iclgd.")]
    for name in [*own, *OTHERS]:
        if name != "claims run":  # the ledger's own study, whose command is among the claims'
            assert any(command.startswith(f"{name} ") for command in commands), name


ODD = (
    [],
    {},
    [[]],
    "",
    None,
    True,
    -1,
    1.5,
    float("nan"),
    10**30,
    "\0",
    "nothing known",
    [1, {}],
    {"name": 3},
    object(),
)
PYDANTIC = re.compile(
    r"Input should|should have|valid (string|integer|number|dictionary|tuple|list)|validation|Extra inputs"
)


def test_what_does_not_fit_a_field_is_never_told_in_the_words_of_a_library(alone):
    """Every field of every lab, given what it cannot be."""
    from iclgd.errors import Refusal
    from iclgd.lab import LABS

    told = []
    for name in LABS:
        for field in LABS[name].spec.model_fields:
            for odd in ODD:
                try:
                    LABS[name].spec.of({field: odd})
                except Refusal as refusal:
                    told.append(str(refusal))
    assert len(told) > 1000
    assert [sentence for sentence in told if PYDANTIC.search(sentence) or "\n" in sentence] == []
