"""The page of `dual train`, from planted curves of three seeds and two epochs."""

import numpy as np
import pytest
from planted_dual import row, study_of

from iclgd.lab import Cell
from iclgd.labs.dual.estimates import mean
from iclgd.labs.dual.spec import TrainSpec
from iclgd.labs.dual.train_page import page
from iclgd.report.numbers import Number
from iclgd.results import Result, array
from iclgd.study import Study

ARMS = "negative:k=1:beta=0.5,centred,regularised:alpha=-0.5"
PLAIN = np.array([0.5, 0.6, 0.7])
NEAR = np.array([0.001, 0.0, -0.001])  # differences between seeds, so that there is an interval


def study(less: dict[tuple[str, str], float], seeds: str = "4,5,6", arms: str = ARMS) -> Study:
    """Losses end at plain's minus what is said by task and arm; they start at 1 and are 2 on the way.

    The best constant has .91 on linear and .71 on sparse.
    """

    def result(cell: Cell) -> Result:
        task, arm, seed = (cell.labels[name] for name in ("task", "arm", "seed"))
        i = int(seed) - 4
        last = PLAIN[i] - (less.get((str(task), str(arm)), 0.0) + NEAR[i] if arm != "plain" else 0)
        loss = array(np.array([1.0, 2.0, last]), "epoch", quantity="loss")
        level = {"linear": 0.9, "sparse": 0.7}[str(task)] + i / 100
        constant = array(np.array(level), quantity="reference", learner="best constant")
        return Result({}, [loss, constant] if arm == "plain" else [loss])

    spec = TrainSpec(tasks="linear,sparse", arms=arms, seeds=seeds, epochs=2, k=5)
    return study_of("dual train", spec, result)


HELP = {("linear", "negative k=1"): 0.1, ("linear", "centred"): 0.15, ("sparse", "centred"): -0.2}


def test_the_answer_names_the_arm_that_lowers_the_loss_most_task_by_task() -> None:
    assert page(study(HELP)).answer == (
        "Beside plain attention, on linear 2 of 3 lower the test loss, centred most (-.150, 25% off); on sparse no "
        "modification is shown to lower the test loss."
    )


def test_tasks_of_which_the_same_is_said_share_its_words() -> None:
    assert page(study({})).answer == (
        "Beside plain attention, on linear and sparse no modification is shown to lower the test loss."
    )


def test_one_seed_shows_nothing() -> None:
    shown = page(study(HELP, seeds="4,"))
    assert shown.answer == "With one seed no modification is shown to change the test loss: raise `seeds`."
    assert shown.sections[0].text == "1 seed: no interval over draws."
    assert row(shown.table("linear"), "centred")[1:3] == [".349", "-.151"]


def test_two_seeds_have_intervals() -> None:
    shown = page(study(HELP, seeds="4,5"))
    assert shown.sections[0].text.startswith("Student's t intervals over seeds, 95%")
    assert shown.table("linear").rows[0][1].low is not None


def test_plain_alone_is_compared_with_nothing() -> None:
    assert page(study({}, arms="plain")).answer.startswith("Nothing is compared")


def test_rows_have_the_last_loss_the_paired_difference_and_the_seeds_that_are_lower() -> None:
    table = page(study(HELP)).table("linear")
    assert [line[0] for line in table.texts()] == [
        "plain", "negative k=1", "centred", "regularised alpha=-0.5", "best constant",
    ]  # fmt: skip
    assert row(table, "plain") == ["plain", str(mean(PLAIN)), "", ""]
    entry = table.rows[2][2]
    assert isinstance(entry, Number)
    expected = mean(-0.15 - NEAR, among=3)
    assert (entry.value, entry.low, entry.high) == pytest.approx((-0.15, expected.low, expected.high))
    assert row(table, "centred")[3] == "3 of 3"
    assert row(table, "regularised alpha=-0.5")[3] == "1 of 3"
    assert row(table, "best constant")[1].startswith(".910 [")
    assert row(page(study(HELP)).table("sparse"), "centred")[3] == "0 of 3"


def test_a_loss_has_no_negative_bound() -> None:
    low = [entry for line in page(study({("linear", "centred"): 0.6})).table("linear").rows for entry in line[1:2]]
    assert all(one.low >= 0 for one in low if isinstance(one, Number))
    assert any(one.low == 0 for one in low if isinstance(one, Number))


def test_the_subtitle_says_how_it_was_trained() -> None:
    assert page(study(HELP)).subtitle == "one softmax layer · k = 5 · 10 inputs · 3 seeds · 2 epochs of 20 steps"


def test_the_figure_has_a_panel_for_each_family_and_task_and_plain_in_each() -> None:
    axes = page(study(HELP)).drawings["panels"].figure.axes
    titles = [one.get_title(loc="left") or one.get_title() for one in axes]
    assert titles == [f"{family}, {task}" for task in ("linear", "sparse") for family in ("negative", "regularised")]
    names = [[text.get_text() for text in one.get_legend().get_texts()] for one in axes]
    assert names[:2] == [["plain", "negative k=1", "centred"], ["plain", "regularised alpha=-0.5"]]
    curves = [line for line in axes[0].lines if not str(line.get_label()).startswith("_")]
    assert np.allclose(curves[0].get_ydata(), [1, 2, 0.6])
    assert np.allclose(curves[2].get_ydata(), [1, 2, 0.45])
    assert axes[0].get_ylim() == axes[1].get_ylim() == pytest.approx((0.45 - 0.05 * 0.46, 0.91 + 0.05 * 0.46))
    assert axes[2].get_ylim() == axes[3].get_ylim() == pytest.approx((0.6 - 0.05 * 0.2, 0.8 + 0.05 * 0.2))
    for panel, level in zip(axes, (0.91, 0.91, 0.71, 0.71), strict=True):
        (constant,) = [line for line in panel.lines if str(line.get_label()).startswith("_")]
        assert constant.get_ydata()[0] == pytest.approx(level)


def test_curves_of_a_modification_stand_beside_plain_attention_and_levels_in_every_group() -> None:
    (drawn,) = [section for section in page(study(HELP)).sections if section.widget is not None]
    data = drawn.widget.data
    named = {name: [data["names"][name][i] for i in codes] for name, codes in data["codes"].items()}
    groups = dict(zip(named["name"], named["group"], strict=True))
    assert groups["plain"] == groups["best constant"] == ""
    assert [groups[name] for name in ("negative k=1", "regularised alpha=-0.5")] == ["negative", "regularised"]
    row = list(zip(named["panel"], named["name"], named["seed"], strict=True)).index(("linear", "centred", "5"))
    assert data["values"][3 * row : 3 * row + 3] == pytest.approx([1, 2, 0.6 - 0.15])
    assert data["points"] == [0, 1, 2]
