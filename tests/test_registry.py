"""Names, what an unknown one is answered with, and things that come from other packages and files."""

import hashlib
import pickle
from importlib.metadata import EntryPoint

import pytest

from iclgd.errors import Refusal, visible
from iclgd.lab import LABS
from iclgd.learners import LEARNERS
from iclgd.metrics import METRICS
from iclgd.nulls import NULLS
from iclgd.registry import PLUGINS, Registry, absolute_name, load_plugin, source_hash, suggest


@pytest.fixture
def things() -> Registry:
    made: Registry = Registry("thing", "iclgd things", "iclgd.things")
    made.add("alpha", 1)
    return made


def points(registry: Registry, **values: str) -> None:
    """Entry points as another package would have registered them."""
    registry.__dict__["_points"] = {name: [EntryPoint(name, value, "g")] for name, value in values.items()}


def test_an_unknown_name_is_answered_with_the_nearest_and_where_all_are_listed(things):
    with pytest.raises(Refusal, match=r'no thing "alhpa"\. Did you mean alpha\? `iclgd things` lists all\.'):
        things["alhpa"]
    assert things["alpha"] == 1


def test_nothing_is_suggested_where_nothing_is_near():
    assert suggest("zzzzzz", ["alpha", "beta"]) == ""


def test_two_things_cannot_have_one_name(things):
    with pytest.raises(ValueError, match="two things are called 'alpha'"):
        things.add("alpha", 2)


def test_an_address_is_imported_when_it_is_asked_for(things):
    things.add("dumps", "json:dumps", "writes JSON")
    assert things.summary("dumps") == "writes JSON"
    assert things["dumps"]([1]) == "[1]"


def test_an_entry_point_is_known_and_loaded_by_name(things):
    points(things, beta="math:tau")
    assert list(things) == ["alpha", "beta"]
    assert "beta" in things
    assert things["beta"] == pytest.approx(6.283, abs=1e-3)


def test_a_name_of_this_package_cannot_be_taken_by_another(things):
    points(things, alpha="math:tau")
    assert things["alpha"] == 1
    assert list(things) == ["alpha"]


def test_two_packages_with_one_name_are_both_named(things):
    things.__dict__["_points"] = {"beta": [EntryPoint("beta", "math:tau", "g"), EntryPoint("beta", "math:pi", "g")]}
    with pytest.raises(Refusal, match='several packages have a thing "beta": math:tau, math:pi'):
        things["beta"]


def test_an_entry_point_that_cannot_be_loaded_says_whose_it_is(things):
    points(things, beta="no_such_module:x")
    with pytest.raises(Refusal, match="the thing beta of no_such_module:x cannot be loaded: ModuleNotFoundError"):
        things["beta"]


def test_a_registry_and_what_holds_it_go_to_another_process():
    assert pickle.loads(pickle.dumps(LEARNERS)) is LEARNERS
    from iclgd.labs.compare.spec import CompareSpec

    cell = CompareSpec().cells()[1]
    assert pickle.loads(pickle.dumps(cell)) == cell


def test_the_labs_are_known_to_whoever_looks():
    assert {"compare", "trace"} <= set(LABS)


# files of the user's


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("class Noise:\n    'Mine.'\n\nVALUE = 3\n")
    yield path
    PLUGINS.pop(str(path), None)


def test_a_file_is_imported_once_and_its_attributes_are_things(things, mine):
    found = things[f"{mine}:Noise"]
    assert found is things[f"{mine}:Noise"]
    assert found.__doc__ == "Mine."


def test_a_file_that_changed_after_it_was_imported_is_refused(things, mine):
    """What ran would be the old code, under a key that has a hash of the new."""
    things[f"{mine}:VALUE"]
    mine.write_text(mine.read_text().replace("3", "4"))
    with pytest.raises(Refusal, match=r"mine\.py was changed after it was imported: start Python anew\."):
        things[f"{mine}:VALUE"]


def test_an_attribute_that_a_file_does_not_have_is_answered_with_the_nearest(things, mine):
    with pytest.raises(Refusal, match=r'mine\.py has no thing "Noize": name one that it has\. Did you mean Noise\?'):
        things[f"{mine}:Noize"]


@pytest.mark.parametrize(
    "text, complaint",
    [
        (None, "cannot be read: it must be a Python file"),
        ("1 / 0\n", r"cannot be imported \(ZeroDivisionError: division by zero\)"),
        ("def\n", r"cannot be imported \(SyntaxError"),
        ("raise SystemExit(3)\n", r"cannot be imported \(SystemExit: 3\)"),
    ],
)
def test_a_file_that_cannot_be_imported_is_named_in_a_sentence(tmp_path, text, complaint):
    path = tmp_path / "wrong.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(Refusal, match=complaint) as refusal:
        load_plugin(str(path))
    assert "wrong.py" in str(refusal.value)
    assert str(path) not in PLUGINS


@pytest.mark.parametrize("name", ["learner", "metric", "null"])
def test_a_thing_of_another_kind_is_refused_before_anything_is_run(tmp_path, name):
    (tmp_path / "odd.py").write_text("class Odd: pass\nthree = 3\n")
    registry = {"learner": LEARNERS, "metric": METRICS, "null": NULLS}[name]
    for attribute in ("Odd", "three"):
        with pytest.raises(Refusal, match=f"odd.py:{attribute} is not a {name}: it has no "):
            registry[f"{tmp_path / 'odd.py'}:{attribute}"]


def test_a_plugin_without_a_name_is_asked_for_one():
    with pytest.raises(Refusal, match="`plugin` needs the name of a Python file"):
        load_plugin("")


def test_a_plugin_that_takes_a_name_that_is_taken_is_refused(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("from iclgd.learners import LEARNERS\nLEARNERS.add('gd', object)\n")
    with pytest.raises(Refusal, match="two learners are called 'gd'"):
        load_plugin(str(path))


def test_the_name_of_a_file_means_the_same_in_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert absolute_name("mine.py:Noise:scale=2") == f"{tmp_path}/mine.py:Noise:scale=2"
    assert absolute_name("gd:rate=1") == "gd:rate=1"


# what enters a key


def test_a_thing_of_ours_is_keyed_by_name_and_version():
    assert LEARNERS.identity("gd").startswith("gd")
    assert METRICS.identity("SimAOU") == f"SimAOU@{METRICS['SimAOU'].version}"


def test_a_strangers_thing_is_keyed_by_its_source_too(things, mine):
    digest = hashlib.sha256(mine.read_bytes()).hexdigest()[:16]
    assert things.identity(f"{mine}:Noise") == f"Noise@{digest}"
    things.add("noise", things[f"{mine}:Noise"])  # as a plugin registers it
    assert things.identity("noise") == f"noise@{digest}"
    mine.write_text(mine.read_text() + "# changed\n")
    assert things.identity("noise") != f"noise@{digest}"


def test_a_metric_made_from_a_function_is_keyed_by_the_functions_file():
    from iclgd.metrics.compared import aou, metric

    assert source_hash(aou) is None
    assert source_hash(metric("mine")(lambda seen: seen)) is not None


def test_control_characters_are_spelled_out():
    assert visible("a\x1b[31mb\u202ec\nd é") == "a\\x1b[31mb\\u202ec\nd é"
