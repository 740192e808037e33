"""Charts as data: a table's numbers as dots, series by label, many numbers packed."""

import base64

import numpy as np

from charted import charted
from iclgd.report.bars import bars
from iclgd.report.charts import NULL, OWN, Looks, Series, packed, picture, plain, small
from iclgd.report.maps import maps
from iclgd.report.numbers import Number
from iclgd.report.page import Table


def test_a_tables_numbers_are_dots_by_column_and_rows_set_in_are_nulls():
    rows = [
        ["gd", Number(0.5, 0.4, 0.6), "x"],
        ["  wrong labels", Number(0.1), Number(np.float64("nan"))],
        ["icl", "", ""],
    ]
    found = picture(Table(["", "cosine", "more"], rows)).data
    names = {"column": ["cosine"], "name": ["gd", "wrong labels"], "role": [OWN, NULL], "learner": ["gd", ""]}
    assert found["names"] == names
    assert found["values"] == [0.5, 0.1]
    assert (found["limited"], found["low"], found["high"]) == ([0], [0.4], [0.6])
    assert found["choose"] == {}
    assert found["x"] == "cosine"


def test_a_learner_has_its_colour_whatever_is_said_of_it():
    names = [
        "gd 0.001",
        "gd 0.001, all at once",
        "lcgd 0.001 target=label",
        "gd target=label 0.1",
        "gd++ ×2 untied 1",
        "b",
    ]
    found = picture(Table(["", "n"], [[name, Number(1.0)] for name in names])).data
    learners = [found["names"]["learner"][code] for code in found["codes"]["learner"]]
    assert learners == ["gd", "gd", "lcgd", "gd target=label", "gd++", "b"]
    assert found["slots"] == {"gd": 1, "lcgd": 2, "gd target=label": 4, "gd++": 3, "b": 0}


def test_of_many_rows_that_are_no_usual_learner_none_has_a_colour_of_its_own():
    table = Table(["", "n"], [[f"setting {letter}", Number(1.0)] for letter in "abcdefghi"] + [["gd", Number(2.0)]])
    found = picture(table).data
    assert [found["names"]["learner"][code] for code in found["codes"]["learner"]] == [""] * 9 + ["gd"]
    few = picture(Table(["", "n"], [[letter, Number(1.0)] for letter in "abcdefgh"])).data
    assert few["slots"] == {letter: place for place, letter in enumerate("abcdefgh")}


def test_a_table_with_fewer_than_two_numbers_has_no_picture():
    assert picture(Table(["", "n"], [["a", Number(1.0)], ["b", "text"]])) is None


def test_labels_are_codes_of_names_and_one_that_is_not_there_is_empty():
    found = plain([Series({"a": "x", "b": "y"}, [1.0, 2.0]), Series({"a": "z"}, [3.0, 4.0])], [0, 1], Looks())
    assert found["names"] == {"a": ["x", "z"], "b": ["y", ""]}
    assert found["codes"] == {"a": [0, 1], "b": [0, 1]}
    assert found["values"] == [1.0, 2.0, 3.0, 4.0]
    assert (found["limited"], found["low"], found["high"]) == ([], [], [])


def test_packed_numbers_come_back_to_half_a_step():
    values = np.linspace(-1, 3, 5001)
    found = packed(values)
    codes = np.frombuffer(base64.b64decode(found["codes"]), "<u2")
    back = found["low"] + codes / found["steps"] * (found["high"] - found["low"])
    assert np.abs(back - values).max() <= 4 / 65534 / 2 + 1e-12
    assert packed(np.array([1 / 3, np.nan])) == [0.33333, None]


def test_many_codes_take_a_byte_each_and_two_where_one_is_not_enough():
    assert small([3, 1]) == [3, 1]
    assert list(base64.b64decode(small([7] * 5000))) == [7] * 5000
    assert np.frombuffer(base64.b64decode(small([300] * 5000)), "<u2").tolist() == [300] * 5000


def test_a_map_has_its_rows_from_0_on_and_logarithms_only_where_they_are_asked_for():
    panels = {"one": np.array([[1.0, 2.0, 3.0], [4.0, np.nan, 6.0]]), "two": np.array([[0.0, -1.0, 1e-7]])}
    shown = maps(panels, [1, 2, 5], "demonstration", "layer", "about")
    assert shown.data["points"] == [1, 2, 5]
    found = charted(shown, "panel", "name")
    assert found.pop(("one", "1"))[::2] == [4.0, 6.0]
    assert found == {("one", "0"): [1.0, 2.0, 3.0], ("two", "0"): [0.0, -1.0, 0.0]}
    assert shown.data["values"][4:] == [None, 6.0, 0.0, -1.0, 1e-7]
    assert (shown.data["x"], shown.data["y"], shown.data["log"]) == ("demonstration", "layer", [])
    assert maps(panels, [1, 2, 5], "x", "y", "about", log=True).data["log"] == ["one", "two"]
    assert [path.name for path in shown.scripts][-2:] == ["heat.js", "maps.js"]


def test_bars_are_counts_by_row_and_part():
    shown = bars({"gd": {"alike": 3, "apart": 1}, "icl": {"apart": 4}}, "studies", "about", {"name": "study"})
    assert charted(shown, "name", "part") == {("gd", "alike"): [3], ("gd", "apart"): [1], ("icl", "apart"): [4]}
    assert (shown.data["x"], shown.data["colour"], shown.data["presses"]) == ("studies", "part", {"name": "study"})
    assert bars({"gd": {"alike": 3}}, "", "about").data["presses"] is None
    assert shown.scripts[-1].name == "bars.js"


def test_the_column_that_is_shown_first_can_be_named_and_a_learner_has_its_colour():
    table = Table(["", "loss", "SPD"], [["trained", Number(1.0), Number(2.0)], ["gd ×1", Number(3.0), Number(4.0)]])
    assert picture(table).data["names"]["column"] == ["loss", "SPD"]
    found = picture(table, "SPD").data
    assert (found["names"]["column"], found["values"]) == (["SPD", "loss"], [2, 4, 1, 3])
    assert found["slots"] == {"trained": 0, "gd": 1}
