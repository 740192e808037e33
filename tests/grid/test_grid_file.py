"""A study file: parts, defaults, grids, exclusions; what does not fit is refused with its line and field."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

import toy  # noqa: F401  registers the lab
from iclgd.errors import Refusal
from iclgd.grid.file import read_grid
from iclgd.grid.plan import jobs_of
from iclgd.grid.schema import schema
from said import run
from shared_data import FOLDER, needs_data

STUDIES = sorted((Path(__file__).parents[2] / "studies").glob("*.yaml"))


def grid(tmp_path, text: str):
    (tmp_path / "file.yaml").write_text(text)
    return read_grid(tmp_path / "file.yaml")


def test_every_combination_of_a_grid_is_a_part_with_the_defaults_that_its_lab_has(tmp_path):
    found = grid(
        tmp_path,
        "name: mine\ndefaults: {seeds: 2, scale: 3}\n"
        "parts:\n  a: {lab: toy, k: 5, grid: {scale: [1, 2], loud: [true, false]}}\n  b: {lab: toy, seeds: 4}\n",
    )
    assert found.name == "mine"
    names = ["a-scale=1-loud=True", "a-scale=1-loud=False", "a-scale=2-loud=True", "a-scale=2-loud=False", "b"]
    assert [part.name for part in found.parts] == names
    first, last = found.parts[0].spec, found.parts[-1].spec
    assert (first.scale, first.loud, first.k, first.seeds) == (1, True, 5, (0, 1))
    assert (last.scale, last.k, len(last.seeds)) == (3, 4, 4)


def test_a_list_alone_is_a_study_named_after_its_file_and_parts_of_one_name_are_numbered(tmp_path):
    found = grid(tmp_path, "- {lab: toy}\n- {lab: toy, k: 2}\n")
    assert (found.name, [part.name for part in found.parts]) == ("file", ["toy", "toy-2"])


def test_no_two_parts_have_one_name_however_alike_they_are_written_and_their_own_file_names_them_the_same(tmp_path):
    long = "n" * 99
    names = ["x y", "x?y", "x_y-2", "x y-2", long, f"{long}?", f"{long}!", f"{long}-2", "..", "."]
    found = grid(tmp_path, yaml.safe_dump({"parts": {name: {"lab": "toy"} for name in names}}, sort_keys=False))
    folders = [part.name for part in found.parts]
    assert folders[:4] == ["x_y", "x_y-2", "x_y-2-2", "x_y-2-3"]
    assert len(set(folders)) == len(names)
    assert [part.name for part in grid(tmp_path, found.text()).parts] == folders


def test_a_default_that_labs_understand_differently_is_told_for_the_parts_that_take_it(tmp_path):
    parts = "parts: {a: {lab: linear train}, b: {lab: linear optimum}, c: {lab: linear optimum, steps: 5}}\n"
    (said,) = grid(tmp_path, f"defaults: {{steps: 20, k: 5}}\n{parts}").notes
    assert said == (
        'the default "steps" has more than one meaning: "Training steps" in a (linear train); '
        '"The most steps to tune GD and GD++ for" in b (linear optimum).'
    )
    assert grid(tmp_path, f"defaults: {{steps: 20}}\n{parts.replace('b: {', 'b: {grid: {steps: [5]}, ')}").notes == ()


def test_draws_and_demonstrations_are_the_same_thing_in_every_lab(tmp_path):
    labs = ("toy", "linear train", "linear depth", "identities", "languages run", "compare")
    parts = "".join(f"- {{lab: {lab}}}\n  " for lab in labs)
    assert grid(tmp_path, f"defaults: {{seeds: 2, k: 12}}\nparts:\n  {parts}").notes == ()


def test_exclusions_leave_out_what_fits_them_as_numbers_or_as_texts(tmp_path):
    text = "parts: {a: {lab: toy, grid: {k: [1, 2], scale: [1e-3, 1]}, exclude: [{k: 2, scale: 0.001}]}}\n"
    assert [part.name for part in grid(tmp_path, text).parts] == ["a-k=1-scale=1e-3", "a-k=1-scale=1", "a-k=2-scale=1"]
    text = "- {lab: compare, grid: {rates: [[1e-3], [0.1]]}, exclude: [{rates: [0.001]}]}\n"
    assert [part.spec.rates for part in grid(tmp_path, text).parts] == [(0.1,)]


def test_the_file_written_with_every_field_is_the_same_study(tmp_path):
    found = grid(tmp_path, "parts: {a: {lab: toy, grid: {k: [1, 2]}}}\n")
    again = grid(tmp_path, found.text())
    assert again.key == found.key
    assert [part.name for part in again.parts] == ["a-k=1", "a-k=2"]


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("parts:\n  a:\n    lab: toy\n    sclae: 2\n", 'line 4: there is no field "sclae". Did you mean scale'),
        ("parts:\n  a:\n    lab: toy\n    k: 0\n", 'line 4: "k" must be at least 1, not 0.'),
        ("parts:\n  a:\n    lab: toy\n    grid:\n      k: [1, 500]\n", 'line 5: "k" must be at most 100, not 500.'),
        ("defaults:\n  k: many\nparts:\n  a: {lab: toy}\n", 'line 2: "k" takes a whole number, not "many".'),
        ("defaults: {kk: 1}\nparts:\n  a: {lab: toy}\n", 'line 1: no part\'s lab has a field "kk": leave it out.'),
        ("parts:\n  a:\n    lab: toys\n", 'line 3: no lab "toys". Did you mean toy'),
        ("parts:\n  a:\n    k: 3\n", 'line 2: a part must be a mapping with "lab"'),
        ("parts:\n  a:\n    lab: toy\n    k: 1\n    k: 2\n", 'line 5: "k" is said twice: leave one out.'),
        ("parts:\n  a:\n    lab: toy\n    grid: {k: 3}\n", 'line 4: "k" of a grid needs a list of values.'),
        ("parts:\n  a:\n    lab: toy\n    grid: {k: []}\n", 'line 4: "k" of a grid needs a list of values.'),
        (
            "parts:\n  a:\n    lab: toy\n    exclude:\n    - {k: 9}\n",
            "line 5: this exclusion excludes nothing: leave it out.",
        ),
        ("parts:\n  a:\n    lab: toy\n    k: 9\n    exclude: [{k: 9}]\n", "line 5: every combination of the grid is"),
        ("parts:\n  a:\n    lab: toy\n    exclude: [{kk: 9}]\n", 'line 4: there is no field "kk".'),
        ("parts:\n  a:\n    lab: toy\n    plugin: 5\n", 'line 4: "plugin" takes a list of Python files, not 5.'),
        (
            "defaults: {plugin: {x: 1}}\nparts:\n  a: {lab: toy}\n",
            'line 1: "plugin" takes a list of Python files, not {',
        ),
        ("parts:\n  a: {lab: toy, k: yes}\n", 'line 2: "k" takes a whole number, not True.'),
        ("parts:\n  a: {lab: toy, scale: on}\n", 'line 2: "scale" takes a finite number, not True.'),
        ("parts:\n  a: {lab: toy, seeds: true}\n", 'line 2: "seeds" takes a list of values, not True.'),
        ("parts:\n  a: {lab: toy, seeds: {1: 2}}\n", 'line 2: "seeds" takes a list of values, not {1: 2}.'),
        ("about: [1, 2]\nparts:\n  a: {lab: toy}\n", 'line 1: "about" takes a text, not [1, 2]: write it in quotes.'),
        ("about: {x: 1}\nparts:\n  a: {lab: toy}\n", 'line 1: "about" takes a text, not {'),
        ("parts:\n  a: {lab: toy}\n  yes: {lab: toy, k: 1}\n", "line 3: YAML reads the name of this part as True, no"),
        ("parts:\n  a: {lab: toy}\n  2024: {lab: toy, k: 1}\n", "line 3: YAML reads the name of this part as 2024, no"),
        (
            "parts:\n  a:\n    lab: toy\n    k: 3\n    grid:\n      k: [4, 5]\n",
            'line 6: "k" is said in the part and in its grid: leave one out.',
        ),
        (
            "parts:\n  a:\n    lab: toy\n    grid: {k: [3, 3]}\n",
            'line 4: this grid makes "a-k=3" twice: leave one out.',
        ),
        ("- lab: toy\n  grid: {seeds: [2, [0, 1]]}\n", 'line 2: this grid makes "toy-seeds=0,1" twice'),
        ("parts:\n  a: {lab: toy, grid: [[1]]}\n", "line 2: a grid must be a mapping"),
        ("part: {}\n", 'line 1: a study file has no "part". Did you mean parts?'),
        ("name: ../x\nparts:\n  a: {lab: toy}\n", 'line 1: "../x" cannot name a folder'),
        ("name: x\n", "line 1: a study needs parts"),
        ("parts: 3\n", "line 1: a study needs parts"),
        ("parts:\n  a: {lab: toy, k: [1\n", "line 3: this is not valid YAML"),
        ("", "is empty"),
        (
            "parts: {a: {lab: toy, grid: {k: [%s], seeds: [%s]}}}" % (("1," * 200,) * 2),
            "this grid has 40,000 combinations; at most 10,000",
        ),
        ("parts: &a\n  b: *a\n", "file.yaml"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_line_and_field(tmp_path, text, sentence):
    with pytest.raises(Refusal) as refused:
        grid(tmp_path, text)
    assert sentence in str(refused.value)
    assert str(tmp_path / "file.yaml") in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_refusal_of_what_does_not_go_together_names_the_line_of_its_field(tmp_path):
    with pytest.raises(Refusal, match=r'line 3: "learners" needs at least one'):
        grid(tmp_path, "- lab: compare\n  k: 2\n  learners: none\n")


# for editors


@pytest.fixture(scope="module")
def checker():
    made = schema()
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(made)


@pytest.mark.parametrize(
    "text",
    [
        "parts: {a: {lab: toy, k: 3, seeds: 5}}",
        "- {lab: compare, learners: 'gd,lcgd', rates: [1.0e-3], seeds: '1,2'}",
        "- {lab: toy, grid: {k: [1, 2]}, exclude: [{k: 2}]}",
        *(path.read_text(encoding="utf-8") for path in STUDIES),
    ],
)
def test_the_schema_takes_what_is_a_study(checker, text):
    assert [error.message for error in checker.iter_errors(yaml.safe_load(text))] == []


FIELDS = {  # of a lab → values that are its, and values that are not
    "toy": {
        "k": ([1, "3", " 4 ", 3.0, "1_0"], [0, 101, -1, 2.5, "abc", "", "1e-3", "nan", None, [], [1], {}, True]),
        "scale": ([1e-3, "1e-3", 2, ".5", "2."], [0, -1, "abc", "", "nan", None, [1.0], {}, False]),
        "seeds": (
            [1, 10_000, "3", "1,2", "5,", [0], ["1", 2]],
            [0, 10_001, -1, 2.5, "a", "", [], [-1], ["a"], {}, True],
        ),
        "loud": ([True, False, "yes", "Off", 0, 1, "t"], ["", "loud", 2, None, [], {}]),
        "plugin": ([[]], [5, True, None, {}, [1]]),
    },
    "linear train": {
        "law": (["uniform"], ["", "uniforms", 1, []]),
        "covariance": ([[], 1, 0.5, "1", "1.5", ["1"], ""], ["a", {}, True]),
        "learners": (["gd", "gd,ridge", ["gd"]], [[1]]),
    },
    "compare": {
        "init": (["random", "random, trained", ["random"]], ["", "randoms", [], ["x"], 1, None]),
        "learners": (["gd", ["gd", {"name": "lcgd"}], {"name": "gd", "rate": 0.1}], [1, [1], {}, None, True]),
        "rates": ([0.1, "1e-3,.1", [0.1, "1e-3"]], ["a", [-1], ["a"], {}, True]),
        "data": (["/tmp", None], [1, []]),
    },
}
VARIANTS = [
    (lab, name, value, ok, place)
    for lab, fields in FIELDS.items()
    for name, (good, bad) in fields.items()
    for ok, values in ((True, good), (False, bad))
    for value in values
    for place in ("part", "grid", "defaults")
    if (name, place) != ("k", "defaults")  # a default fits any lab's field of its name: those of others are larger
]


@pytest.mark.parametrize("lab, name, value, ok, place", VARIANTS, ids=str)
def test_schema_and_reader_take_the_same_values(checker, tmp_path, lab, name, value, ok, place):
    part = {"lab": lab, **{"part": {name: value}, "grid": {"grid": {name: [value]}}, "defaults": {}}[place]}
    data = {**({"defaults": {name: value}} if place == "defaults" else {}), "parts": {"a": part}}
    assert checker.is_valid(data) == ok
    text = yaml.safe_dump(data)
    if ok:
        assert len(grid(tmp_path, text).parts) == 1
    else:
        with pytest.raises(Refusal):
            grid(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "name:\nabout:\ndefaults:\nparts: {a: {lab: toy, grid: , exclude: }}",
        "name: größe+2.5\nparts: {a: {lab: toy, grid: {}, exclude: []}}",
    ],
)
def test_the_schema_takes_names_with_nothing_behind_them_as_reading_does(checker, tmp_path, text):
    assert checker.is_valid(yaml.safe_load(text))
    assert len(grid(tmp_path, text).parts) == 1


@pytest.mark.parametrize(
    "text",
    [
        "parts: {a: {lab: toy, sclae: 3}}",
        "parts: {a: {lab: toys}}",
        "parts: {a: {lab: toy, grid: {k: 2}}}",
        "parts: {a: {lab: toy, grid: {k: []}}}",
        "parts: {a: {lab: toy, grid: {k: [1, 2]}, exclude: [{}]}}",
        "parts: {a: {lab: toy, grid: {k: [1, 2]}, exclude: [{kk: 1}]}}",
        "part: {a: {lab: toy}}",
        "defaults: {kk: 1}\nparts: {a: {lab: toy}}",
        "parts: {}",
        "[]",
        "parts: []",
        *(
            f"name: {name}\nparts: {{a: {{lab: toy}}}}"
            for name in (".a", "a/b", "a b", "'a:b'", "'a[b'", "5", "x" * 101)
        ),
    ],
)
def test_the_schema_refuses_what_reading_would(checker, tmp_path, text):
    assert not checker.is_valid(yaml.safe_load(text))
    with pytest.raises(Refusal):
        grid(tmp_path, text)


def test_the_schema_is_printed_as_json(capsys):
    assert "toy" in json.loads(run(capsys, "study", "schema")[1])["$defs"]


# the studies of this repository


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.name)
def test_the_studies_of_this_repository_are_studies(path):
    assert read_grid(path).name == path.stem


@pytest.fixture(scope="module")
def strong():
    return read_grid(next(path for path in STUDIES if path.name == "strong.yaml"))


def test_the_published_study_has_both_models_every_rate_initialisation_and_null(strong):
    from iclgd.nulls import NULLS

    assert [part.spec.model for part in strong.parts] == ["smollm2-135m", "gemma3-270m"]
    for part in strong.parts:
        spec = part.spec
        assert {choice.name for choice in spec.nulls} == {name for name in NULLS if not name.startswith("/")}
        assert spec.rates == (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
        assert spec.init == ("trained", "random", "embeddings")
        assert (len(spec.seeds), spec.k, len(spec.task)) == (5, 32, 6)


@needs_data
def test_the_published_study_plans(strong, monkeypatch):
    monkeypatch.setenv("ICLGD_DATA", str(FOLDER))
    one = strong.parts[0]
    few = type(strong)("few", (type(one)(one.name, one.lab, one.spec.model_copy(update={"seeds": (0,)})),))
    (_, _, jobs), *_ = jobs_of(few)
    # 3 initialisations × 6 tasks × (prompted + 3 learners × 5 rates + 2 pairs × 5 rates)
    assert len({job.key for job in jobs}) == 3 * 6 * (1 + 15 + 10)
