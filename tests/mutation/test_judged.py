"""How mutants are judged: in which order tests are asked, what is imported before, and how long a test may take."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mutation import early, judged
from mutation.mutated import Mutant


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
