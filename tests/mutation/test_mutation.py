"""The count of mutants: what is drawn, what is left out, and which tests are asked."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mutation import early, judged
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


def test_the_equivalents_that_are_named_are_read():
    why = reasons(Path(__file__).parents[2])
    assert why(Mutant("a.py", 1, "zip(a, strict=True)", "zip(a, strict=False)", ""))


def mutant_of(file: str, name: str = "") -> Mutant:
    return Mutant(file, 1, "", name, "")


def test_groups_change_no_file_twice():
    mutants = [mutant_of(file, str(i)) for i, file in enumerate("aabaca")]
    groups = list(judged.one_a_file(mutants))
    assert sorted(m.becomes for group in groups for m in group) == list("012345")
    assert [sorted(m.file for m in group) for group in groups] == [["a", "b", "c"], ["a"], ["a"], ["a"]]


def test_the_first_tests_are_those_that_take_no_longer_together_than_they_may():
    tests = {name: {"seconds": seconds} for name, seconds in {"a": 1.0, "b": 7.0, "c": 7.5}.items()}
    assert judged.in_two(["a", "b", "c"], tests) == (["a", "b"], ["c"])
    assert judged.in_two(["c"], tests) == (["c"], [])


def test_what_survives_the_first_tests_meets_the_rest_together_and_is_halved_where_one_of_them_notices(monkeypatch):
    tests = {"quick": {"seconds": 1.0}, "slow": {"seconds": 60.0}}
    mutants = [mutant_of(file, name) for file, name in zip("abcda", ("no", "slow", "quick", "no", "no"), strict=True)]
    asked = []

    def judge(some, order, _tests, _tree):
        asked.append(("".join(one.file for one in some), *order))
        return some, "killed" if {one.becomes for one in some} & set(order) else "survived"

    monkeypatch.setattr(judged, "tests_of", lambda *_: ["quick", "slow"])
    monkeypatch.setattr(judged, "judged", judge)
    monkeypatch.setattr(judged, "in_parallel", lambda jobs, _copies: jobs)
    monkeypatch.setattr(judged, "control", lambda order, *_: asked.append(("nothing", *order)))
    found = [(one.file, one.becomes, fate) for one, fate in judged.fates(mutants, tests, Path(), [])]
    assert sorted(found) == [
        ("a", "no", "survived"), ("a", "no", "survived"), ("b", "slow", "killed"), ("c", "quick", "killed"),
        ("d", "no", "survived"),
    ]  # fmt: skip
    assert asked[:5] == [(file, "quick") for file in "abcda"]
    assert asked[5:] == [("abd", "slow"), ("a", "slow"), ("a", "slow"), ("bd", "slow"), ("b", "slow"), ("d", "slow"),
                         ("nothing", "slow")]  # fmt: skip


def test_what_is_imported_before_children_are_made_rests_on_nothing_that_is_changed(tmp_path):
    files = {
        "__init__": "",
        "left": "def use():\n    import iclgd.changed",  # later, in a child
        "changed": "from iclgd.left import use",
        "right": "try:\n    from iclgd import changed\nfinally:\n    pass",
        "far": "import iclgd.right",
        "room/__init__": "import iclgd.far",
        "room/inside": "",
        "labs/__init__": "",
        "labs/free": "",
    }
    for name, text in files.items():
        (tmp_path / "src/iclgd" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"src/iclgd/{name}.py").write_text(text, encoding="utf-8")
    found = early.apart_from(tmp_path / "src/iclgd", ["src/iclgd/changed.py"])
    assert found == ["iclgd", "iclgd.left"]
    assert early.apart_from(tmp_path / "src/iclgd", ["src/iclgd/far.py"]) == [
        "iclgd",
        "iclgd.changed",
        "iclgd.left",
        "iclgd.right",
    ]


LOOPS = """
def test_quick():
    assert True


def test_endless():
    while True:
        pass
"""


@pytest.mark.parametrize("asked, code", [(["test_quick"], 0), (["test_quick", "test_endless"], 71)])
def test_a_test_that_runs_for_ever_is_ended_and_said_to_be_late(tmp_path, asked, code):
    (tmp_path / "test_it.py").write_text(LOOPS, encoding="utf-8")
    chosen = [f"test_it.py::{name}" for name in asked]
    run = (
        "import sys; from mutation.watched import Chosen; import pytest\n"
        f"chosen = Chosen({chosen}, {{'test_it.py::test_quick', 'test_it.py::test_endless'}}, lambda name: 0.5)\n"
        "args = ['-q', '-x', '-p', 'pytest_timeout', '-p', 'no:cacheprovider', 'test_it.py']\n"
        "sys.exit(int(pytest.main(args, plugins=[chosen])))"
    )
    alone = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1]), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    assert subprocess.run([sys.executable, "-c", run], cwd=tmp_path, env=alone, check=False).returncode == code


def test_a_test_may_take_as_long_as_the_slowest_of_its_file_which_may_have_made_its_fixture():
    tests = {name: {"seconds": seconds} for name, seconds in {"a.py::one": 0.1, "a.py::two": 4.0, "b.py::x": 9}.items()}
    assert judged.may_take(tests, "a.py::one") == judged.ALONE + judged.SLOWER * 4.0
    assert judged.may_take(tests, "c.py::new") == judged.ALONE
