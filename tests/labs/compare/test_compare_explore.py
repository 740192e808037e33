"""What the explorer is given of a comparison: the first draw of the first weights, task by task, at its place."""

import numpy as np
import pytest
from planted_compare import planted

from iclgd.labs.compare.explore import explored
from iclgd.looked import ATTENTION, CONTRIBUTION, OWN_ATTENTION
from iclgd.report import explorer
from iclgd.results import array

FIELDS = {"task": "sentiment,kinds", "learners": "gd,lcgd", "seeds": "4,7", "init": "trained,random", "floor": False}
QUERIES = 2


def level(cell) -> int:
    """Another number for every cell."""
    labels = cell.labels
    who = ("", "gd 0.001", "lcgd 0.001").index(str(labels.get("learner", "")))
    return 1 + who + 3 * (labels["seed"] == 7) + 6 * (labels["task"] == "kinds") + 12 * (labels["init"] == "random")


def plant(cell, _random):
    if "versus" in cell.labels:
        return []
    value, found = level(cell), []
    for extra, name in enumerate(("zero-shot", "icl") if "learner" not in cell.labels else (cell.labels["learner"],)):
        who = {"learner": name} if "learner" not in cell.labels else {}
        bytes_of = np.full((QUERIES, 1, 1, 3), value + 100 * extra, dtype=np.uint8)
        found.append(array(np.full((QUERIES, 2), -value - 0.5 * extra), "query", "label", quantity="scores", **who))
        found.append(array(bytes_of, "query", "layer", "head", "key", quantity=OWN_ATTENTION, **who))
        if name == "icl":
            for more, what in ((1, ATTENTION), (2, CONTRIBUTION)):
                found.append(array(bytes_of + more, "query", "layer", "head", "key", quantity=what, **who))
    if "learner" in cell.labels:
        alike = np.stack([np.full((QUERIES, 3), value / 100), np.full((QUERIES, 3), -value / 100)])
        where = {"position": ("prompt", "label")}
        found.append(array(alike, "position", "query", "layer", coordinates=where, metric="SimAOU"))
    return found


def shown(position="prompt", looked=True):
    comparison = planted(plant, **FIELDS, position=position)
    for cell, result in comparison.study.found():
        if looked and "learner" not in cell.labels:
            texts = {"start": ["<s>"], "demos": [["a"]], "label_tokens": ["b"], "separator": ["c"]}
            result.facts["looked"] = texts | {"queries": [f"q{level(cell)}"] * QUERIES, "answers": [0] * QUERIES}
    return explored(comparison)


@pytest.mark.parametrize("position, sign", [("prompt", 1), ("label", -1)])
def test_every_number_is_of_the_first_draw_of_the_first_weights_at_the_studys_place(position, sign):
    (section,) = shown(position)
    assert section.title == explorer.TITLE
    sentiment, kinds = section.widget.data["episodes"]
    for one, base in ((sentiment, 0), (kinds, 6)):
        assert one["queries"] == [f"q{base + 1}"] * QUERIES
        assert {who: values[0] for who, values in one["scores"].items()} == {
            "zero-shot": [-base - 1] * 2,
            "icl": [-base - 1.5] * 2,
            "gd 0.001": [-base - 2] * 2,
            "lcgd 0.001": [-base - 3] * 2,
        }
        assert one["alike"] == {
            "gd 0.001": [[sign * (base + 2) / 100] * 3] * QUERIES,
            "lcgd 0.001": [[sign * (base + 3) / 100] * 3] * QUERIES,
        }
        bytes_of = {"zero-shot": base + 1, "icl": base + 101, "gd 0.001": base + 2, "lcgd 0.001": base + 3}
        expected = {
            who: explorer.block(np.full((QUERIES, 1, 1, 3), value, np.uint8)) for who, value in bytes_of.items()
        }
        assert one["own"] == expected
        for name, more in (("attention", 1), ("contribution", 2)):
            assert one[name] == explorer.block(np.full((QUERIES, 1, 1, 3), base + 101 + more, np.uint8))
    assert [one["title"] for one in (sentiment, kinds)] == ["sentiment", "kinds"]


def test_cells_of_which_nothing_was_kept_to_look_at_have_no_explorer():
    assert shown(looked=False) == []
