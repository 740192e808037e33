"""What claims on patches say of results that were made up."""

import pytest
from planted_implicit import Diverges, Plant, planted

from iclgd.claims import reading_prompts
from iclgd.claims.claim import CLAIMS, Claim
from iclgd.claims.expect import Judgement

SHIFT, WHOLE = "mazzawi2025.more-than-a-shift", "mazzawi2025.thought-matrix"


def judged(name: str, plant: Plant, **fields: object) -> Judgement:
    claim: Claim = CLAIMS[name]
    return claim.expect.judge(claim.measure(planted(plant, seeds=3, **fields).study), claim.bounds)


def forgetful(base: float, shift: float = 0.8, by_query: float = 0.25) -> Plant:
    """Reading adds 1 by the query to what zero-shot says of it, ``base``: at −1 its answers are all the same."""
    plant = Plant(shift, by_query)
    plant.base = base
    return plant


@pytest.mark.parametrize(
    "base, verdict, alike",
    [(0.0, "holds", 1.0), (-0.5, "fails", 0.25), (-1.0, "fails", 0.0), (0.5, "holds", 2.25)],
)
def test_a_patch_has_to_miss_less_than_one_answer_for_all_queries_does(base, verdict, alike):
    """It recovers a quarter of what reading does by the query in every case, and misses (3/4)²."""
    found = judged(SHIFT, forgetful(base))
    assert found.verdict == verdict
    assert found.findings["less doing nothing"].value == pytest.approx(0.5625 - 1)
    assert found.findings["less one answer for all"].value == pytest.approx(0.5625 - alike)


def test_a_patch_has_to_miss_less_than_doing_nothing_does():
    """Where reading turns what zero-shot says one answer for all misses a lot, and a patch may be between the two."""
    found = judged(SHIFT, forgetful(0.5, by_query=-0.25))
    assert found.findings["less one answer for all"].value == pytest.approx(1.5625 - 2.25)
    assert found.findings["less one answer for all"].verdict == "holds"
    assert found.findings["less doing nothing"].value == pytest.approx(0.5625)
    assert found.verdict == "fails"


@pytest.mark.parametrize("base, by_query, verdict", [(0.0, 0.75, "holds"), (-0.5, 0.25, "fails")])
def test_with_the_shift_both_answers_are_held_against_all_that_reading_does(base, by_query, verdict):
    """It shifts by 2 and turns by 1, Σ‖e‖² = 5 a query; one answer for all has the shift and turns nothing."""
    found = judged(WHOLE, forgetful(base, shift=0.8, by_query=by_query))
    missed = (0.4**2 + (1 - by_query) ** 2) / 5
    assert found.verdict == verdict
    assert found.findings["less doing nothing"].value == pytest.approx(missed - 1)
    assert found.findings["less one answer for all"].value == pytest.approx(missed - (1 + base) ** 2 / 5)


def test_a_shift_alone_is_a_prompt_s_effect_and_no_more_than_a_shift():
    plant = forgetful(0.0, shift=1.0, by_query=0.0)
    assert judged(SHIFT, plant).verdict == "fails"
    assert judged(WHOLE, plant).findings["less doing nothing"].verdict == "holds"


def test_the_cosine_is_of_a_rate_at_which_no_draw_diverged():
    """Cosines grow with the rate, .02 (1 + rate); at .5 one of three draws is left out."""
    view = planted(Diverges((0.5, 1)), rates=(0.01, 0.5), seeds=3)
    assert reading_prompts.patch_cosine(view.study).mean == pytest.approx(0.02 * 1.01)
    view = planted(Diverges((0.5, 1), (0.01, 0)), rates=(0.01, 0.5), seeds=3)
    assert reading_prompts.patch_cosine(view.study).mean == pytest.approx(0.02 * 1.5)


def test_where_training_diverged_everywhere_the_cosine_decides_nothing():
    found = judged("dherin2025.is-training", Diverges(*((0.01, seed) for seed in range(3))))
    assert found.verdict == "undecided"


def test_labels_count_where_a_patch_behind_wrong_ones_recovers_less():
    assert judged("mazzawi2025.knows-the-labels", Plant(by_query=0.25)).findings[""].value == pytest.approx(0.15)
    assert judged("mazzawi2025.knows-the-labels", Plant(by_query=0.05)).verdict == "fails"
