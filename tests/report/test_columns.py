"""Columns of a table in a window: prose is wrapped, and what does not fit stands below; nothing is cut."""

from iclgd.report.columns import columns
from iclgd.report.page import Table


def test_columns_are_as_wide_as_they_need_to_be():
    shown = Table(["a", "bb"], [["long cell", "1"], ["x", "22"]]).text()
    assert shown == "a          bb\nlong cell  1\nx          22"
    assert Table(["", ""], [["x", "1"]]).text() == "x  1"


def test_a_table_that_is_too_wide_goes_on_below_behind_its_first_column():
    shown = Table(["who", "one", "two", "three"], [["gd", "111111", "222222", "333333"]]).text(20)
    assert shown == "who  one     two\ngd   111111  222222\n\nwho  three\ngd   333333"


def test_prose_is_wrapped_in_its_column_before_columns_are_moved():
    prose = "what it is, in more words than there is room for beside the name"
    shown = Table(["name", "what it is"], [["gd", prose], ["lcgd", "short"]]).text(40)
    assert max(map(len, shown.splitlines())) <= 40
    assert " ".join(shown.split()) == f"name what it is gd {prose} lcgd short"


def test_two_columns_of_prose_are_both_wrapped_where_neither_fits():
    words = "words that go on and on beside each other " * 3
    shown = Table(["", ""], [[words.strip(), words.strip()], ["x", "y"]]).text(80)
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.split().count("other") == 6


def test_a_text_that_cannot_be_wrapped_moves_columns_below():
    shown = Table(["", "expression", "n"], [["tomita", "0" * 40, "three words here"]]).text(60)
    assert max(map(len, shown.splitlines())) <= 60
    assert "0" * 40 in shown


def test_a_name_that_is_wrapped_stays_as_far_in_as_it_was():
    table = Table(["", "value"], [["gd", "x" * 30], ["  a model with weights that were never trained", "x" * 30]])
    assert table.text(60).splitlines()[2:] == [f"  a model with weights that  {'x' * 30}", "  were never trained"]


def test_one_column_of_prose_is_wrapped_where_it_stands_when_that_is_enough():
    prose = "a sentence about it that goes on and on, as sentences of this kind do"
    shown = columns([["gd", prose, "12.5"], ["lcgd", "short", "7"]], 50).splitlines()
    assert [line.rpartition("  ")[2] for line in (shown[0], shown[-1])] == ["12.5", "7"]
    assert max(map(len, shown)) <= 50
    assert "" not in shown


def test_a_window_is_shared_among_columns_of_prose_and_no_line_is_wider_than_it():
    for width in range(60, 90):
        for count in (1, 2, 3):
            lines = columns([["a " * 100] * count], width).splitlines()
            assert width - 2 * count <= max(map(len, lines)) <= width
