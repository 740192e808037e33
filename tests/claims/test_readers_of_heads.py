"""What claims read from studies of a model's heads and of its layers, on planted arrays."""

import numpy as np
import pytest

from iclgd.claims import reading
from iclgd.claims.claim import CLAIMS
from iclgd.results import Array, array


class Planted:
    """A study that has only these arrays, each with its labels."""

    def __init__(self, *arrays: Array):
        self._arrays = arrays

    def arrays(self, **labels) -> list[Array]:
        return [one for one in self._arrays if labels.items() <= one.labels.items()]


def heads(quantity: str, values, axes=("layer", "head"), **labels) -> Array:
    return array(values, *axes, quantity=quantity, **labels)


def test_a_quantity_of_heads_is_one_number_a_draw():
    draws = [Planted(heads("labels", [[0.1, 0.3], [np.nan, 0.5]])), Planted(heads("labels", [[1.0, 2.0], [3.0, 6.0]]))]
    assert reading.over_heads("labels")(*draws) == [0.5, 6.0]
    assert reading.over_heads("labels", "mean")(*draws) == pytest.approx([0.3, 3.0])
    assert reading.over_heads("labels", "median")(*draws) == pytest.approx([0.3, 2.5])


def bounds(gap: float, own: float, best: float) -> Planted:
    shape = (2, 1, 2)  # demonstrations layer head
    made = []
    for split, bound in (("own", own), ("best", best)):
        scale = np.array([1.0, 10.0])[:, None, None]
        made.append(heads("gap", np.full(shape, gap), ("demos", "layer", "head"), split=split))
        made.append(heads("bound", bound + scale * np.ones(shape), ("demos", "layer", "head"), split=split))
    return Planted(*made)


def test_a_gap_above_the_bound_is_counted_with_either_split_and_by_draw():
    below, above = bounds(0.5, 0.0, 0.0), bounds(5.0, 100.0, 0.0)
    assert reading.violations(below, above) == [0.0, 2.0]  # with the best split, at one demonstration, in both heads


def test_how_a_bound_grows_is_its_median_at_the_most_demonstrations_less_that_at_one():
    assert reading.bound_slope("own")(bounds(0.0, 3.0, 0.0), bounds(0.0, 0.0, 0.0)) == [9.0, 9.0]


def test_log_p_is_among_the_label_words_and_its_mean_over_queries_a_number_a_draw():
    scores = {"plain": [[0.0, 0.0], [0.0, 0.0]], "other": [[0.0, np.log(3)], [5.0, 5.0]]}
    arrays = []
    for name, values in scores.items():
        arrays.append(heads("scores", values, ("query", "label"), modification=name))
        arrays.append(heads("answers", [1, 0], ("query",), modification=name))
    study = Planted(*arrays)
    expected = (np.log(3 / 4) - np.log(1 / 2)) / 2  # the second query's words are as even as plain's
    assert reading.log_p_less_plain((study, study), "other") == pytest.approx([expected] * 2)


def test_cosines_have_an_interval_that_ends_at_one():
    found = reading.cosines([0.9, 0.97, 0.95])
    assert found.mean == pytest.approx(0.94)
    assert found.low < 0.9 < found.high < 1


@pytest.mark.parametrize(
    "name", ["ren2024.unsupervised-flip", "ren2024.thm32-falls-with-n", "ren2024.pretrained-negatives"]
)
def test_claims_on_heads_read_three_draws(name):
    assert [read.fields["seed"] for read in CLAIMS[name].reads] == [0, 1, 2]
