"""The page of `dual check`, from planted heads: two layers of three heads, two queries, a third that is not there."""

import json

import numpy as np
import pytest
import torch
from planted_dual import facts, row, study_of

from charted import charted, limits
from iclgd.lab import Cell
from iclgd.labs.dual import check_page
from iclgd.labs.dual.check_figures import DRAWN
from iclgd.labs.dual.check_page import Heads, page
from iclgd.labs.dual.spec import CheckSpec
from iclgd.results import Result, array
from iclgd.study import Study

SHARE = np.array([[[0.1, 0.2, 0.3], [0.5, 0.6, 0.7]], [[0.3, 0.4, 0.5], [0.7, 0.8, 0.9]]])  # query layer head
STEPS = np.zeros((2, 2, 3, 2))
STEPS[0, ..., 0], STEPS[1, ..., 0], STEPS[1, ..., 1] = 1, 3, 4  # cosine .6, lengths 1 and 5
PARTS = np.array([[0.8, 0.2], [0.2, 0.8]])  # query demo: weighted by length .3 and .7
SIZES = (16, 64)


def heads_of(query: int, **changes: np.ndarray) -> Result:
    by_head = {
        "residual": np.full((2, 3), 1e-14) * (1 + query),
        "kernel_residual": np.full((2, 3), 1e-12),
        "mass": np.full((2, 3), 0.4 + 0.2 * query),
        "share": SHARE[query],
        "cosine": np.array([[-0.5] * 3, [0.5] * 3]),
        "span": np.full((2, 3), 2.0),
        "rank": np.full((2, 3), 1.5),
        "own": np.array([[1.0, 1, 1], [1, 1, 0]]),
        "first": np.full((2, 3), 0.1 + 0.2 * query),
        "labels": np.full((2, 3), 0.2 + 0.2 * query),
        "needed": np.full((2, 3), 24.0),
        "needed_moved": np.full((2, 3), 4.0),
        "flipped_cosine": np.full((2, 3), 0.9),
        "flipped_change": np.full((2, 3), 0.25),
    } | changes
    arrays = [array(values, "layer", "head", quantity=name) for name, values in by_head.items()]
    arrays.append(array(STEPS[query], "layer", "head", "dim", quantity="steps"))
    parts = np.broadcast_to(PARTS[query], (2, 3, 2))
    arrays.append(array(parts, "layer", "head", "demo", quantity="contributions"))
    for name, scale in (("random", 1.0), ("moved", 0.5)):
        errors = np.stack([np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3) / 2]) * scale
        arrays.append(array(errors, "size", "layer", "head", quantity=name, coordinates={"size": SIZES}))
    return Result(facts(query=f"film {query}"), arrays)


def study(queries: int = 3, **changes: np.ndarray) -> Study:
    def result(cell: Cell) -> Result:
        query = int(cell.labels["query"])
        return heads_of(query, **changes) if query < 2 else Result({})

    return study_of("dual check", CheckSpec(model="smollm2-135m", k=2, queries=queries), result)


def test_the_answer_says_that_all_heads_hold_how_large_the_step_is_and_what_it_depends_on() -> None:
    assert page(study()).answer == (
        "All 6 heads are their zero-shot part plus one gradient step on a kernel model (largest residual 2e-14, kernel "
        "residual 1e-12). The step is .50 of a head on average, from .30 (layer 0) to .70 (layer 1), .37 of it from "
        "label words (cosine .90 with the step of wrong labels), and depends on the query (cosine .60 between two "
        "queries' steps)."
    )


@pytest.mark.parametrize("name", ["residual", "kernel_residual"])
def test_a_head_that_either_residual_leaves_out_is_not_counted(name: str) -> None:
    off = np.full((2, 3), 1e-14)
    off[1, 2] = 2e-9
    assert page(study(**{name: off})).answer.startswith("Only 5 of 6 heads are")


def test_single_precision_is_asked_for_what_it_can_give() -> None:
    near = {"residual": np.full((2, 3), 1e-5)}
    double, single = CheckSpec(k=2, queries=1), CheckSpec(k=2, queries=1, dtype="float32")
    for spec, says in ((double, "Only 0 of 6"), (single, "All 6")):
        assert page(study_of("dual check", spec, lambda _cell: heads_of(0, **near))).answer.startswith(says)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("size, says", [(9e-10, "All 6"), (2e-9, "Only 0 of 6")])
def test_the_kernels_own_residual_is_asked_for_double_precision_whatever_the_model_has(
    dtype: str, size: float, says: str
) -> None:
    spec, off = CheckSpec(k=2, queries=1, dtype=dtype), {"kernel_residual": np.full((2, 3), size)}
    assert page(study_of("dual check", spec, lambda _cell: heads_of(0, **off))).answer.startswith(says)


def test_one_query_has_no_other_to_compare_its_step_with() -> None:
    shown = page(study(queries=1))
    assert shown.answer.endswith("(cosine .90 with the step of wrong labels).")
    assert "same step" not in [line[0] for line in shown.table("The step").texts()]


def test_steps_that_are_alike_hardly_depend_on_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "STEPS", np.ones((2, 2, 3, 2)))
    assert "and hardly depends on the query (cosine 1.00" in page(study()).answer


def test_the_summary_has_each_quantity_with_its_extreme_layers() -> None:
    table = page(study()).table("The step")
    assert row(table, "attention") == ["attention", ".50", ".50 (layer 0)", ".50 (layer 0)"]
    assert row(table, "share") == ["share", ".50", ".30 (layer 0)", ".70 (layer 1)"]
    assert row(table, "cosine") == ["cosine", ".00", "-.50 (layer 0)", ".50 (layer 1)"]
    assert [line[0] for line in table.texts()] == [
        *("attention", "share", "cosine", "directions", "rank of ΔW", "label words"),
        *("flipped cosine", "flipped change", "same step"),
    ]


def test_the_charts_have_every_head_every_demonstration_and_the_errors_of_random_features() -> None:
    found = {section.title: section.widget for section in page(study()).sections if section.widget}
    assert list(found) == ["The step", "Demonstrations", "Random features"]
    heads = charted(found["The step"], "panel", "name")
    assert heads["share", "0"] == [0.2, 0.3, 0.4]
    assert heads["cosine", "1"] == [0.5] * 3
    assert {panel for panel, _ in heads} == {line[0] for line in page(study()).table("The step").texts()}
    assert charted(found["Demonstrations"], "name") == {("0",): [0.3, 0.7], ("1",): [0.3, 0.7]}
    assert found["Demonstrations"].data["points"] == [1, 2]
    errors = found["Random features"]
    assert errors.data["points"] == list(SIZES)
    assert charted(errors, "name") == {("own keys",): [2.5, 1.25], ("keys moved",): [1.25, 0.625]}
    assert limits(errors, "name")[("own keys",)] == [[0.5, 0.25], [4.5, 2.25]]


def test_the_picture_has_by_layer_what_the_answer_says_of_the_step() -> None:
    picture = page(study()).picture
    assert picture.data["points"] == [0, 1]
    assert charted(picture, "name") == {
        ("share",): [0.3, 0.7],
        ("flipped cosine",): [0.9, 0.9],
        ("same step",): [0.6, 0.6],
        ("label words",): pytest.approx([(0.2 + 5 * 0.4) / 6] * 2, abs=1e-5),  # steps of length 1 and 5
    }
    assert ("same step",) not in charted(page(study(queries=1)).picture, "name")  # there is no other query


def test_layers_and_heads_have_their_rows() -> None:
    shown = page(study())
    layers, heads = shown.table("By layer"), shown.table("By head")
    assert layers.header[:4] == ["layer", "residual", "kernel residual", "attention"]
    assert row(layers, "1") == [
        *("1", "2e-14", "1e-12", ".50", ".70", ".50", "2.00", "1.50", ".30", ".90", ".25", ".60", ".80 (head 2)")
    ]
    assert row(heads, "1.0")[:6] == ["1.0", "2e-14", "1e-12", ".50", ".60", ".50"]
    assert len(heads.rows) == 6
    assert len(heads.header) == len(heads.rows[0])


def test_residuals_are_written_with_two_digits() -> None:
    found = np.full((2, 3), 1.26e-12)
    found[1, 1] = 3.14159e-11
    shown = page(study(kernel_residual=found))
    assert [row(shown.table("By layer"), layer)[2] for layer in ("0", "1")] == ["1.3e-12", "3.1e-11"]
    assert [row(shown.table("By head"), head)[2] for head in ("1.0", "1.1")] == ["1.3e-12", "3.1e-11"]
    assert "(largest residual 2e-14, kernel residual 3.1e-11)" in shown.answer


def test_a_quantity_that_is_new_is_shown_by_its_own_name() -> None:
    shown = page(study(some_thing=np.full((2, 3), 0.77)))
    assert row(shown.table("The step"), "some thing")[1] == ".77"


def test_demonstrations_are_weighted_by_the_length_of_the_step() -> None:
    """Query 0 has a step of length 1, query 1 of length 5: (.8 + 5 · .2) / 6 and (.2 + 5 · .8) / 6."""
    table = page(study()).table("Demonstrations")
    assert row(table, "1") == ["1", "bad", ".300", ".300", ".300", "text 0 word text 0 word text 0 …"]
    assert row(table, "2")[:3] == ["2", "good", ".700"]
    assert "of the first one's part .267 is its first token" in page(study()).sections[1].text


def test_thirds_of_the_layers_are_the_first_and_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of five layers is two."""
    five = torch.tensor([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.4, 0.6], [0.5, 0.5]], dtype=torch.float64)
    monkeypatch.setattr(Heads, "weighted", lambda _self, _name: five)
    assert row(check_page.by_demo(Heads(study())), "1")[2:5] == [".300", ".150", ".450"]


def test_kernels_are_counted() -> None:
    text = page(study()).sections[2].text
    assert text.startswith("5 of 6 heads have the kernel exp(k·k') of their own keys, 1 another one")
    own = {"own": np.ones((2, 3))}
    assert page(study(**own)).sections[2].text.startswith("6 of 6 heads have the kernel exp(k·k') of their own keys. ")


def test_random_features_have_their_quantiles() -> None:
    shown = page(study())
    assert shown.table("Random features").texts() == [
        ["16", "2.50", ".50", "4.50", "1.25", ".25", "2.25"],
        ["64", "1.25", ".25", "2.25", ".62", ".12", "1.12"],
    ]
    assert "needs 10^24 features with its own keys, and 10^4 with the keys moved" in shown.sections[3].text


def test_scores_that_are_not_products_have_no_random_features() -> None:
    nothing = {name: np.full((2, 3), np.nan) for name in ("needed", "needed_moved")}
    found = Heads(study(**nothing))
    for name in ("random", "moved"):
        found.values[name] = found.values[name] * torch.nan
    assert check_page.by_size(found).rows == []
    assert check_page.needed(found) == ""
    assert len(check_page.parts_figure(found.weighted("contributions"), {}).axes) == 2  # the map and its scale


def test_the_subtitle_counts_the_queries_that_are_there() -> None:
    assert page(study()).subtitle == "smollm2-135m · films · k = 2 · seed 0 · 2 queries · float64"


def test_the_episode_that_is_left_has_every_query() -> None:
    left = json.loads(page(study()).files["episode.json"])
    assert [query["fields"]["text"] for query in left["queries"]] == ["film 0", "film 1"]
    assert left["task"] == "films"


def test_figures_show_the_quantities_that_they_name() -> None:
    drawings = page(study()).drawings
    maps = {axes.get_title(loc="left") or axes.get_title(): axes for axes in drawings["heads"].figure.axes}
    shares = maps["share"].images[0]
    assert np.allclose(shares.get_array(), SHARE.mean(0))
    assert shares.get_clim() == (0, 1)
    assert np.allclose(maps["same step"].images[0].get_array(), 0.6)
    assert maps["cosine"].images[0].get_clim() == (-1, 1)
    parts = drawings["parts"].figure.axes[0]
    assert np.allclose(parts.images[0].get_array(), [[0.3, 0.7], [0.3, 0.7]])
    assert np.allclose(parts.images[0].get_clim(), (-0.7, 0.7))  # red and blue are as far from white
    (curves,) = [axes for axes in drawings["parts"].figure.axes if axes.lines]
    assert [line.get_label() for line in curves.lines] == ["own keys", "keys moved"]
    assert curves.lines[0].get_xydata().tolist() == [[16, 2.5], [64, 1.25]]


def test_maps_count_layers_and_heads_in_whole_numbers() -> None:
    figure = page(study()).drawings["heads"].figure
    maps = [axes for axes in figure.axes if axes.images and axes.get_xlabel() == "head"]
    assert len(maps) == len(DRAWN)
    for axes in maps:
        for axis, count in ((axes.xaxis, 3), (axes.yaxis, 2)):
            shown = [tick for tick in axis.get_ticklocs() if -0.5 <= tick <= count - 0.5]
            assert shown == list(range(count))


def test_what_the_terminal_shows_fits_a_hundred_columns() -> None:
    assert max(len(line) for line in page(study()).text(width=100).splitlines()) <= 100


def test_the_terminal_shows_the_step_and_the_demonstrations_unasked() -> None:
    assert [section.title for section in page(study()).sections if section.brief] == ["The step", "Demonstrations"]


def test_what_a_grid_counts_is_whether_all_heads_hold() -> None:
    (found,) = page(study()).found
    assert found.verdict == "all heads are a zero-shot part plus one gradient step"
    assert found.number.value == pytest.approx(SHARE.mean())
    (broken,) = page(study(residual=np.array([[1.0, 0, 0], [0, 0, 0]]))).found
    assert broken.verdict == "not all heads are a zero-shot part plus one gradient step"
