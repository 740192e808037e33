"""Every table of a comparison, from planted numbers."""

from dataclasses import replace

import numpy as np
import pytest
from planted_compare import QUERIES, planted
from planted_tables import FIELDS, HALF, LEVEL, plant

from iclgd.lab import Cell
from iclgd.labs.compare import nearer as module
from iclgd.labs.compare.evidence import Evidence
from iclgd.labs.compare.nearer import nearer
from iclgd.labs.compare.page import page
from iclgd.labs.compare.spec import CONSTANT, WHOLE
from iclgd.labs.compare.sweeps import swept
from iclgd.results import Array, array


@pytest.fixture(scope="module")
def comparison():
    return planted(plant, **FIELDS)


@pytest.fixture(scope="module")
def tables(comparison):
    return Evidence(comparison, "prompt")


def texts(table, row: str, place: int = 0) -> list[str]:
    return [line for line in table.texts() if line[0] == row][place][1:]


def test_a_tasks_table_has_learners_the_best_nulls_untrained_models_and_the_floor(tables):
    table = tables.one_task("sentiment")
    assert list(table.header) == ["", "accuracy", "calibrated", "SimAOU", "SimAM_Δ"]
    learners = ["zero-shot", "icl", *LEVEL]
    best = [f"{kind}, best of 2, column by column" for kind in ("gd", "lcgd")]
    nulls = [
        f"{name}: {null}"
        for name in ("gd 0.1", "lcgd 0.1")
        for null in ("another query's update", "trained on wrong labels")
    ]
    floors = [f"{name}: computed again, other precision" for name in ("icl", "gd 0.1", "lcgd 0.1")]
    rules = [["─ nulls"], ["─ untrained (random)"], ["─ noise floor"]]
    rows = [*learners, *best, *rules[0], *nulls, *rules[1], *learners, *rules[2], *floors]
    assert [line[0] for line in table.texts()] == rows
    assert texts(table, "icl") == [".80 [.62 .91]", "", "", ""]
    assert texts(table, "gd 0.1") == [".70 [.51 .84]", ".60 [.41 .76]", ".200 [.175 .225]", ".100 [.075 .125]"]
    assert texts(table, "gd 0.1", 1) == [".67 [.48 .81]", ".57 [.38 .73]", ".150 [.125 .175]", ".075 [.050 .100]"]
    assert texts(table, best[1]) == [".90", ".70", ".400", ".200"]
    assert texts(table, nulls[1]) == ["", "", ".030 [.005 .055]", "n/a"]
    assert texts(table, floors[0]) == ["", "", ".500 [.475 .524]", "n/a"]
    assert table.rows[2][3].low == pytest.approx(0.1 - HALF, abs=1e-3)


def test_answers_stand_beside_readings_with_one_answer_for_all_and_the_nulls_that_answer(tables):
    """What is missed is of all draws' effect: (1 · −.01 + 2 · 0 + 9 · .01) / 12 above the level, and .1 by task."""
    table = tables.answers(["sentiment", "kinds"])
    assert list(table.header) == ["", "accuracy", "agrees with icl", "margins missed"]
    rows = ["zero-shot", "icl", CONSTANT, "gd 0.01", "gd 0.1"]
    rows += ["  trained on wrong labels", "  a model with random weights", "lcgd 0.01", "lcgd 0.1"]
    assert [line[0] for line in table.texts()] == [*rows, *rows[5:7]]
    assert [text.split()[0] if text else "" for text in texts(table, CONSTANT)] == ["", ".60", "2.11"]
    assert [text.split()[0] if text else "" for text in texts(table, rows[5])] == [".20", "", "1.61"]
    assert [text.split()[0] if text else "" for text in texts(table, "lcgd 0.1")] == [".90", ".70", ".71"]
    assert texts(table, rows[6])[2].startswith(".95 [")  # draws of random weights count alike: their own effects do


def test_who_is_surely_nearer_to_reading_is_said_task_by_task(tables):
    """All are .005 apart or more in every draw: one answer misses 2, wrong labels 1.5, doing nothing .35."""
    table = nearer(tables)
    assert list(table.header) == ["", "margins missed", "surely less than", "surely more than"]
    assert [line[0] for line in table.texts()][3:5] == ["sentiment: lcgd 0.1", "kinds: gd 0.01"]
    assert texts(table, "sentiment: lcgd 0.1")[0].startswith(".61 [.")
    less = f"{CONSTANT}, trained on wrong labels"
    assert texts(table, "sentiment: lcgd 0.1")[1:] == [less, "doing nothing"]
    assert texts(table, "kinds: gd 0.01")[0].startswith("1.11 [")
    assert texts(table, "kinds: gd 0.01")[1:] == [less, "doing nothing"]


def test_who_is_nearer_is_judged_by_a_task_s_own_draws():
    """Doing nothing misses more than any learner on sentiment, and less on kinds."""

    def turned(cell, random):
        found = plant(cell, random)
        far = cell.labels["task"] == "sentiment"
        return [
            replace(one, values=one.values + 3)
            if far and (one.labels.get("learner"), one.labels.get("metric")) == ("zero-shot", "margins-missed")
            else one
            for one in found
        ]

    table = nearer(Evidence(planted(turned, **FIELDS), "prompt"))
    less = f"{CONSTANT}, trained on wrong labels"
    assert texts(table, "sentiment: gd 0.1")[1:] == [f"doing nothing, {less}", ""]
    assert texts(table, "kinds: gd 0.1")[1:] == [less, "doing nothing"]


def test_who_is_nearer_is_corrected_for_the_comparisons_of_all_tasks(tables, monkeypatch):
    families = []
    monkeypatch.setattr(
        module, "holm", lambda family: families.append(len(family)) or [replace(one, corrected=1.0) for one in family]
    )
    table = nearer(tables)
    assert families == [24]  # of two tasks four learners, each against nothing, one answer and wrong labels
    assert all(line[2:] == ["", ""] for line in table.texts())


def test_shares_whose_wholes_are_not_there_are_not_shown():
    def without(cell, random):
        return [one for one in plant(cell, random) if one.labels.get("quantity") != WHOLE.format("margins-missed")]

    tables = Evidence(planted(without, **FIELDS), "prompt")
    assert not tables.comparison.values(["kinds"], None, init="trained", learner="gd 0.1", metric="margins-missed").size
    assert tables.comparison.values(["kinds"], None, init="trained", learner="gd 0.1", metric="accuracy").size


def test_a_draw_that_one_of_two_lost_counts_for_neither():
    def lost(cell, random):
        found, labels = plant(cell, random), cell.labels
        gone = labels.get("learner") == "gd 0.1" and labels["seed"] == 2
        return [one for one in found if not (gone and one.labels.get("metric") == "margins-missed")]

    comparison = planted(lost, **FIELDS)
    one, two = ({"init": "trained", "learner": name, "metric": "margins-missed"} for name in ("gd 0.01", "gd 0.1"))
    found = comparison.difference(["kinds"], None, one, two)
    assert found.estimate.mean == pytest.approx(0.1)
    assert found.estimate.seeds == 2


def test_differences_of_answers_are_to_nulls_to_one_answer_for_all_and_to_the_first_learner(tables):
    table = tables.differences(["sentiment", "kinds"], "margins-missed")
    means = {line[0]: line[1].split()[0] for line in table.texts()}
    assert means[f"gd 0.1 − {CONSTANT}"] == "-1.200"
    assert means["lcgd 0.1 − gd 0.1"] == "-.200"
    assert means["lcgd 0.1 − trained on wrong labels"] == "-.900"
    assert means["gd 0.1: trained − random"] == "-.043"


def test_predictions_are_shown_with_recall_its_base_rate_and_tau(tables):
    table = tables.predictions("sentiment")
    assert list(table.header)[1:4] == ["contextually calibrated", "agrees with icl", "margins missed"]
    assert list(table.header)[4:] == ["Rec2FTP", "its base rate", "above it by", "Kendall's τ"]
    assert [line[0] for line in table.texts()][5:8] == ["lcgd 0.1", "zero-shot, random", "icl, random"]
    assert texts(table, "zero-shot") == ["", "", ".36 [.32 .39]", *[""] * 4]
    assert texts(table, "icl") == [".60 [.41 .76]", *[""] * 6]
    recall = [".75 (9/12)", ".50 (15/30)"]
    assert texts(table, "gd 0.01") == ["", ".70 [.51 .84]", ".91 [.87 .94]", *recall, ".33", ".025 [.000 .050]"]
    assert texts(table, "lcgd 0.1, random")[4:] == [".50 (15/30)", ".19", ".088 [.063 .112]"]


def test_the_recall_has_an_interval_from_five_draws_on():
    shown = {}
    for seeds in (4, 5):
        found = Evidence(planted(plant, **{**FIELDS, "seeds": seeds, "task": "sentiment"}), "prompt")
        shown[seeds] = texts(found.predictions("sentiment"), "gd 0.01")[5]
    assert shown[4] == ".33"
    assert shown[5].startswith(".33 [")


def test_tasks_stand_side_by_side_with_their_spread_over_draws_and_their_mean(tables):
    table = tables.by_task("SimAOU")
    assert list(table.header) == ["", "sentiment", "kinds", "mean"]
    assert [line[0] for line in table.texts()] == [*LEVEL, *(f"{name}, random" for name in LEVEL)]
    assert texts(table, "lcgd 0.01") == [".300 ± .010", ".500 ± .010", ".400 [-.652 .925]"]
    assert texts(table, "gd 0.1, random") == [".150 ± .010", ".350 ± .010", ".250 [-.694 .878]"]
    accuracies = tables.by_task("accuracy")
    assert [line[0] for line in accuracies.texts()][:3] == ["zero-shot", "icl", "gd 0.01"]
    assert texts(accuracies, "icl") == [".800 ± .000", ".800 ± .000", ".800 [.772 .825]"]


def test_one_draw_has_no_spread_and_a_learner_that_diverged_no_mean():
    alone = Evidence(planted(plant, **{**FIELDS, "seeds": 1}), "prompt")
    assert texts(alone.by_task("SimAOU"), "gd 0.1") == [".190", ".390", ".290 [-.682 .891]"]
    lost = Evidence(planted(plant, **FIELDS), "prompt")
    for cell, result in lost.comparison.study.found():
        result.facts["diverged"] = "it did" if "learner" in cell.labels and "versus" not in cell.labels else None
    assert texts(lost.by_task("SimAOU"), "gd 0.1") == ["3 diverged", "3 diverged", "n/a"]
    assert texts(lost.short(["sentiment", "kinds"]), "gd 0.1") == ["diverged in 6 of 6 draws", "", ""]
    assert texts(lost.one_task("kinds"), "gd 0.1") == ["diverged in 3 of 3 seeds", "", "", ""]
    assert texts(lost.one_task("kinds"), "gd, best of 2, column by column") == ["n/a"] * 4
    assert swept(lost.comparison) == {}


def test_nulls_and_the_floor_stand_below_a_learner_task_by_task(tables):
    table = tables.nulls_by_task("SimAOU", ["gd 0.1"])
    titles = ["on the demonstrations themselves", "another query's update", "trained on wrong labels"]
    titles += ["computed again, other precision"]
    assert [line[0] for line in table.texts()] == [f"gd 0.1: {title}" for title in titles]
    over = [".300 [-.678 .895]", ".110 [-.744 .828]", ".130 [-.737 .835]", ".700 [-.651 .987]"]
    assert [line[3] for line in table.texts()] == over
    assert texts(table, "gd 0.1: trained on wrong labels")[:2] == [".030 [.005 .055]", ".230 [.205 .255]"]


def test_a_mean_over_fewer_tasks_than_its_neighbours_says_of_how_many_it_is():
    """Where only a null is missing in a task, learners are not."""

    def lacking(cell: Cell, random: np.random.Generator) -> list[Array]:
        gone = cell.labels["task"] == "kinds"
        return [one for one in plant(cell, random) if not (gone and one.labels.get("null") == "other-query")]

    few = Evidence(planted(lacking, **FIELDS), "prompt")
    row = "gd 0.1: another query's update, 1 of 2 tasks"
    assert texts(few.nulls_by_task("SimAOU", ["gd 0.1"]), row) == [
        *(".010 [-.015 .035]", "n/a", ".010 [-.015 .035]"),
    ]
    whole = texts(few.nulls_by_task("SimAOU", ["gd 0.1"]), "gd 0.1: on the demonstrations themselves")
    assert whole[2] == texts(few.by_task("SimAOU"), "gd 0.1")[2] == ".300 [-.678 .895]"
    short = texts(few.short(["sentiment", "kinds"]), "  another query's update, 1 of 2 tasks")
    assert short == ["", ".020 [-.005 .045]", ".010 [-.015 .035]"]


def test_two_learners_of_one_rate_are_held_against_each_other(tables):
    assert tables.pairs(["sentiment"]).texts() == [
        ["gd 0.01 ~ lcgd 0.01", ".050 [.025 .075]"],
        ["gd 0.1 ~ lcgd 0.1", ".100 [.075 .125]"],
    ]


def test_in_short_the_last_rate_of_each_learner_has_its_nulls_below_it(tables):
    table = tables.short(["sentiment", "kinds"])
    below = ["  another query's update", "  trained on wrong labels", "  a model with random weights"]
    rows = ["zero-shot", "icl", "gd 0.01", "gd 0.1", *below, "lcgd 0.01", "lcgd 0.1", *below]
    assert [line[0] for line in table.texts()] == rows
    assert texts(table, "gd 0.1") == [".70 [.67 .73]", ".600 [-.632 .972]", ".300 [-.678 .895]"]
    assert texts(table, below[1]) == [".20 [.18 .23]", "", ".130 [-.737 .835]"]
    assert texts(table, below[2], 1) == [".87 [.84 .89]", "", ".450 [-.641 .939]"]


def test_labels_are_shown_by_accuracy_share_and_contrast(tables):
    table = tables.labels(["sentiment"])
    assert list(table.header) == ["", "right labels", "wrong labels", "labels' share", "contrast, outputs"]
    assert texts(table, "icl") == [".80 [.62 .91]", ".30 [.16 .49]", ".05 [.03 .07]", ""]
    assert texts(table, "gd 0.1") == [".70 [.51 .84]", ".20 [.09 .38]", ".10 [.08 .12]", ".500 [.475 .524]"]
    assert texts(table, "  another query's update", 3) == ["", "", "", ".020 [-.005 .045]"]
    assert len(table.rows) == 9


def test_every_difference_is_named_by_what_is_taken_from_what(tables):
    table = tables.differences(["sentiment"], "SimAOU")
    own = ["{} − another query's update", "{} − trained on wrong labels", "{}: trained − random"]
    pairs = ["lcgd 0.01 − gd 0.01", "lcgd 0.1 − gd 0.1"]
    assert [line[0] for line in table.texts()] == [*(one.format(name) for name in LEVEL for one in own), *pairs]
    assert texts(table, "gd 0.1 − trained on wrong labels")[0].startswith(".170 [")
    assert texts(table, "lcgd 0.1 − gd 0.1")[1:] == ["< .001", "above", "3 up, 0 down of 3"]
    contrast = [line[0] for line in tables.differences(["sentiment"], "contrast-AOU").texts()]
    assert contrast == [*(f"{name} − another query's update" for name in LEVEL), *pairs]
    answers = tables.differences(["sentiment"], "accuracy")
    assert texts(answers, "gd 0.01 − zero-shot") == [".200 [.045 .346]", ".013", "above", ""]
    assert texts(answers, "icl: right − wrong labels")[0] == ".500 [.290 .664]"
    assert len(answers.rows) == 10


def test_a_divergence_by_query_is_no_share():
    def diverging(cell: Cell, random: np.random.Generator) -> list[Array]:
        return [array(np.full(QUERIES, 2.5), "query", metric="KL")] if "learner" in cell.labels else []

    found = planted(diverging, **{**FIELDS, "metrics": "accuracy,KL", "learners": "gd", "rates": "0.1"})
    assert found.estimate(["sentiment"], None, init="trained", learner="gd 0.1", metric="KL").mean == 2.5


# the page


def test_the_page_has_its_sections_in_order_and_shows_three_tables_unasked(comparison):
    found = page(comparison.study)
    assert found.subtitle == (
        "smollm2-135m · sentiment, kinds · k = 8 · 3 seeds × 30 queries · float32 · at the prompt's last token"
    )
    assert list(found.drawings) == ["layers-prompt", "layers-label", "alpha", "gradients", "rates", "sizes"]
    brief = [section.title for section in found.sections if section.brief]
    assert brief == ["In short, at the prompt's last token", "Accuracy", "SimAOU, at the prompt's last token"]
    titles = [section.title for section in found.sections]
    assert titles[7:9] == ["Answers beside reading's", "Nearer to reading, task by task"]
    assert titles[9:12] == ["What labels change, at the prompt's last token", "Accuracy", "Calibrated"]
    assert titles.count("Training") == 1
    for name in ("accuracy", "SimAOU", "SimAM_Δ", "contrast, outputs", "agrees with icl", "margins missed"):
        assert f"Differences in {name}, at the prompt's last token" in titles
    for name in ("Kendall's τ", "labels' share of the update"):
        assert f"Differences in {name}, at the prompt's last token" not in titles
    label = [title for title in titles if title.endswith("at the class-0 label word after the prompt")]
    assert "Differences in SimAOU, at the class-0 label word after the prompt" in label
    assert "Differences in accuracy, at the class-0 label word after the prompt" not in label
    assert "Two finetuned learners, at the class-0 label word after the prompt" in label


def test_tasks_that_differ_in_size_are_said_by_their_range():
    comparison = planted(lambda cell, random: [], **FIELDS)
    for place, result in enumerate(comparison.study.results.values()):
        result.facts["queries"], result.facts["demonstrations"] = 10 * min(place + 1, 3), min(place + 2, 6)
    assert "k = 2 to 6 · 3 seeds × 10 to 30 queries · float32" in page(comparison.study).subtitle
