"""The page of `trace`, from a planted trace of four queries, two layers and three dimensions."""

import numpy as np
import pytest

from iclgd.labs.trace.lab import TraceSpec
from iclgd.labs.trace.page import page
from iclgd.report.figures import COLOURS
from iclgd.results import Result, array
from iclgd.study import Study

ANSWERS = [0, 1, 0, 1]
CHOSEN = {"zero-shot": [0, 0, 0, 0], "icl": [0, 1, 0, 0]}
WHERE = {"position": ("prompt", "label")}
GROWTH = np.array([[1.0, 2.0], [3.0, 0.5]])  # layer position: how many times its length an output moves


def outputs(queries: int, read: bool) -> np.ndarray:
    """query layer position dim: (2, 0, 0), and when read moved by its length times growth, more with every query."""
    found = np.zeros((queries, 2, 2, 3), dtype=np.float32)
    found[..., 0] = 2.0
    if read:
        found[..., 1] = 2 * GROWTH * (1 + 0.1 * (np.arange(queries) - (queries - 1) / 2))[:, None, None]
    return found


def shown(chosen=None, dropped=0, task="sentiment", queries=4):
    answers = (ANSWERS * queries)[:queries]
    arrays = []
    for learner, labels in (chosen or CHOSEN).items():
        scores = np.log(np.where(np.array((labels * queries)[:queries])[:, None] == [0, 1], 0.9, 0.1))
        arrays.append(array(scores, "query", "label", quantity="scores", learner=learner))
        moved = outputs(queries, learner == "icl")
        axes = ("query", "layer", "position", "dim")
        arrays.append(array(moved, *axes, coordinates=WHERE, quantity="outputs", learner=learner))
    facts = {
        "demonstrations": 5,
        "demonstrations_dropped": dropped,
        "queries": queries,
        "task": "films",
        "labels": ["bad", "good"],
        "answers": answers,
        "episode": "{}\n",
        "queries_text": [f"film {i}" for i in range(queries)],
    }
    spec = TraceSpec.of({"k": 5, "queries": queries, "seed": 3, "task": task})
    return page(Study("trace", spec, spec.cells(), ["a"], {"a": Result(facts, arrays)}))


def test_the_answer_has_both_accuracies_and_the_layer_that_moves_most():
    assert shown().answer == (
        "Reading moves accuracy from .50 to .75, which these queries do not tell apart; at the prompt's last token it "
        "moves layer 1 most, by 3.00 of its length."
    )


@pytest.mark.parametrize("before, after", [([1, 0, 1, 0], ANSWERS), (ANSWERS, [1, 0, 1, 0])])
def test_accuracies_that_the_queries_tell_apart_are_not_said_to_be_alike(before, after):
    assert "tell apart" not in shown({"zero-shot": before, "icl": after}, queries=40).answer


def test_an_accuracy_that_falls_by_one_query_is_not_told_apart():
    assert (
        "from .75 to .50, which these queries do not tell apart"
        in shown({"zero-shot": [0, 1, 0, 0], "icl": [0, 0, 0, 0]}).answer
    )


def test_an_accuracy_that_reading_does_not_change_is_not_said_to_move():
    answer = shown({"zero-shot": [0, 1, 0, 0], "icl": [0, 1, 0, 0]}).answer
    assert answer.startswith("Reading leaves accuracy of these queries at .75; at the prompt's last token")


def test_an_answer_is_right_if_it_is_the_right_one_whichever_stands_first():
    table = shown({"zero-shot": [1, 1, 1, 1], "icl": [1, 1, 1, 0]}).table("Accuracy")
    assert [row[1].value for row in table.rows] == [0.5, 0.25]


def test_the_subtitle_says_what_was_read_and_what_did_not_fit():
    assert shown().subtitle == "smollm2-135m · films · k = 5 · seed 3 · 4 queries · float32"
    assert "k = 5 (2 dropped to fit) · seed 3" in shown(dropped=2).subtitle


def test_accuracy_stands_beside_the_mean_probability_of_each_label():
    assert shown().table("Accuracy").texts() == [
        ["zero-shot", ".50 [.15 .85]", ".90", ".10"],
        ["icl", ".75 [.30 .95]", ".70", ".30"],
    ]
    assert list(shown().table("Accuracy").header) == ["", "accuracy", "p(bad)", "p(good)"]


def test_updates_are_means_over_queries_layer_by_layer_at_both_positions():
    table = shown().table("Updates")
    assert [[entry if isinstance(entry, str) else entry.value for entry in row] for row in table.rows] == [
        ["0", pytest.approx(1.0), pytest.approx(2.0)],
        ["1", pytest.approx(3.0), pytest.approx(0.5)],
    ]
    spread = np.std([0.85, 0.95, 1.05, 1.15], ddof=1) / 2 * 3.182446305284263
    assert (table.rows[1][1].low, table.rows[1][1].high) == pytest.approx((3 - 3 * spread, 3 + 3 * spread))
    assert str(table.rows[0][1]) == "1.00 [.79 1.21]"


def test_queries_are_listed_with_their_answers_and_no_more_than_twenty():
    table = shown().table("Queries")
    assert table.texts()[1] == ["film 1", "good", "bad", "good"]
    assert len(table.rows) == 4
    long = shown(queries=25)
    assert [row[0] for row in long.table("Queries").texts()] == [f"film {i}" for i in range(20)]
    assert long.sections[2].text == "The first 20 of 25."
    assert shown().sections[2].text == "The first 4 of 4."


def test_the_terminal_shows_accuracy_and_updates_unasked_and_the_folder_gets_the_episode():
    assert [section.brief for section in shown().sections] == [True, True, False]
    assert shown().files == {"episode.json": "{}\n"}


def test_the_picture_draws_each_position_with_its_interval():
    (axes,) = shown().drawings["update-size"].figure.axes
    prompt, label = axes.lines
    assert (prompt.get_xdata().tolist(), prompt.get_ydata()) == ([0, 1], pytest.approx([1.0, 3.0]))
    assert label.get_ydata() == pytest.approx([2.0, 0.5])
    assert (prompt.get_color(), label.get_color()) == COLOURS[:2]
    assert axes.get_figure().legends[0].get_texts()[0].get_text() == "at the prompt's last token"
    assert axes.get_ylim()[0] == 0
    assert all(float(tick).is_integer() for tick in axes.get_xticks())  # there is no half of a layer
    assert axes.collections[0].get_paths()[0].get_extents().ymin == pytest.approx(1 - 0.2054, abs=1e-3)
