"""The count of mutants: what is drawn, what is left out, and which tests are asked."""

from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray", reason="the mutation tool is an extra: pip install iclgd[mutants]")

from mutation.equivalents import reasons
from mutation.mutated import Mutant, changes, drawn
from mutation.watched import function_at

SOURCE = '''"""A module."""

LIMIT = 3


def decorated(function):
    return function


@decorated
def close(a: int | None, b: int) -> bool:
    return a - b < LIMIT
'''


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "one.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "tests/mutation").mkdir(parents=True)
    return tmp_path


def test_a_mutant_is_a_program_that_differs_in_more_than_its_annotations(root):
    found = list(drawn(root, ["one.py"], 0))
    assert len({mutant.source for mutant in found}) == len(found)
    for mutant in found:
        compile(mutant.source, "mutant", "exec")
        assert "int | None" in mutant.source
        assert mutant.source != SOURCE
    pairs = {(mutant.was, mutant.becomes) for mutant in found}
    assert ("return a - b < LIMIT", "return a + b < LIMIT") in pairs
    assert ("return a - b < LIMIT", "return a - b >= LIMIT") in pairs
    assert {becomes.replace(" ", "") for was, becomes in pairs if was == "LIMIT = 3"} == {"LIMIT=4", "LIMIT=2"}


def test_every_place_is_drawn_once_before_any_is_drawn_twice_and_a_seed_decides(root):
    places = {change.start for change in changes(root, "one.py") if change.start[0] != 11}  # the annotation's line
    found = list(drawn(root, ["one.py"], 3))
    first = [mutant.line for mutant in found[: len(places)]]
    assert sorted(first) == sorted(line for line, _ in places)
    assert found == list(drawn(root, ["one.py"], 3))
    assert found != list(drawn(root, ["one.py"], 4))


def test_a_line_belongs_to_its_function_and_a_decorators_line_to_the_module(root):
    file = root / "one.py"
    assert function_at(file, 12, root) == function_at(file, 10, root) == "one.py:10"
    assert function_at(file, 10, root, decorators=False) == function_at(file, 3, root) == "one.py"


def test_equivalents_are_looks_guards_and_what_is_named_with_its_reason(root):
    named = (
        "looks: [linewidth]\nguards: [strict]\nsame:\n- {file: a.py, was: x = 1, becomes: x = 2, why: it is not read}\n"
    )
    (root / "tests/mutation/equivalents.yaml").write_text(named, encoding="utf-8")
    why = reasons(root)

    def of(was: str, becomes: str, source: str = "") -> str:
        return why(Mutant("a.py", 1, was, becomes, source))

    assert of("x = 1", "x = 2") == "it is not read"
    assert of("zip(a, b, strict=True)", "zip(a, b, strict=False)")
    assert not of("zip(a, b, strict=False)", "zip(a, c, strict=False)")
    assert of("plot(y, linewidth=1.5)", "plot(y, linewidth= 2.5)", "import matplotlib")
    assert not of("plot(y, linewidth=1.5)", "plot(y, linewidth= 2.5)", "import torch")
    assert not of("plot(y, x=1.5)", "plot(y, x= 2.5)", "import matplotlib")


def test_the_equivalents_that_are_named_are_read():
    why = reasons(Path(__file__).parents[2])
    assert why(Mutant("a.py", 1, "zip(a, strict=True)", "zip(a, strict=False)", ""))
