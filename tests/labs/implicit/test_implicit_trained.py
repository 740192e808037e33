"""What the page of `implicit` says of training the patched matrices, on results that were made up."""

from dataclasses import replace

import numpy as np
import pytest
from planted_implicit import Diverges, Plant, planted, row

from iclgd.labs.implicit import tables
from iclgd.labs.implicit.against import Against
from iclgd.labs.implicit.answer import how_alike, trained
from iclgd.labs.implicit.beside import NULLS, Beside
from iclgd.labs.implicit.page import page
from iclgd.metrics.differences import difference, holm
from iclgd.metrics.estimates import estimate
from iclgd.report.numbers import p_value


def test_the_second_sentence_compares_the_two_changes_with_the_highest_null():
    assert trained(planted(seeds=2)) == (
        "Finetuning the same matrices at 0.01 makes another change, whose cosine with it is .020 [.020 .020], more "
        "than every null (the highest, trained on other demonstrations: .012 [.012 .012])."
    )


@pytest.mark.parametrize("null", ["wrong", "shuffled", "other demos", "other task", "reading filler", "noise"])
def test_a_null_that_is_as_alike_is_named_whichever_it_is(null):
    plant = Plant(cosine=0.8)
    plant.trained[null] = 0.9
    said = trained(planted(plant, seeds=2))
    assert f"not shown to be more than the .900 [.900 .900] of one null, {NULLS[null]}." in said
    assert " makes a change, whose cosine with it is .808" in said
    assert " makes much the same change, whose cosine with it is .808" in trained(planted(Plant(cosine=0.8), seeds=2))


def test_weights_that_were_not_trained_are_a_null_like_any_other():
    plant = Plant()
    plant.untrained = 0.03
    said = trained(planted(plant, seeds=2))
    assert "not shown to be more than the .030 [.030 .030] of one null, random weights." in said


def test_of_several_rates_the_most_alike_is_taken_and_that_is_said():
    said = trained(planted(rates=(0.01, 0.5, 0.1)))
    assert said.startswith("Finetuning the same matrices at 0.5 (of 3 rates the most alike) makes a change")


def test_a_rate_at_which_a_draw_diverged_is_not_chosen_where_there_is_another():
    """Cosines grow with the rate: .5 would be the most alike."""
    view = planted(Diverges((0.5, 1)), rates=(0.01, 0.5, 0.1), seeds=3)
    assert view.most_alike("trained") == Beside(view).rate == 0.1
    said = trained(view)
    assert said.startswith(
        "Finetuning the same matrices at 0.1 (of 3 rates the most alike where no draw diverged) makes"
    )
    assert page(view.study).drawings["layers"].figure.axes[0].get_ylabel() == "cosine with gd 0.1"


def test_where_draws_diverged_at_every_rate_the_answer_says_how_many_at_the_one_it_speaks_of():
    view = planted(Diverges((0.01, 0), (0.5, 1), (0.5, 2)), rates=(0.01, 0.5), seeds=4)
    assert " at 0.5 (of 2 rates the most alike; diverged in 2 of 4 draws, which are left out) makes " in trained(view)
    view = planted(Diverges((0.01, 0)), seeds=3)
    assert " at 0.01 (diverged in 1 of 3 draws, which are left out) makes " in trained(view)
    assert " training (1 of 3 draws, where it diverged at every rate, are left out): the patch" in Against(view).said()


class Noisy(Plant):
    """Nulls that vary from draw to draw, and less the larger the rate."""

    def __call__(self, cell):
        found = super().__call__(cell)
        return type(found)(found.facts, [_moved(one, cell) if "null" in one.labels else one for one in found.arrays])


class Noisily(Noisy, Diverges):
    """Both."""


def _moved(one, cell):
    if one.labels["quantity"] not in ("cosine", "contrast"):
        return one
    noise = np.random.default_rng([cell.labels["seed"], len(one.values)]).random(one.values.shape)
    return replace(one, values=one.values + 1e-5 / cell.labels["rate"] * noise)


def test_a_null_of_which_one_draw_is_left_has_no_p_value_and_no_place_among_the_others():
    class Lone(Noisy):
        def __call__(self, cell):
            found = super().__call__(cell)
            rest = cell.labels.get("seed") != 0
            kept = [one for one in found.arrays if not (rest and one.labels.get("null") == "other task")]
            return type(found)(found.facts, kept)

    found = Beside(planted(Lone(), seeds=3, init="trained"))
    lone = found.differences["cosine", "own", NULLS["other task"]]
    assert (lone.estimate.kind, lone.verdict) == ("queries only", "undecided")
    assert np.isnan([lone.p, lone.corrected]).all()
    assert row(found.table(), f"own patches − {NULLS['other task']}")[2:] == ["n/a", "undecided"]
    known = [one for one in found.differences.values() if one.p == one.p]
    assert len(known) == len(found.differences) - 2  # own patches, and one matrix
    least = min(known, key=lambda one: one.p)
    assert least.p > 0
    assert least.corrected == pytest.approx(len(known) * least.p)


def test_training_that_diverged_everywhere_is_said():
    plant = Plant()
    plant.diverged = True
    view = planted(plant)
    assert trained(view) == "Finetuning the same matrices diverged at every rate."
    assert row(tables.steps(view), "gd 0.01, trained")[1:] == ["n/a", "n/a", "n/a", "2", "1"]
    assert [line[1:] for line in tables.alike(view).texts()] == [["n/a"] * 4] * 2
    assert tables.overlaps(view).rows == Beside(view).table().rows == []
    assert row(tables.short(view), "gd 0.01, diverged in 1 of 1")[1:] == ["n/a"] * 5
    assert page(view.study).html()


@pytest.mark.parametrize(
    "low, high, says",
    [
        (0.8, 0.9, "much the same change"),
        (0.3, 0.9, "a related change"),
        (-0.1, 0.1, "another change"),
        (0.1, 0.3, "a change"),
    ],
)
def test_words_for_a_cosine_are_no_surer_than_its_interval(low, high, says):
    found = estimate(np.random.default_rng(0).random((3, 4)))
    assert how_alike(replace(found, low=low, high=high, kind="draws"), True) == says
    assert how_alike(replace(found, low=low, high=high, kind="queries only"), True) == "a change"
    alike = {"much the same change", "a related change"}
    assert how_alike(replace(found, low=low, high=high, kind="draws"), False) == ("a change" if says in alike else says)


def test_likeness_stands_above_what_every_null_gives():
    lines = [[cell.strip() for cell in line] for line in tables.alike(planted(seeds=2)).texts()]
    first, second = (
        names.index(f"gd 0.01, {init}") for names in [[x[0] for x in lines]] for init in ("trained", "random")
    )
    assert lines[first][1:] == [".020 [.020 .020]"] * 2 + [".030 [.030 .030]"] * 2
    assert {line[0]: line[1] for line in lines[first + 1 : second]} == {
        title: f"{number} [{number} {number}]"
        for title, number in zip(NULLS.values(), (".010", ".011", ".012", ".005", ".004", ".003", ".000"), strict=True)
    }
    (others,) = [line for line in lines[first:second] if line[0] == NULLS["other demos"]]
    assert others[3:] == [".013 [.013 .013]"] * 2
    assert {line[0] for line in lines[first:second] if line[4]} == {
        "gd 0.01, trained",
        NULLS["other demos"],
        NULLS["noise"],
    }


def test_differences_to_nulls_are_of_the_most_alike_rate_and_corrected_together():
    found = Beside(planted(seeds=2, rates=(0.01, 0.5)))
    assert found.rate == 0.5
    assert len(found.differences) == 2 * (7 + 1) + 2 * (2 + 1)
    one = found.differences["cosine", "matrix", NULLS["other demos"]]
    assert one.estimate.mean == pytest.approx(0.02 * 1.5 - 0.012)
    assert one.corrected >= one.p
    assert found.differences["contrast", "own", NULLS["other demos"]].estimate.mean == pytest.approx(0.03 - 0.013)
    assert found.differences["cosine", "own", "random weights"].estimate.mean == pytest.approx(0.03 + 0.01)
    assert [line[0] for line in found.table().texts()][:2] == [
        "one matrix − trained on wrong labels", "one matrix − trained on shuffled labels",
    ]  # fmt: skip


def test_p_values_beside_nulls_are_corrected_for_the_rates_that_were_not_chosen_too():
    found = Beside(planted(Noisy(), seeds=3, init="trained", rates=(0.01, 0.5, 0.1)))
    known = found.differences.values()
    least = min(known, key=lambda one: one.p)
    assert least.p > 0
    assert (found.rate, least.corrected) == (0.5, pytest.approx(3 * len(known) * least.p))


def test_a_rate_that_could_not_be_chosen_is_no_part_of_the_correction():
    one, two = (
        Beside(planted(Noisily(*where), seeds=3, init="trained", rates=(0.01, 0.5))).differences.values()
        for where in ((), ((0.01, 0),))
    )
    least = [min((one for one in found if one.p > 0), key=lambda one: one.p) for found in (one, two)]
    assert least[0].p == least[1].p
    assert least[0].corrected == pytest.approx(2 * least[1].corrected)


def test_every_rate_is_held_against_its_own_nulls_and_all_are_one_family():
    view = planted(Noisy(), seeds=3, init="trained", rates=(0.01, 0.5, 0.1))
    family, places = [], []
    for rate in view.spec.rates:
        for quantity in ("cosine", "contrast"):
            for patch in ("matrix", "own"):
                own = view.cosines("trained", quantity, patch, rate)
                for null, title in NULLS.items():
                    other = view.cosines("trained", quantity, patch, rate, null)
                    if np.isfinite(other).any():
                        places.append((rate, quantity, patch, title))
                        family.append(difference(own, other, (-2.0, 2.0)))
    expected = dict(zip(places, holm(family), strict=True))
    found = Beside(view)
    assert len(found.differences) == len(family) / 3
    for (quantity, patch, title), one in found.differences.items():
        assert one.corrected == pytest.approx(expected[0.5, quantity, patch, title].corrected)


def test_the_table_beside_nulls_has_corrected_p_values():
    """Of .02 ± .003 in three draws, Student's t gives .0074, twice: of own patches and of one matrix."""

    class Marginal(Plant):
        def _trained(self, cell):
            self.cosine = 0.02 + 0.003 * (cell.labels["seed"] - 1)
            self.trained, self.contrasts = {"noise": 0.0002}, {}
            return super()._trained(cell)

    found = Beside(planted(Marginal(), seeds=3, init="trained"))
    one = found.differences["cosine", "own", NULLS["noise"]]
    assert one.corrected == pytest.approx(2 * one.p)
    shown = row(found.table(), f"own patches − {NULLS['noise']}")[2]
    assert shown == p_value(one.corrected) != p_value(one.p)


def test_the_null_that_is_named_has_the_number_of_one_matrix():
    class OwnApart(Plant):
        def _trained(self, cell):
            found = super()._trained(cell)
            return type(found)(
                found.facts,
                [replace(one, values=one.values + 0.5) if one.labels.get("patch") == "own" else one
                 for one in found.arrays],
            )  # fmt: skip

    assert "(the highest, trained on other demonstrations: .012 [.012 .012])" in trained(planted(OwnApart(), seeds=2))


def test_one_draw_is_above_no_null():
    found = Beside(planted())
    assert {one.verdict for one in found.differences.values()} == {"undecided"}
    assert found.said().startswith("not shown to be more than the .012 of one null, trained on other demonstrations")


def test_subspaces_stand_beside_chance_and_nulls_beside_the_largest_rank():
    lines = tables.overlaps(planted()).texts()
    names = [line[0].strip() for line in lines]
    for title, own in (("one matrix", ".200"), ("own patches", ".400"), ("labels' part", ".500")):
        for rank in (1, 4):
            assert row(tables.overlaps(planted()), f"{title}, rank {rank}, gd 0.01, trained")[1:] == [own, ".010"] * 2
    first = names.index("one matrix, rank 4, gd 0.01, trained")
    assert names[first + 1 : first + 8] == list(NULLS.values())
    assert [line[1] for line in lines[first + 1 : first + 8]] == [f".{100 + x}" for x in (10, 11, 12, 5, 4, 3, 0)]
    labels = names.index("labels' part, rank 4, gd 0.01, trained")
    assert lines[labels + 1] == [f"  {NULLS['other demos']}", ".450", ".010", ".450", ".010"]
    assert names.count(NULLS["noise"]) == 2  # of one rank of the first weights


def test_subspaces_have_intervals_over_draws():
    class Spread(Plant):
        def _matrices(self, cell):
            seed = int(cell.labels["seed"])
            return [
                replace(one, values=one.values + 0.01 * seed) if one.labels["quantity"] == "overlap" else one
                for one in super()._matrices(cell)
            ]

    found = row(tables.overlaps(planted(Spread(), seeds=3)), "one matrix, rank 1, gd 0.01, trained")[1]
    half = 4.303 * 0.01 / 3**0.5  # Student's t, two degrees of freedom
    ratio = half**2 / (0.21 * 0.79)  # Wilson's, as far out where its spread is that of the mean: a share of a subspace
    middle, out = (0.21 + ratio / 2) / (1 + ratio), (half**2 + ratio**2 / 4) ** 0.5 / (1 + ratio)
    assert found == f".210 [.{round(1000 * (middle - out))} .{round(1000 * (middle + out))}]"


def test_no_interval_reaches_beyond_what_a_cosine_or_a_share_of_a_subspace_can_be():
    """Two draws that differ: Student's t alone reaches 12.7 standard errors to either side."""

    class Apart(Plant):
        def _trained(self, cell):
            self.cosine = 0.3 + 0.6 * int(cell.labels["seed"])
            return super()._trained(cell)

        def _matrices(self, cell):
            found, far = super()._matrices(cell), 0.1 + 0.8 * int(cell.labels["seed"])
            return [replace(x, values=0 * x.values + far) if x.labels["quantity"] == "overlap" else x for x in found]

    view = planted(Apart(), seeds=2, init="trained")
    found = Beside(view).differences["cosine", "matrix", NULLS["noise"]].estimate
    assert found.low == pytest.approx(-1.70, abs=0.05)
    assert 1 < found.high < 2
    for rank in (1, 4):
        shown = tables.overlaps(view).rows[0 if rank == 1 else 1][1]
        assert 0 <= shown.low < 0.1
        assert 0.9 < shown.high <= 1


def test_sizes_and_the_best_step_are_medians_over_layers():
    assert row(tables.steps(planted()), "gd 0.01, random")[1:] == [".3", ".05", "4", "2", "0"]
