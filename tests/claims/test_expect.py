"""What a sample says of an expectation: the interval decides, and what it does not decide stays undecided."""

from math import inf, nan

import numpy as np
import pytest

from iclgd.claims.expect import (
    Above,
    AtLeast,
    AtMost,
    Below,
    Between,
    Exactly,
    Finding,
    Ordered,
    Signs,
    Together,
    Within,
    state_of,
)
from iclgd.metrics.estimates import estimate, over_seeds


@pytest.mark.parametrize(
    ("expect", "inside", "outside", "across"),
    [
        (AtMost(1), [0.1, 0.2, 0.15], [2, 2.1, 2.2], [0.5, 1.5, 1.0]),
        (AtLeast(1), [2, 2.1, 2.2], [0.1, 0.2, 0.15], [0.5, 1.5, 1.0]),
        (Above(0), [1, 1.1, 0.9], [-1, -1.1, -0.9], [0.1, -0.1, 0.0]),
        (Below(0), [-1, -1.1, -0.9], [1, 1.1, 0.9], [0.1, -0.1, 0.0]),
        (Within(0.25, 0.01), [0.25, 0.251, 0.249], [0.3, 0.301, 0.302], [0.26, 0.27, 0.25]),
        (Between(0, 1), [0.5, 0.51, 0.52], [2, 2.1, 2.2], [0.9, 1.1, 1.0]),
    ],
    ids=str,
)
def test_a_region_holds_fails_or_is_undecided_by_the_interval_over_seeds(expect, inside, outside, across):
    assert expect.judge(inside).verdict == "holds"
    assert expect.judge(outside).verdict == "fails"
    assert expect.judge(across).verdict == "undecided"
    assert expect.judge(across).reason == "the interval straddles the limit"


def test_the_interval_is_students_over_the_seeds():
    found = AtMost(10).judge([1.0, 2.0, 3.0]).findings[""]
    wanted = over_seeds([1.0, 2.0, 3.0])
    assert (found.value, found.low, found.high) == (wanted.mean, wanted.low, wanted.high)
    assert found.high - found.value > 2  # 4.30 standard errors, not 1.96


def test_a_mean_of_widely_scattered_seeds_decides_nothing():
    assert AtMost(1).judge([0.0, 0.1, 2.0]).verdict == "undecided"


def test_an_identity_needs_every_seed_within_its_limit_and_no_interval():
    exact = AtMost(1e-12, each=True)
    assert exact.judge([1e-16]).verdict == "holds"
    assert exact.judge([1e-16, 1.0]).verdict == "undecided"
    assert exact.judge([1e-16, 1.0]).reason == "1 of 2 seeds"
    assert exact.judge([0.5, 1.0]).verdict == "fails"
    assert exact.judge([1e-16, 1e-13]).findings[""].value == 1e-13  # the furthest out is shown
    assert Exactly(0).judge([0.0, 0.0]).verdict == "holds"
    assert Exactly(0).judge([1e-300, 1e-300]).verdict == "fails"


@pytest.mark.parametrize("expect", [AtMost(1), AtMost(1, each=True), Within(0, 1), Exactly(0)], ids=str)
@pytest.mark.parametrize("values", [[nan, nan], [], [inf, nan]])
def test_what_is_no_number_is_undecided_and_says_why(expect, values):
    found = expect.judge(values)
    assert found.verdict == "undecided"
    assert found.reason


def test_one_seed_has_no_interval():
    found = AtMost(1).judge([0.5])
    assert found.verdict == "undecided"
    assert found.reason == "one seed has no interval"


def test_bounds_keep_an_interval_inside_what_the_quantity_can_be():
    assert Within(0.95, 0.05).judge([0.98, 1.0, 0.99], (0, 1)).findings[""].high <= 1


def test_an_estimate_brings_its_own_interval():
    class Estimate:
        mean, low, high, seeds = 0.5, 0.4, 0.6, 3

    found = Above(0).judge(Estimate())
    assert found.verdict == "holds"
    assert found.findings[""].low == 0.4
    assert found.findings[""].count == 3


def test_an_estimate_of_one_draw_decides_nothing_however_many_queries_it_is_over():
    found = Above(0).judge(estimate(np.linspace(0.4, 0.6, 50)[None]))
    assert (found.verdict, found.reason) == ("undecided", "one seed has no interval")
    assert Above(0).judge(estimate(np.linspace(0.4, 0.6, 50)[None].repeat(2, 0))).verdict == "holds"


def test_an_estimate_over_tasks_counts_tasks_and_not_their_draws():
    class Estimate:
        mean, low, high, seeds, tasks, kind = 0.5, 0.4, 0.6, 5, 6, "tasks"

    assert Above(0).judge(Estimate()).findings[""].count == 6


def test_cases_that_disagree_make_a_sentence_depend():
    found = Above(0).judge({"raw": [-1.0, -1.1, -0.9], "calibrated": [1.0, 1.1, 0.9]})
    assert found.verdict == "depends"
    assert found.reason == ""
    assert Above(0).judge({"a": [1.0, 1.1], "b": [2.0, 2.1]}).verdict == "holds"
    assert Above(0).judge({"a": [-1.0, -1.1], "b": [-2.0, -2.1]}).verdict == "fails"
    assert Above(0).judge({"a": [1.0, 1.01], "b": [-2.0, 2.1]}).verdict == "undecided"


def test_an_order_is_judged_seed_by_seed():
    low, high = [1.0, 5.0, 9.0], [1.1, 5.1, 9.12]  # far apart between seeds, always in order
    assert Ordered("low", "high").judge({"low": low, "high": high}).verdict == "holds"
    assert Ordered("high", "low").judge({"low": low, "high": high}).verdict == "fails"
    assert Ordered("low", "high", "low").judge({"low": low, "high": high}).verdict == "fails"


def test_signs_count_what_is_surely_above_and_what_can_still_be():
    above, below, unknown = [1.0, 1.01], [-1.0, -1.01], [-1.0, 1.0]
    assert Signs(2).judge({"a": above, "b": above, "c": below}).verdict == "holds"
    assert Signs(2).judge({"a": above, "b": below, "c": below}).verdict == "fails"
    assert Signs(2).judge({"a": above, "b": unknown, "c": below}).verdict == "undecided"


BARELY = [0.6, 1.4, 0.86, 1.14]  # mean 1; its interval begins at .45, one of three at .16


def test_what_one_case_of_several_decides_is_judged_as_one_of_them():
    """By Student's t of four: above .4 alone, not among three; all of three need no correction."""
    lucky, clear = BARELY, [-1.0, -1.01, -0.99, -1.0]
    assert Above(0.4).judge(lucky).verdict == "holds"
    assert Above(0.4).judge({"a": lucky, "b": lucky, "c": lucky}).verdict == "holds"
    found = Above(0.4).judge({"a": lucky, "b": clear, "c": clear})
    assert (found.verdict, found.reason) == ("undecided", "one case of several may be elsewhere by luck")
    assert [one.verdict for one in found.findings.values()] == ["holds", "fails", "fails"]
    assert Above(0.0).judge({"a": lucky, "b": clear, "c": clear}).verdict == "depends"
    parts = {"x": Below(0.4), "y": Above(-5), "z": Above(-5)}
    assert Together({"x": Below(0.4)}).judge({"x": lucky}).verdict == "fails"
    assert Together(parts).judge(dict.fromkeys(parts, lucky)).verdict == "undecided"
    assert Together({**parts, "x": Below(0.0)}).judge(dict.fromkeys(parts, lucky)).verdict == "fails"


def test_one_of_three_has_the_interval_of_a_third_of_the_risk():
    """Student's t of three degrees of freedom: 4.857 in place of 3.182, so .5 on either side becomes .763."""
    found = Finding(1.0, 0.5, 1.5, 4, "holds")
    assert [Above(limit).among(3, found) for limit in (0.235, 0.245)] == ["holds", "undecided"]
    bounded = Finding(1.0, 0.5, 1.1, 4, "holds")  # by its longer side
    assert [Above(limit).among(3, bounded) for limit in (0.235, 0.245)] == ["holds", "undecided"]
    assert [Below(limit).among(3, found) for limit in (1.755, 1.765)] == ["undecided", "holds"]
    exact = Finding(2e-9, 1.4e-9, 2.6e-9, 2, "fails")
    assert AtMost(1e-9, each=True).among(9, exact) == "fails"


def test_signs_that_several_could_show_by_luck_are_not_counted():
    lucky, unknown = Finding(1.0, 0.1, 1.9, 4, "holds"), Finding(0.0, -1.0, 1.0, 4, "undecided")
    four = {"a": lucky, "b": lucky, "c": unknown, "d": unknown}
    assert Signs(2).of(four).verdict == "undecided"  # any of three could have seemed above
    assert Signs(2).of({"a": lucky, "b": lucky}).verdict == "holds"


def test_exact_parts_leave_nothing_to_luck():
    exact = {name: AtMost(1e-9, each=True) for name in "abcdefgh"}
    found = Together({**exact, "chance": Below(0.4)}).judge({**{key: [0.0] for key in exact}, "chance": BARELY})
    assert found.verdict == "fails"
    assert Together(exact).judge({**{key: [0.0] for key in exact}, "a": [1.0]}).verdict == "fails"


def test_of_six_equal_tasks_one_seems_below_in_one_study_of_twenty():
    """A sentence that is true of six tasks, by a hair: how often it is said to fail, of any."""
    draws = np.random.default_rng(0).normal(size=(1000, 6, 5))
    tasks = "abcdef"
    said = [Signs(6).judge(dict(zip(tasks, map(list, study), strict=True))).verdict for study in draws]
    assert 0.02 <= said.count("fails") / len(said) <= 0.05
    alone = [min(Above(0).judge(list(task)).verdict for task in study) for study in draws]
    assert alone.count("fails") / len(alone) > 0.1


def test_together_fails_with_any_part_and_holds_with_all():
    expect = Together({"cosine": AtLeast(0.9), "loss": AtMost(1.0)})
    good, bad = [0.99, 0.991], [0.1, 0.11]
    assert expect.judge({"cosine": good, "loss": good}).verdict == "holds"
    assert expect.judge({"cosine": bad, "loss": good}).verdict == "fails"
    assert expect.judge({"cosine": good, "loss": [0.5, 1.6]}).verdict == "undecided"


@pytest.mark.parametrize(
    ("stands", "values", "state"),
    [
        ("holds", [1.0, 1.1], "as we say"),
        ("fails", [1.0, 1.1], "not as we say"),
        ("fails", [-1.0, -1.1], "as we say"),
        ("holds", [-1.0, 1.0], "not as we say"),
        ("open", [-1.0, 1.0], "open"),
        ("open", [1.0, 1.1], "open"),
        ("depends on the task", {"a": [1.0, 1.01], "b": [-1.0, -1.01]}, "as we say"),
        ("depends on the task", [1.0, 1.1], "not as we say"),
    ],
)
def test_a_row_is_as_we_say_when_the_measurement_confirms_what_the_ledger_says(stands, values, state):
    assert state_of(stands, Above(0).judge(values)) == state
