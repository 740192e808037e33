"""The page of `dual modify`, from planted scores of 40 queries."""

import numpy as np
import pytest
from planted_dual import facts, row, study_of

from iclgd.lab import Cell
from iclgd.labs.dual.estimates import direction, mean, share
from iclgd.labs.dual.modify_page import page
from iclgd.labs.dual.spec import ModifySpec
from iclgd.report.numbers import Number
from iclgd.results import Result, array
from iclgd.study import Study

ANSWERS = np.arange(40) % 2
NOISE = np.where(np.arange(40) % 4 < 2, 0.1, -0.1)


def study(shift: dict[str, float], modifications: str = "negative:k=1:beta=0.1,centred,augmented") -> Study:
    """log p of the right word is −1 for plain attention, log(1 − 1/e) in every fourth query; −1 + shift ± .1 else."""

    def result(cell: Cell) -> Result:
        label = str(cell.labels["modification"])
        right = np.exp(-1 + (0 * NOISE if label == "plain" else shift[label] + NOISE))
        scores = np.log(np.where(ANSWERS[:, None] == [0, 1], right[:, None], 1 - right[:, None]))
        if label == "plain":
            scores[::4] = scores[::4, ::-1]
        labels = {"label": ("bad", "good")}
        found = [array(scores, "query", "label", quantity="scores", coordinates=labels)]
        return Result(facts(4), [*found, array(ANSWERS, "query", quantity="answers")])

    return study_of("dual modify", ModifySpec(k=4, queries=40, modifications=modifications), result)


def test_effects_are_named_by_direction_and_what_shows_none_is_counted() -> None:
    """Plain: −1 in three quarters, log(1 − 1/e) in one; the mean of its log p is −.865."""
    found = page(study({"negative k=1 beta=0.1": -0.3, "centred": 0.37, "augmented": 0.135}))
    assert found.answer == (
        "With these demonstrations centred (.235) raises log p of the right word; negative k=1 beta=0.1 (-.435) lowers "
        "log p of the right word; of the other 1 no effect is shown; one draw says nothing of others."
    )


def test_where_nothing_is_shown_the_answer_says_so() -> None:
    found = page(study(dict.fromkeys(("negative k=1 beta=0.1", "centred", "augmented"), 0.135)))
    assert found.answer == (
        "With these demonstrations none of 3 modifications is shown to change log p of the right word; one draw says "
        "nothing of others."
    )


def test_several_of_one_direction_share_a_verb() -> None:
    found = page(study({"negative k=1 beta=0.1": -0.5, "centred": -0.6, "augmented": 0.135})).answer
    assert "negative k=1 beta=0.1 (-.635) and centred (-.735) lower log p" in found


def test_plain_alone_is_compared_with_nothing() -> None:
    assert page(study({}, "plain")).answer.startswith("Nothing is compared")


def test_rows_have_accuracy_log_p_and_the_paired_difference() -> None:
    table = page(study({"negative k=1 beta=0.1": -0.3, "centred": 0.37, "augmented": 0.135})).table()
    assert [line[0] for line in table.texts()] == ["plain", "negative k=1 beta=0.1", "centred", "augmented"]
    assert row(table, "plain") == ["plain", ".25 [.14 .40]", "-.865", ""]
    entry = table.rows[2][3]
    assert isinstance(entry, Number)
    difference = np.where(np.arange(40) % 4 == 0, -1.0 - np.log(1 - np.exp(-1.0)), 0) + 0.37 + NOISE
    expected = mean(difference, among=3)
    assert (entry.value, entry.low, entry.high) == pytest.approx((expected.value, expected.low, expected.high))
    assert row(table, "centred")[1] == ".50 [.35 .65]"


def test_the_picture_opens_with_what_the_answer_is_about() -> None:
    drawn = page(study({"negative k=1 beta=0.1": -0.3, "centred": 0.37, "augmented": 0.135})).picture
    assert drawn is not None
    assert drawn.data["names"]["column"][0] == "minus plain, same queries"
    assert drawn.data["names"]["name"][0] == "negative k=1 beta=0.1"


def test_the_subtitle_says_what_was_read() -> None:
    assert page(study({}, "plain")).subtitle == "smollm2-135m · films · k = 4 · seed 0 · 40 queries · float32"


# estimates


def test_a_mean_has_students_interval() -> None:
    found = mean([1.0, 2.0, 3.0])
    assert (found.value, found.low, found.high) == pytest.approx((2, 2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5))


def test_intervals_shown_together_are_wider() -> None:
    """Bonferroni: with two of them each has 97.5%, t = 6.2053 at two degrees of freedom."""
    assert mean([1.0, 2.0, 3.0], among=2).high == pytest.approx(2 + 6.205347 / 3**0.5)


def test_what_cannot_be_negative_has_no_negative_bound() -> None:
    found = mean([0.0, 1.0], lowest=0.0)
    assert found.low == 0
    assert found.high > 1


def test_one_value_has_no_interval() -> None:
    assert str(mean([0.5], lowest=0.0)) == ".500"


def test_a_share_has_wilsons_interval() -> None:
    assert str(share([True, True, True, False])) == ".75 [.30 .95]"


@pytest.mark.parametrize("low, high, sign", [(0.1, 0.2, 1), (-0.2, -0.1, -1), (-0.1, 0.1, 0), (np.nan, np.nan, 0)])
def test_a_direction_is_that_of_the_whole_interval(low: float, high: float, sign: int) -> None:
    assert direction(Number(0.15, low, high)) == sign


def test_the_terminal_shows_the_answers_unasked() -> None:
    assert [section.brief for section in page(study({}, "plain")).sections] == [True]
