"""The count of mutants: what is drawn, what is left out, and which tests are asked."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from mutation.equivalents import reasons
from mutation.mutated import Mutant, changes, drawn, found_again
from mutation.record import NOTHING, again, first, row, together, written
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


def test_an_exception_with_a_dotted_name_is_left_as_it_is(root):
    text = "import json\ntry:\n    pass\nexcept (OSError, json.JSONDecodeError):\n    pass\n"
    (root / "two.py").write_text(text, encoding="utf-8")
    exchanged = [mutant.becomes for mutant in drawn(root, ["two.py"], 0) if "CosmicRay" in mutant.becomes]
    assert exchanged == ["except (CosmicRayTestingException, json.JSONDecodeError):"]


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
        "looks: [linewidth]\nguards: [strict]\ndraws: [default_rng]\nsizes: [DIM, queries]\nsame:\n"
        "- {file: a.py, was: x = 1, becomes: x = 2, why: it is not read}\n"
    )
    (root / "tests/mutation/equivalents.yaml").write_text(named, encoding="utf-8")
    why = reasons(root)

    def of(was: str, becomes: str, source: str = "") -> str:
        return why(Mutant("a.py", 1, was, becomes, source))

    assert of("x = 1", "x = 2") == "it is not read"
    assert of("zip(a, b, strict=True)", "zip(a, b, strict=False)")
    assert not of("zip(a, b, strict=False)", "zip(a, c, strict=False)")
    assert of("plot(y, linewidth=1.5)", "plot(y, linewidth= 2.5)", "import matplotlib")
    assert of('"axes.linewidth": 0.8,', '"axes.linewidth": 1.8,', "import matplotlib")
    assert not of("plot(y, linewidth=1.5)", "plot(y, linewidth= 2.5)", "import torch")
    assert not of("plot(y, x=1.5)", "plot(y, x= 2.5)", "import matplotlib")
    assert of("STYLES = ((0, (1, 1.5)), (0, (4, 2)))", "STYLES = ((0, (1, 0.5)), (0, (4, 2)))", "import matplotlib")
    assert of("\n\n@styled", "\n")
    assert not of("\n\n@property", "\n")


def test_an_identitys_draws_and_sizes_are_equivalent_in_identities_alone(root):
    named = "looks: [linewidth]\nguards: [strict]\ndraws: [default_rng]\nsizes: [DIM, queries]\nsame: []\n"
    (root / "tests/mutation/equivalents.yaml").write_text(named, encoding="utf-8")
    why = reasons(root)

    def of(was: str, becomes: str, file: str = "metrics/identities.py") -> str:
        return why(Mutant(file, 1, was, becomes, ""))

    for was, becomes in (
        ("default_rng([seed, 42])", "default_rng([seed, 41])"),
        ("default_rng([seed, 42])", "default_rng([not seed, 42])"),
        ("DIM, queries = 40, 20", "DIM, queries = 40, 21"),
        ("def f(queries: int = 50):", "def f(queries: int = 49):"),
    ):
        assert of(was, becomes)
        assert not of(was, becomes, "metrics/likeness.py")
    assert not of("default_rng(3) - 2", "default_rng(3) + 2")
    assert not of("rate = 2", "rate = 3")


TESTS = """
import pytest
from functools import cached_property
from pathlib import Path
from package import one
from package.one import close


class Study:
    @cached_property
    def page(self):
        return close(1, 2)


@pytest.fixture(scope="module")
def study():
    return Study()


@pytest.fixture(scope="module")
def made():
    return close(1, 2)


def test_alone():
    page = Path(one.__file__).with_name("page.html")  # a template, compiled to functions that no source has
    found = {}
    exec(compile("def shown():\\n    return 1", str(page), "exec"), found)
    assert found["shown"]() == 1


def test_first(study):
    assert study.page


def test_second(study):
    assert study.page


def test_third(made):
    assert made
"""


def test_what_a_lasting_fixture_enters_or_keeps_counts_for_the_tests_that_share_it(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package/one.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "package/page.html").write_text("{% if one %}", encoding="utf-8")
    (tmp_path / "test_one.py").write_text(TESTS, encoding="utf-8")
    code = (
        "import json, sys; from pathlib import Path; from mutation.watched import Watch; import pytest\n"
        "watch = Watch(Path.cwd() / 'package'); watch.start()\n"
        "pytest.main(['-q', '-p', 'no:cacheprovider', 'test_one.py'], plugins=[watch])\n"
        "Path('said.json').write_text(json.dumps(watch.tests))"
    )
    paths = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[1])])
    alone = os.environ | {"PYTHONPATH": paths, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=alone, check=True)
    tests = json.loads((tmp_path / "said.json").read_text())
    found = {
        name.partition("::")[2]: ["one.py:10" in test[part] for part in ("functions", "later")]
        for name, test in tests.items()
    }
    assert found == {
        "test_alone": [False, False],
        "test_first": [True, False],
        "test_second": [False, True],
        "test_third": [True, False],
    }


def test_a_mutant_of_a_record_is_found_again_where_its_line_went(root):
    mutant = next(one for one in drawn(root, ["one.py"], 0) if one.line == 12)
    (root / "one.py").write_text(SOURCE.replace("LIMIT = 3", "LIMIT = 3\nOTHER = 4"), encoding="utf-8")
    said = {"file": "one.py", "line": 12, "was": mutant.was, "becomes": mutant.becomes}
    again = found_again(root, said)
    assert again is not None
    assert (again.name, again.line) == (mutant.name, 13)
    assert found_again(root, said | {"was": "return 7"}) is None
    assert found_again(root, said | {"file": "two.py"}) is None


def test_a_row_has_the_share_that_is_noticed_and_the_share_that_was_at_first(tmp_path):
    found = {"mutants": 10, "killed": 6, "timeout": 1, "survived": 1, "equivalent": [{}, {}], "survivors": []}
    assert list(row(found)) == [10, 6, 1, 1, 2, "88%", "–"]
    assert first(found) == {"noticed": 7, "of": 8}
    early = {"first": {"noticed": 6, "of": 10}}
    assert list(row(found | early))[-1] == "60%"
    assert list(row(found | again(early, equivalent=2)))[-1] == "75%"
    assert list(row(found | again({}, equivalent=2)))[-1] == "–"
    assert list(row(found | {"killed": 0, "timeout": 0, "survived": 0}))[-2] == "–"
    twice = together(together(NOTHING, found), found)
    assert list(row(twice)) == [20, 12, 2, 2, 4, "88%", "–"]
    order = ("metrics", "learners", "nulls")
    written(tmp_path / "found.json", {"nulls": found, "metrics/crossed.py": found}, order)
    written(tmp_path / "found.json", {"metrics": found | {"survived": 0}}, order)
    table = json.loads((tmp_path / "found.json").read_text())["sections"][0]["table"]
    assert [line[0] for line in table["rows"]] == ["metrics", "nulls", "metrics/crossed.py"]
    assert dict(zip(table["header"], table["rows"][0], strict=True))["noticed"] == "100%"


def test_the_equivalents_that_are_named_are_read_and_are_of_code_that_is_there():
    tree = Path(__file__).parents[2]
    assert reasons(tree)(Mutant("a.py", 1, "zip(a, strict=True)", "zip(a, strict=False)", ""))
    named = yaml.safe_load((tree / "tests/mutation/equivalents.yaml").read_text(encoding="utf-8"))["same"]
    gone = [
        f"{one['file']}: {line}"
        for one in named
        for line in one["was"].splitlines()
        if line.strip() not in (tree / one["file"]).read_text(encoding="utf-8")
    ]
    assert gone == []
