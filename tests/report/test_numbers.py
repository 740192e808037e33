"""Numbers and columns, written out."""

import math

import pytest

from iclgd.report.columns import columns
from iclgd.report.numbers import Number, Size, counted, number, significant


@pytest.mark.parametrize(
    "value, digits, text",
    [
        (0.5, 3, ".500"),
        (-0.5, 1, "-.5"),
        (10.25, 1, "10.2"),
        (100.0, 0, "100"),
        (0.0, 2, ".00"),
        (-0.004, 2, ".00"),
        (-0.006, 2, "-.01"),
        (20.05, 2, "20.05"),
        (math.inf, 2, "n/a"),
        (-math.inf, 2, "n/a"),
    ],
)
def test_a_number_has_so_many_digits_behind_its_point(value, digits, text):
    assert number(value, digits) == text


@pytest.mark.parametrize(
    "value, digits, text",
    [
        (0.012345, 3, ".0123"),
        (-0.25, 4, "-.25"),
        (48.31, 3, "48.3"),
        (10.05, 4, "10.05"),
        (1.2e-14, 4, "1.2e-14"),
        (123456.0, 4, "1.235e+05"),
        (0.0, 4, "0"),
        (math.nan, 4, "n/a"),
    ],
)
def test_a_size_has_so_many_significant_digits(value, digits, text):
    assert significant(value, digits) == text


def test_numbers_have_three_digits_and_sizes_four_unless_they_say():
    assert (number(1 / 3), significant(1 / 3)) == (".333", ".3333")
    assert (str(Number(1 / 3)), str(Size(1 / 3))) == (".333", ".3333")
    assert str(Number(1 / 3, 0.25, 0.5, 2, "note")) == ".33 [.25 .50] note"
    assert str(Size(1 / 3, 0.25, 12345.6, 2, "note")) == ".33 [.25 1.2e+04] note"


@pytest.mark.parametrize("low, high", [(math.nan, 1.0), (0.0, math.inf), (-math.inf, 1.0)])
def test_an_interval_with_an_end_that_is_not_known_is_not_written(low, high):
    assert str(Number(0.5, low, high)) == ".500"
    assert str(Size(0.5, low, high)) == ".5"


def test_what_json_gets_is_what_is_known_and_how_it_is_written():
    assert Number(0.5, 0.25, math.inf, note="n").plain() == {"value": 0.5, "low": 0.25, "note": "n", "text": ".500 n"}
    assert Number(math.nan, 0.25).plain() == {"value": None, "low": 0.25, "text": "n/a"}


def test_words_ending_in_ry_have_their_own_plural():
    assert [counted(n, "query") for n in (0, 1, 2)] == ["0 queries", "1 query", "2 queries"]
    assert [counted(n, "day") for n in (0, 1, 2)] == ["0 days", "1 day", "2 days"]
    assert counted(1234567, "step") == "1,234,567 steps"


# columns


def test_no_lines_are_nothing():
    assert columns([], 10) == ""


def test_what_fits_exactly_is_not_moved_or_wrapped():
    lines = [["name", "x" * 10], ["a", "y"]]
    assert columns(lines, 16) == columns(lines) == f"name  {'x' * 10}\na     y"


def test_prose_is_wrapped_to_24_letters_and_no_fewer():
    prose = "one two three four five six seven eight"
    wrapped = columns([["name", prose], ["other", "x"]], 7 + 24)
    assert wrapped.splitlines() == ["name   one two three four five", "       six seven eight", "other  x"]
    below = columns([["name", prose, "more"], ["other", "x", "y"]], 7 + 23 + 6)
    first = ["name   one two three four five six", "       seven eight", "other  x"]
    assert below.splitlines() == [*first, "", "name   more", "other  y"]


def test_the_longest_column_is_the_one_that_is_wrapped():
    prose = "one two three four five six seven eight"
    shown = columns([[prose, "b" * 20], ["", "c"]], 24 + 2 + 20)
    assert shown.splitlines() == [f"one two three four five  {'b' * 20}", "six seven eight", " " * 25 + "c"]


def test_a_word_that_is_too_long_is_not_broken():
    word = "w" * 40
    assert word in columns([["name", f"{word} and more words behind it"], ["x", "y"]], 40)


def test_as_many_columns_as_fit_stand_in_each_block_and_at_least_one():
    line = ["n", "aaaa", "bbbb", "cccc"]
    assert columns([line], 13) == "n  aaaa  bbbb\n\nn  cccc"
    assert columns([line], 12) == "n  aaaa\n\nn  bbbb\n\nn  cccc"
    assert columns([line], 2) == "n  aaaa\n\nn  bbbb\n\nn  cccc"


def test_two_columns_of_prose_that_both_have_to_be_wrapped_share_the_window():
    """Thirty-nine letters each, and two between them: two words of nineteen just fit."""
    prose = " ".join(["x" * 19] * 4)
    shown = columns([[prose, prose], ["a", "b"]], 80).splitlines()
    assert [len(line) for line in shown] == [80, 80, 39, 42]  # two lines of either, and those of the next row
