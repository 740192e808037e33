"""The time that is left is steady, however cells come in: told from planted times at which they are done."""

import random
from itertools import pairwise

import pytest

from iclgd.report.pace import Guess, Pace, Paces


def told(times: list[float], total: int, tick: float = 0.5) -> list[tuple[float, float]]:
    """What is said, twice a second, while cells are done at these times: (now, seconds left)."""
    pace, left, found, now = Pace(), sorted(times), [], 0.0
    while left:
        now += tick
        while left and left[0] <= now:
            pace.done(left.pop(0))
        if (seconds := pace.left(now, total)) is not None:
            found.append((now, seconds))
    return found


def together(groups: int, of: int, seconds: float, noise: float = 0.1) -> list[float]:
    """Cells that are trained together: none for a while, then all within a tenth of a second."""
    draw, now, found = random.Random(0), 0.0, []
    for _ in range(groups):
        now += seconds * draw.uniform(1 - noise, 1 + noise)
        found += [now + 0.1 * i / of for i in range(of)]
    return found


@pytest.mark.parametrize("of, seconds", [(1, 20.0), (5, 20.0), (20, 60.0), (3, 0.7)])
def test_the_end_that_is_foretold_moves_little_while_groups_of_cells_are_done_at_once(of, seconds):
    times = together(30, of, seconds)
    said = told(times, len(times))
    assert said[0][0] <= times[0] + seconds / 4 + 2
    ends = [now + left for now, left in said]
    assert all(abs(end - times[-1]) < 0.15 * times[-1] for end in ends)
    for (_, before), (_, after) in pairwise(said):
        assert after - before <= 0.1 * times[-1] + 0.5


def test_between_bursts_it_is_counted_down_and_a_late_burst_keeps_what_comes_after_it():
    pace = Pace()
    for _ in range(5):
        pace.done(20.0)
    assert pace.left(20.1, 20) is None  # more of them may be on their way
    assert pace.left(22.0, 20) == pytest.approx(58.0)
    assert pace.left(30.0, 20) == pytest.approx(50.0)
    assert pace.left(70.0, 20) == pytest.approx(40.0)  # ten cells after the five that are late
    for _ in range(5):
        pace.done(80.0)
    assert pace.left(80.1, 20) == pytest.approx(20.0)  # the five that came are no longer left
    assert pace.left(85.0, 20) == pytest.approx(75.0)  # they took four times as long


def test_cells_one_by_one_are_judged_within_a_twentieth_of_the_time_they_took():
    pace = Pace()
    for second in range(1, 101):
        pace.done(float(second))
    before = pace.left(100.0, 300)
    for tenth in range(1, 101):  # ten times as fast from now on, without a pause
        pace.done(100 + tenth / 10)
    assert before == pytest.approx(200.0, rel=0.02)
    assert pace.left(110.0, 300) < 0.5 * before
    assert pace.left(116.0, 300) == pytest.approx(110 / 200 * 100 - 6)


def test_cells_that_come_within_a_second_of_the_first_are_one_burst_however_early():
    pace = Pace()
    for now in (0.5, 1.0, 1.4):
        pace.done(now)
    assert pace.left(1.45, 9) is None
    assert pace.left(1.6, 9) == pytest.approx(1.4 / 3 * 6 - 0.2)


def test_nothing_is_known_before_a_cell_is_done():
    assert Pace().left(100.0, 5) is None


# unlike cells


def unlike(**seconds: float | None) -> dict[str, Guess]:
    """Cells whose kind is the first letter of their key."""
    return {key: Guess(key[0], guess) for key, guess in seconds.items()}


def test_cells_of_which_none_is_done_are_left_as_long_as_was_expected():
    paces = Paces(0.0)
    paces.expect(5, None, unlike(a1=None, a2=None, a3=None, b1=40.0, b2=20.0))
    assert paces.left(0.0, []) == (60.0, False)
    for i, key in enumerate(("a1", "a2")):
        paces.begun(2.0 * i, key, [])
        paces.done(2.0 * i + 2, key, [key])
    paces.begun(4.0, "b1", [])
    assert paces.left(4.0, ["b1"]) == (62.0, True)
    assert paces.left(14.0, ["b1"]) == (52.0, True)  # the clock of the others stands still
    paces.done(44.0, "b1", ["b1"])
    paces.begun(44.0, "a3", [])
    assert paces.left(46.0, ["a3"]) == (pytest.approx(20.0), True)


def test_a_kind_that_takes_twice_as_long_as_was_expected_goes_on_so_each_by_its_size():
    paces = Paces(0.0)
    paces.expect(3, None, unlike(b1=10.0, b2=10.0, b3=40.0))
    paces.begun(0.0, "b1", [])
    paces.done(20.0, "b1", ["b1"])
    paces.begun(20.0, "b2", [])
    assert paces.left(22.0, ["b2"]) == (pytest.approx(98.0), True)


def test_how_others_compare_with_what_was_expected_counts_as_much_as_they_are_long():
    paces = Paces(0.0)
    paces.expect(2, None, unlike(a1=10.0, b1=30.0))
    paces.done(50.0, "a1", ["a1"])
    assert paces.left(50.0, ["b1"])[0] == pytest.approx(30.0 * (50 + 30) / (10 + 30))


def test_cells_that_run_at_the_same_time_share_it():
    paces = Paces(0.0)
    paces.expect(4, None, unlike(a1=20.0, a2=20.0, b1=2.0, b2=2.0))
    paces.begun(0.0, "a1", [])
    paces.begun(0.0, "b1", ["a1"])
    paces.done(4.0, "b1", ["a1", "b1"])
    paces.begun(4.0, "b2", ["a1"])
    paces.done(8.0, "b2", ["a1", "b2"])
    paces.done(24.0, "a1", ["a1"])
    assert paces.left(26.0, ["a2"])[0] == pytest.approx(20.0 - 2.0)


def test_cells_of_which_nothing_is_known_are_left_out_and_it_says_so():
    paces = Paces(0.0)
    paces.expect(2, None, unlike(a1=None, b1=9.0))
    assert paces.left(0.0, []) == (9.0, False)
    paces.expect(1, None, {})
    assert Paces(0.0).left(0.0, []) == (None, True)
