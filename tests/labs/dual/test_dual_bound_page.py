"""The page of `dual bound`, from planted bounds: demonstrations 1 and 2, one layer of two heads."""

import numpy as np
import pytest
from planted_dual import facts, study_of

from charted import charted, limits
from iclgd.lab import Cell
from iclgd.labs.dual.bound_page import page, power
from iclgd.labs.dual.spec import BoundSpec
from iclgd.results import Result, array
from iclgd.study import Study

AXES = ("demonstrations", "layer", "head")
FLAT = "with the best split of each head (keys so short that the kernel is the same between any two)"


def study(counts: tuple[int, ...] = (1, 2), **changes: object) -> Study:
    """log₁₀: the bound of the best split is 2 and 3, the gap 0 and −1; of the own split 40 and 41, and 20."""

    def result(cell: Cell) -> Result:
        query = int(cell.labels["query"])
        arrays = []
        for split, bound, gap in (("own", (40.0, 41.0), (20.0, 20.0)), ("best", (2.0, 3.0), (0.0, -1.0))):
            values = {
                "tokens": [[20.0 + query] * 2, [40.0] * 2],
                "split": [[0.0 if split == "own" else np.inf] * 2] * 2,
                "bound": [[bound[0]] * 2, [bound[1]] * 2],
                "gap": [[gap[0]] * 2, [gap[1], gap[1] + 1]],
            } | {n: v for (s, n), v in changes.get("values", {}).items() if s == split}
            for name, rows in values.items():
                found = np.array(rows)[: len(counts), None]
                arrays.append(array(found, *AXES, quantity=name, split=split, coordinates={"demonstrations": counts}))
        return Result(facts(10), arrays) if query < 2 else Result({})

    return study_of("dual bound", BoundSpec(k=10, queries=3), result)


def test_the_answer_says_how_far_the_bound_is_from_the_gap_and_where_both_go() -> None:
    """Of the four heads at 2 demonstrations the ratio is 10⁴ in two and 10³ in two: 10^3.5 in the middle."""
    assert page(study()).answer == (
        f"The bound is never exceeded; {FLAT} it is 3.16e+03 times the measured gap in the "
        "median head at 2 demonstrations and grows from 100 at 1 to 1e+03, while the gap falls from 1 to .316."
    )


def test_a_gap_above_its_bound_is_counted() -> None:
    above = {("own", "gap"): [[20.0, 40.5], [20.0, 20.0]]}
    assert page(study(values=above)).answer.startswith("The measured gap is above the bound in 2 of 16 cases; with")


def test_a_bound_that_falls_is_said_to_fall() -> None:
    falls = {("best", "bound"): [[3.0, 3.0], [2.0, 2.0]], ("best", "gap"): [[-1.0, -1.0], [0.0, 0.0]]}
    answer = page(study(values=falls)).answer
    assert "and falls from 1e+03 at 1 to 100, while the gap grows from .1 to 1" in answer


def test_one_number_of_demonstrations_has_no_direction() -> None:
    assert page(study(counts=(1,))).answer == (
        f"The bound is never exceeded; {FLAT} it is 100 times the measured gap in the median head at 1 demonstration."
    )


def test_what_turns_on_the_way_is_not_said_to_fall_and_a_split_that_ends_finite_makes_no_kernel_flat() -> None:
    planted = {"tokens": (20, 40, 80), "split": (np.inf, 1, 1), "bound": (3, 2, 1), "gap": (-1, 0, -2)}
    turning = {(split, name): [[v, v] for v in row] for split in ("own", "best") for name, row in planted.items()}
    answer = page(study(counts=(1, 2, 4), values=turning)).answer
    assert "falls from 1e+03 at 1 to 10, while the gap goes from .1 to .01" in answer
    assert FLAT not in answer


def test_tables_have_medians_by_split() -> None:
    own, best = (section.table for section in page(study()).sections)
    assert own is not None
    assert best is not None
    assert list(own.header) == ["demonstrations", "tokens", "split t", "bound", "measured gap"]
    assert own.texts() == [["1", "20", "1", "10^40.0", "10^20.0"], ["2", "40", "1", "10^41.0", "10^20.5"]]
    assert best.texts() == [["1", "20", "∞", "100", "1"], ["2", "40", "∞", "1e+03", ".316"]]
    assert own.plain()["rows"][0][3] == {"value": 40.0, "note": "log10", "text": "10^40.0"}


def test_the_page_says_that_what_the_theorem_fixes_before_was_taken_after() -> None:
    told = [section.text for section in page(study()).sections]
    assert all("w, ρ and the best split are taken after the fact" in text for text in told)


def test_heads_that_see_nothing_are_counted_and_left_out() -> None:
    nothing = {(split, name): [[1.0, np.nan], [1.0, np.nan]] for split in ("own", "best") for name in ("bound", "gap")}
    shown = page(study(values=nothing))
    assert "1 head with no demonstration in view left out." in shown.sections[0].text
    assert shown.sections[1].table.texts()[1][3:] == ["10", "10"]
    assert "left out" not in page(study()).sections[0].text
    everything = {key: [[np.nan] * 2] * 2 for key in nothing}
    assert page(study(values=everything)).answer.startswith("No head sees both")


@pytest.mark.parametrize(
    "log10, text", [(1.0, "10"), (3.99, "9.77e+03"), (4.0, "10^4.0"), (-5.5, "10^-5.5"), (np.nan, "n/a"), (np.inf, "∞")]
)
def test_numbers_of_any_size_are_written(log10: float, text: str) -> None:
    assert power(log10) == text


def test_the_subtitle_says_what_is_held_out_and_counts_queries() -> None:
    assert page(study()).subtitle == "smollm2-135m · films · k = 10 · seed 0 · 2 queries · float64 · 8 held out"


def test_the_figure_has_bound_and_gap_of_both_splits() -> None:
    left, right = page(study()).drawings["bound"].figure.axes
    assert [line.get_ydata().tolist() for line in left.lines] == [[40, 41], [20, 20.5]]
    assert [line.get_ydata().tolist() for line in right.lines] == [[2, 3], [0, -0.5]]
    assert [text.get_text() for text in left.get_figure().legends[0].get_texts()] == ["bound", "measured gap"]
    assert left.lines[0].get_xdata().tolist() == [1, 2]
    for axes in (left, right):
        assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "2"]


def test_the_figure_of_both_splits_stands_with_the_first() -> None:
    own, best = page(study()).sections
    assert own.figure is not None
    assert best.figure is None


def test_the_picture_has_bound_and_gap_of_both_splits_with_their_range_over_heads() -> None:
    data = page(study()).picture.data
    named = {name: [data["names"][name][i] for i in codes] for name, codes in data["codes"].items()}
    assert named["name"] == ["bound", "measured gap"] * 2
    assert [panel.split(", ")[1] for panel in named["panel"]] == ["own split"] * 2 + ["best split"] * 2
    assert data["points"] == [1, 2]
    assert data["values"] == pytest.approx([40, 41, 20, 20.5, 2, 3, 0, -0.5])
    assert data["low"] == pytest.approx([40, 41, 20, 20, 2, 3, 0, -1])
    assert data["high"] == pytest.approx([40, 41, 20, 21, 2, 3, 0, 0])
    assert page(study(counts=(1,))).picture is None


def test_every_quantity_of_a_split_has_a_panel_with_the_medians_of_its_table_and_their_range() -> None:
    own, best = (section.widget for section in page(study()).sections)
    medians = {("tokens",): [20.5, 40], ("log₁₀ split t",): [0, 0], ("log₁₀ bound",): [40, 41]}
    assert charted(own, "panel") == medians | {("log₁₀ measured gap",): [20, 20.5]}
    assert limits(own, "panel")[("log₁₀ measured gap",)] == [[20, 20], [20, 21]]
    assert ("log₁₀ split t",) not in charted(best, "panel")  # infinite
    assert [section.widget for section in page(study(counts=(1,))).sections] == [None, None]


def test_the_terminal_shows_both_splits_unasked() -> None:
    assert [section.brief for section in page(study()).sections] == [True, True]
