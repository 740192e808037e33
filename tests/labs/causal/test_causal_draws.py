"""Draws of a study of `causal` that differ: by what there is to carry, by rate, by what was lost, by their scores."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from planted_causal import HEADS, LAYERS, Plant, margins, planted

from iclgd.labs.causal import answer as module
from iclgd.labs.causal import tables
from iclgd.labs.causal.answer import carried, taken_out
from iclgd.labs.causal.heads import Heads
from iclgd.labs.causal.tables import foremost
from iclgd.labs.causal.view import mean


class Rates(Plant):
    """At .1 nulls carry more than at .01, and untrained weights, too."""

    def __call__(self, cell):
        found, later = super().__call__(cell), cell.labels.get("rate") == 0.1
        if not later:
            return found
        more = np.array([-0.2, 0.2])
        arrays = [replace(one, values=one.values + more) if one.labels.get("null") else one for one in found.arrays]
        return type(found)(found.facts, arrays)


def test_training_is_held_against_the_nulls_of_its_own_rate():
    found = carried(planted(Rates(), seeds=2, rates="0.01,0.1", init="trained"))
    nulls = [float(np.nanmean(found.nulls[rate]["random, as long"])) for rate in (0.01, 0.1)]
    assert nulls == pytest.approx([0, 0.2], abs=0.01)
    for rate, null in zip((0.01, 0.1), nulls, strict=True):
        assert found.differences[rate, "random, as long"].estimate.mean == pytest.approx(0.5 - null, abs=0.01)


def test_of_one_draw_there_is_no_p_value_beside_a_null():
    assert all(np.isnan([one.p, one.corrected]).all() for one in carried(planted(seeds=1)).differences.values())


def test_what_is_left_is_corrected_for_all_scores(monkeypatch):
    families = []

    def never(family):
        families.append(len(family))
        return [replace(one, corrected=1.0) for one in family]

    monkeypatch.setattr(module, "holm", never)
    said = taken_out(planted(seeds=3))
    assert "is not shown to be less than without random ones (by " in said
    assert said.count(", random ") == 3
    assert families == [3]


class Farther(Plant):
    """In the second draw reading shifts all queries by ten more; layers carry .2 there, and .6 in the first."""

    FAR = np.array([-5.0, 5.0])

    def __call__(self, cell):
        self.share = (0.6, 0.2)[int(cell.labels["seed"])]
        self.layers = (self.share,) * LAYERS
        return super().__call__(cell)

    def _swaps(self, seed):
        for one in super()._swaps(seed):
            labels = {name: one.labels.get(name) for name in ("run", "source", "into", "site", "null", "layers")}
            read = dict(zip(labels, ("icl", None, None, None, None, None), strict=True))
            swapped = dict(zip(labels, (None, "icl", "zero-shot", "attention", None, None), strict=True))
            far = {str(read): 1.0, str(swapped): self.share}.get(str(labels), 0.0) * (seed == 1)
            yield replace(one, values=one.values + far * self.FAR)


def test_with_the_shift_a_draw_counts_by_the_shift_too():
    view = planted(Farther(), seeds=2, init="trained", task="sentiment")
    way = [margins(1.0, seed) - margins(-1.0, seed) + (Farther.FAR if seed else 0) for seed in (0, 1)]
    sizes = np.array([(one**2).sum() for one in way])
    assert sizes[1] > 10 * sizes[0]
    shares = view.layer_shares("trained", 0.01, "icl", "zero-shot", False, site="attention")
    assert mean(shares[..., 1]).mean == pytest.approx((sizes * [0.6, 0.2]).sum() / sizes.sum())


class Scores(Plant):
    """Induction scores of the second draw are three times as large."""

    def _heads(self, cell, seed):
        for one in super()._heads(cell, seed):
            more = one.labels.get("quantity") == "head score" and one.labels["score"] == "induction" and seed == 1
            yield replace(one, values=3 * one.values) if more else one


def test_a_head_s_scores_are_means_over_draws():
    view = planted(Scores(), seeds=2)
    assert [str(entry) for entry in tables.heads(view).rows[0]] == ["layer 3, head 2", ".110", ".110", "-.220", ".110"]


def test_the_foremost_layer_is_the_one_with_the_largest_mean_however_wide_its_interval_is():
    draws = np.array([[0.5, 0.3], [0.9, 0.31]])[None, :, None] + np.zeros((1, 2, 4, 2))
    assert foremost(draws)[0] == 0
    assert foremost(draws)[1].low < 0.2


class Uneven(Plant):
    """Reading does 1, 2 and 3 times as much in three draws, and another part of it is carried and left in each."""

    def __call__(self, cell):
        size = 1 + int(cell.labels["seed"])
        self.layers, self.left["function vector"] = (0.1, 0.1, 0.2 * size, 0.1), 0.3 * size
        self.trained = {None: size * np.arange(LAYERS * HEADS) / 100}
        found = super().__call__(cell)
        grown = [replace(one, values=size * one.values) for one in found.arrays if one.labels["quantity"] == "scores"]
        return type(found)(found.facts, grown + [one for one in found.arrays if one.labels["quantity"] != "scores"])


def test_draws_count_by_what_reading_does_in_them():
    view = planted(Uneven(), seeds=3, task="sentiment")
    moved = np.array([np.sum((margins(1.0, s) - margins(-1.0, s)) ** 2) for s in range(3)])
    sizes = np.array([1, 4, 9]) * moved / (np.array([1, 4, 9]) * moved).sum()
    shares = view.layer_shares("trained", view.spec.rates[0], "icl", "zero-shot", False, site="attention")
    assert mean(shares[..., 2]).mean == pytest.approx((sizes * [0.2, 0.4, 0.6]).sum())
    assert mean(shares[..., 0]).mean == pytest.approx(0.1)
    assert mean(view.left("function vector")).mean == pytest.approx((sizes * [0.3, 0.6, 0.9]).sum())


def test_draws_count_by_what_training_does_in_them_for_heads_too():
    """The last head carries .11, .22 and .33, the ten foremost .65, 1.3 and 1.95, these of every other query."""
    view = planted(Uneven(), seeds=3, task="sentiment", init="trained")
    moved = np.array([(margins(0.0, s) - margins(-1.0, s)) ** 2 for s in range(3)]) * np.array([[[1]], [[4]], [[9]]])
    all_of, odd = moved.sum((1, 2)), moved[:, 1::2].sum((1, 2))
    single = view.single_heads(partial(view.head_runs, rate=0.01))
    assert mean(single[..., -1, -1]).mean == pytest.approx((all_of * [0.11, 0.22, 0.33]).sum() / all_of.sum())
    assert mean(Heads(view).together(0.01)).mean == pytest.approx((odd * [0.65, 1.3, 1.95]).sum() / odd.sum())


def test_a_draw_that_untrained_weights_lost_counts_for_training_beside_them_neither():
    """Of reading's effect training carries .2, .4 and .6 in draws that grow, untrained weights .1 in two of them."""

    class Lost(Plant):
        def __call__(self, cell):
            size, first = 1 + int(cell.labels["seed"]), cell.labels["init"] == "trained"
            self.diverged = (not first) and size == 3
            self.at = {"zero-shot": -1.0, "icl": 1.0, "gd": -1.0 + (0.4 * size if first else 0.2)}
            found = super().__call__(cell)
            grown = [
                replace(one, values=size * one.values) if one.labels.get("quantity") == "scores" else one
                for one in found.arrays
            ]
            return type(found)(found.facts, grown)

    view = planted(Lost(), seeds=3, init="trained,random")
    assert view.diverged(0.01) == 0  # of the first weights
    found = carried(view)
    moved = np.array([np.sum((margins(1.0, s) - margins(-1.0, s)) ** 2) for s in range(3)]) * [1, 4, 9]
    two = (moved[:2] * [0.2, 0.4]).sum() / moved[:2].sum()
    assert mean(found.own[0.01]).mean == pytest.approx((moved * [0.2, 0.4, 0.6]).sum() / moved.sum(), abs=0.01)
    one = found.differences[0.01, "random weights"]
    assert one.estimate.seeds == 2
    assert one.estimate.mean == pytest.approx(two - 0.1, abs=0.01)
    assert found.differences[0.01, "random, as long"].estimate.seeds == 3
