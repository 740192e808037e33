"""The noise floor by rate: planted updates that lie a known angle from themselves, computed again."""

import numpy as np
import pytest
from planted_compare import LAYERS, QUERIES, likeness, planted

from iclgd.labs.compare.evidence import Evidence
from iclgd.labs.compare.floors import NOTE, TITLE, by_rate, known_to, rounding
from iclgd.labs.compare.page import page
from iclgd.results import Result, array
from iclgd.study import Study

FIELDS = {
    "task": "sentiment",
    "learners": "gd,lcgd",
    "rates": "0.1,0.001,0.01",
    "seeds": 3,
    "init": "trained",
    "nulls": "none",
    "metrics": "accuracy,SimAOU,contrast-AOU,label-share",
}
READING = 0.001  # how far apart reading is from itself
APART = {"gd 0.001": 0.002, "gd 0.01": 0.02, "gd 0.1": 0.5, "lcgd 0.001": 0.0, "lcgd 0.01": 0.003, "lcgd 0.1": 0.008}
HALVES = np.array([0.5, 1.5, 1.0])  # layer by layer, 1 on average


def far(*apart: float) -> float:
    """The sum of mean distances; a cosine that is kept in float32 is 2⁻²⁵ off at most."""
    return sum(float(np.mean(np.sqrt((one * HALVES) ** 2 + 2**-24))) for one in apart)


def cosines(apart: float, first: int = QUERIES, **labels):
    """An update whose mean distance from itself is ``apart``, on the sphere; twice as far after the label word."""
    lengths = apart * np.array([1.0, 2.0])[:, None, None] * np.ones((2, first, LAYERS)) * HALVES
    places = {"position": ("prompt", "label")}
    return array(1 - lengths**2 / 2, "position", "query", "layer", coordinates=places, **labels)


def plant(apart=APART, floors=("other batch", "other precision"), **more):
    def planting(cell, random):
        if "versus" in cell.labels:
            return []
        learner = cell.labels.get("learner", "icl")
        who = {} if "learner" in cell.labels else {"learner": "icl"}
        found = [] if who else [likeness(0.3, random, spread=0, metric=name) for name in ("SimAOU", "contrast-AOU")]
        if cell.labels["seed"] == 0 and (who or learner in apart):
            known = {"other batch": (0.0, QUERIES), "other precision": (READING if who else apart[learner], 8)}
            found += [
                cosines(*known[floor], **who, metric=name, floor=floor)
                for floor in floors
                for name in ("SimAOU", "contrast-AOU")
            ]
        return found

    return planted(planting, **{**FIELDS, **more})


def rows(comparison, position="prompt"):
    return by_rate(Evidence(comparison, position))


def test_every_likeness_stands_beside_its_floors_at_every_rate_slowest_first():
    table = rows(plant())
    assert table.header == ["", "likeness", "other batch", "other precision", "rounding"]
    learners = [f"{kind} {rate}" for kind in ("gd", "lcgd") for rate in (0.001, 0.01, 0.1)]
    one = ["icl", *learners]
    assert [row[0] for row in table.rows] == ["─ SimAOU", *one, "─ contrast, outputs", *one]
    for start in (1, 9):
        reading, *found = table.rows[start : start + 7]
        assert reading[1] == ""
        assert str(reading[2]) == "1.00000"
        assert reading[4].value == pytest.approx(far(READING))
        for row in found:
            apart = APART[row[0]]
            assert row[1].value == pytest.approx(0.3)
            assert row[3].value == pytest.approx(np.mean(1 - (apart * HALVES) ** 2 / 2))
            assert row[4].value == pytest.approx(far(apart, READING))


def test_the_label_words_floor_is_its_own():
    table = rows(plant(), "label")
    assert table.rows[3][0] == "gd 0.01"
    assert table.rows[3][1].value == pytest.approx(0.4)
    assert table.rows[3][4].value == pytest.approx(far(0.04, 2 * READING))


def test_no_likeness_to_anything_changes_by_more_than_is_said():
    """Fresh updates in few dimensions, where it is nearly reached, and a rounded copy of both sides."""
    random = np.random.default_rng(0)
    for dim in (2, 3, 30):
        read, trained = random.standard_normal((2, QUERIES, LAYERS, dim))
        read_again, again = (one + 0.1 * random.standard_normal(one.shape) for one in (read, trained))

        def cos(a, b):
            return (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)

        def planting(cell, _, sides=((read, read_again), (trained, again)), cos=cos):
            who = {} if "learner" in cell.labels else {"learner": "icl"}
            values = np.stack([cos(*sides["learner" in cell.labels])] * 2)
            labels = {"metric": "SimAOU", "floor": "other precision", **who}
            places = {"position": ("prompt", "label")}
            return [array(values, "position", "query", "layer", coordinates=places, **labels)]

        comparison = planted(planting, **{**FIELDS, "learners": "gd", "seeds": 1})
        most = rounding(Evidence(comparison, "prompt"), "SimAOU", "gd 0.01")
        moved = abs(cos(read, trained).mean() - cos(read_again, again).mean())
        assert moved < most
        assert np.abs(cos(read, trained) - cos(read_again, again)).mean() > (0.2 if dim < 4 else 0.05) * most


def test_what_float32_keeps_of_a_cosine_is_no_certainty():
    """Rounded to 1 or above, it may have been 2⁻²⁵ less."""
    comparison = plant({"gd 0.001": 0.0})
    assert rounding(Evidence(comparison, "prompt"), "SimAOU", "gd 0.001") == pytest.approx(2**-12 + far(READING))


def test_the_sentence_says_by_learner_up_to_which_rate_a_number_is_known():
    text = known_to(Evidence(plant(), "prompt"))
    known = "for gd up to 0.001 and not from 0.01 on, for lcgd at every rate."
    assert text == (
        f"Of the first draw: SimAOU is known to within .01 {known} contrast, outputs is known to within .01 {known}"
    )
    assert known_to(Evidence(plant(), "label")).count("lcgd up to 0.01 and not from 0.1 on") == 2


@pytest.mark.parametrize(
    "apart, said",
    [
        ({"gd 0.001": 0.1, "gd 0.01": 0.1, "gd 0.1": 0.1}, "for gd at no rate"),
        ({"gd 0.001": 0.001, "gd 0.01": 0.1, "gd 0.1": 0.001}, "for gd up to 0.001 and not at 0.01"),
        ({"gd 0.001": 0.1, "gd 0.01": 0.1, "gd 0.1": 0.001}, "for gd not at 0.001"),
        ({"gd 0.001": 0.001, "gd 0.01": 0.001}, "for gd up to 0.01 and not from 0.1 on"),
        ({"gd 0.001": 0.0089, "gd 0.01": 0.0089, "gd 0.1": 0.0091}, "for gd up to 0.01 and not from 0.1 on"),
    ],
)
def test_a_number_is_known_no_better_than_at_the_first_rate_where_it_is_not(apart, said):
    assert known_to(Evidence(plant(apart, metrics="SimAOU"), "prompt")) == (
        f"Of the first draw: SimAOU is known to within .01 {said}."  # nothing of lcgd, which has no floor
    )


def test_a_rate_without_a_floor_keeps_its_row_and_its_likeness():
    table = rows(plant({"gd 0.001": 0.1}))
    assert table.rows[3][0] == "gd 0.01"
    assert table.rows[3][1].value == pytest.approx(0.3)
    assert table.rows[3][2:] == ["", "", ""]


def test_without_a_wider_format_there_are_other_batches_and_no_sentence():
    comparison = plant(floors=("other batch",))
    assert rows(comparison).header == ["", "likeness", "other batch", "rounding"]
    assert rows(comparison).rows[2][3] == ""
    assert known_to(Evidence(comparison, "prompt")) == ""
    section = next(s for s in page(comparison.study).sections if s.title.startswith(TITLE))
    assert section.text == NOTE


def test_a_likeness_of_somebody_elses_has_its_floor_but_no_limit_to_what_rounding_does(tmp_path):
    """It need not be a cosine."""
    mine = tmp_path / "mine.py"
    mine.write_text(
        'import iclgd\n\n\n@iclgd.metric("mine", bounds=(-1, 1))\ndef Mine(seen):\n    return None\n', encoding="utf-8"
    )

    def planting(cell, random):
        who = {} if "learner" in cell.labels else {"learner": "icl"}
        return [cosines(0.5, metric="Mine", floor="other precision", **who)]

    comparison = planted(planting, **{**FIELDS, "metrics": f"{mine}:Mine"})
    found = rows(comparison).rows
    assert [row[-1] for row in found[1:]] == [""] * 7
    assert found[2][2].value == pytest.approx(np.mean(1 - (0.5 * HALVES) ** 2 / 2))
    assert known_to(Evidence(comparison, "prompt")) == ""


def test_a_likeness_over_some_of_the_draws_says_so():
    whole = plant()
    study = whole.study
    results = {
        key: Result(result.facts | {"diverged": "it did"}, [])
        if cell.labels.get("learner") == "gd 0.1" and cell.labels["seed"] == 2
        else result
        for (cell, result), key in zip(study.found(), study.results, strict=True)
    }
    some = type(whole)(Study("compare", study.spec, study.cells, study.keys, results))
    assert [row[0] for row in rows(some).rows][2:5] == ["gd 0.001", "gd 0.01", "gd 0.1, 2 of 3 draws"]


def test_one_rate_has_no_table_and_several_have_it_on_the_page_at_both_positions():
    assert rows(plant(rates="0.01")).rows == []
    assert rows(plant(floors=())).rows == []
    shown = page(plant().study)
    texts = {section.title: section.text for section in shown.sections if section.title.startswith(TITLE)}
    assert list(texts) == [
        f"{TITLE}, at the prompt's last token",
        f"{TITLE}, at the class-0 label word after the prompt",
    ]
    first, second = texts.values()
    assert first == f"{NOTE} {known_to(Evidence(plant(), 'prompt'))}"
    assert second != first
    assert max(map(len, shown.table(next(iter(texts))).text(80).splitlines())) <= 80
