"""Planted numbers give the right sentences and tables."""

import math

import numpy as np
import pytest
from language_studies import planted_study
from planted_learners import READS, entry, everyone, learner
from scipy import stats

from iclgd.labs.languages.measures import BYPASS, TRAINED
from iclgd.labs.languages.page import over_seeds, page
from iclgd.results import array


def half(values):
    return stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5


def test_intervals_are_students_and_end_where_the_quantity_ends():
    found = over_seeds([0.1, 0.2, 0.6])
    assert found.value == pytest.approx(0.3)
    assert found.high - found.value == pytest.approx(half([0.1, 0.2, 0.6]))
    assert found.value - found.low == pytest.approx(half([0.1, 0.2, 0.6]))
    bounded = over_seeds([0.1, 0.2, 0.6], (0, 1))
    ratio = half([0.1, 0.2, 0.6]) ** 2 / (0.3 * 0.7)
    for end in (bounded.low, bounded.high):  # Wilson's: as far out as its own spread has it
        assert (0.3 - end) ** 2 == pytest.approx(ratio * end * (1 - end))
    assert str(over_seeds([0.3, 1.0], (0, 1))) == ".650 [.005 .999]"
    cut = over_seeds([0.1, 0.2, 0.6], (0, math.inf))
    assert (cut.low, cut.high) == (0, pytest.approx(0.3 + half([0.1, 0.2, 0.6])))


@pytest.mark.parametrize("seeds", [3, 5, 8])
@pytest.mark.parametrize("middle, spread", [(0.97, 0.03), (0.9, 0.1), (0.7, 0.15)])
def test_accuracies_near_one_are_covered(middle, spread, seeds):
    """Student's t cut off at 1 holds 89% of those at .97 and at .9."""
    size = middle * (1 - middle) / spread**2 - 1
    drawn = np.random.default_rng(0).beta(middle * size, (1 - middle) * size, (3000, seeds))
    found = [over_seeds(one, (0, 1)) for one in drawn]
    assert np.mean([one.low <= middle <= one.high for one in found]) >= 0.93 - 0.0125  # 2.5 standard errors


def test_one_seed_has_no_interval_and_undefined_seeds_are_counted():
    alone = over_seeds([0.4])
    assert alone.value == 0.4
    assert math.isnan(alone.low)
    assert math.isnan(alone.high)
    partly = over_seeds([0.2, math.nan, 0.4])
    assert partly.value == pytest.approx(0.3)
    assert partly.note == "(2 of 3 seeds)"
    assert str(over_seeds([math.nan, math.nan])) == "n/a"


def said(**given):
    return page(planted_study(everyone(**given))).answer


def test_labels_that_are_read_and_a_nearest_learner_are_said_with_their_numbers():
    answer = said()
    assert answer.startswith("The layer reads the labels: shuffling them costs .420 [")
    assert "of all learners preconditioned gd (MSE .011 [.009 .013]) predicts most alike." in answer


def test_labels_are_not_shown_to_be_read_where_the_interval_has_zero_in_it():
    answer = said(layers=READS | {("accuracy", True): [0.95, 0.9, 0.92]})
    assert answer.startswith("The layer is not shown to read labels: shuffling them costs -.003 [")


def test_shuffling_that_helps_is_said_so():
    answer = said(layers=READS | {"accuracy": [0.3, 0.31, 0.3], ("accuracy", True): [0.5, 0.5, 0.51]})
    assert answer.startswith("Shuffling the labels makes the layer better, by .200 [")


def test_two_learners_that_change_places_between_seeds_are_undecided():
    answer = said(near=(0.01, 0.5, 0.01), far=(0.2, 0.1, 0.3))
    assert "is undecided between preconditioned gd" in answer
    assert answer.endswith("and gd.")


def test_a_learner_that_is_nearer_by_a_like_factor_in_every_seed_is_nearest():
    """The difference itself has zero in its interval: one seed is far from both."""
    answer = said(near=(0.001, 0.002, 0.004), far=(0.01, 0.02, 0.04))
    assert "of all learners preconditioned gd" in answer
    assert over_seeds([0.009, 0.018, 0.036]).low < 0


def test_a_learner_that_is_not_nearer_than_every_other_is_not_nearest():
    """The second by its mean may be further off for sure, and a third, near in most seeds, not."""
    assert "undecided" in said(near=(0.001, 0.002, 0.04), far=(0.01, 0.02, 0.4))


def test_a_distance_of_zero_is_nearest():
    assert "of all learners preconditioned gd" in said(near=(0.0, 0.0, 0.0))


def test_what_is_left_without_attention_is_said_apart_from_the_learners():
    learners = everyone() | {BYPASS: learner([0.0, 0.0, 0.0], correlation=[0.98, 0.99, 0.97])}
    answer = page(planted_study(learners, encoder="end-to-end")).answer
    assert "of all learners preconditioned gd (MSE .011" in answer
    assert "with attention switched off the predictions correlate to .980 [.936 .994] with those with it on." in answer


def test_more_layers_are_many():
    spec = planted_study(everyone(), layers=2)
    assert page(spec).answer.startswith("The layers read the labels")
    still = READS | {("accuracy", True): [0.95, 0.9, 0.92]}
    assert page(planted_study(everyone(still), layers=2)).answer.startswith("The layers are not shown to read labels")
    assert "2 LSA layers" in page(spec).subtitle


def test_one_seed_decides_nothing():
    study = planted_study(everyone(), seeds=1)
    answer = page(study).answer
    assert answer.startswith("Whether the layer reads labels is undecided from 1 seed (shuffling them costs .400")
    assert "which learner predicts most alike is undecided" in answer
    assert study.page.sections[0].text.startswith("1 seed: no interval over draws.")
    two = page(planted_study(everyone(), seeds=2))
    assert two.sections[0].text.startswith("Means over seeds with their 95% intervals")


def test_every_number_stands_in_its_row_and_column():
    shown = page(planted_study(everyone()))
    first = shown.table("Learners")
    assert [row[0] for row in first.rows] == [TRAINED, "gd", "preconditioned gd", "no context"]
    assert entry(first, TRAINED, "accuracy").value == pytest.approx(0.92)
    assert entry(first, TRAINED, "labels shuffled").value == pytest.approx(0.5)
    assert entry(first, TRAINED, "cosine") == entry(first, TRAINED, "correlation") == ""
    assert entry(first, "gd", "accuracy").value == pytest.approx(0.8)
    assert entry(first, "gd", "labels shuffled").value == pytest.approx(0.7)
    assert entry(first, "gd", "cosine").value == pytest.approx(0.3)
    assert entry(first, "gd", "correlation").value == pytest.approx(0.7)
    errors = shown.table("Errors")
    assert entry(errors, TRAINED, "½ sq. error").value == pytest.approx(0.1)
    assert entry(errors, TRAINED, "MSE") == ""
    assert entry(errors, "gd", "½ sq. error").value == pytest.approx(0.2)
    found = entry(errors, "gd", "MSE")
    assert (found.value, found.low, found.high) == pytest.approx((0.3, 0.3 - half(FAR), 0.3 + half(FAR)))
    mixed = shown.table("Likeness on episodes with shuffled labels")
    assert entry(mixed, "gd", "cosine").value == pytest.approx(0.2)
    assert entry(mixed, "gd", "correlation").value == pytest.approx(0.6)
    assert entry(mixed, "gd", "MSE").value == pytest.approx(0.2)


FAR = [0.3, 0.31, 0.29]


def test_errors_have_no_upper_bound():
    layers = READS | {"loss": [0.9, 1.5, 3.0]}
    found = entry(page(planted_study(everyone(layers))).table("Errors"), TRAINED, "½ sq. error")
    assert found.value == pytest.approx(1.8)
    assert found.high == pytest.approx(1.8 + half([0.9, 1.5, 3.0]))


def test_a_narrow_terminal_shows_the_brief_sections():
    text = page(planted_study(everyone())).text(False, 100)
    assert max(map(len, text.splitlines())) <= 100
    assert "Learners" in text
    assert "Errors" not in text


def test_notes_say_words_codes_and_matrices():
    def more(seed):
        last = [[0.1, 0.9, 0.5], [0.1, 0.9, 0.6], [0.1, 0.9, 0.7]][seed]
        whole = [[0.2, 0.9, 0.3], [0.1, 0.9, 0.4], [0.0, 0.9, 0.5]][seed]
        steps = {"step": (0, 7, 9)}
        return [
            array(last, "step", coordinates=steps, part="encoder", quantity="symbols"),
            array(whole, "step", coordinates=steps, part="encoder", quantity="words"),
            array([9.0, 4.0, 1.0], "step", coordinates=steps, part="encoder", quantity="loss"),
            array([0.96, 0.98, 0.97][seed], part="weights", quantity="cosine to the best preconditioner"),
            array([0.26, 0.28, 0.27][seed], part="weights", quantity="cosine to a multiple of the identity"),
        ]

    facts = {"members": ["ac", "bc"], "others": ["ab"], "words": {"training": 90, "shown": 21, "asked": 20}}
    shown = page(planted_study(everyone(), more=more, facts=facts))
    table = {row[0]: row[1] for row in shown.table("Words, codes and weights").rows}
    assert table["members, for instance"] == "ac, bc"
    assert table["other words"] == "ab"
    assert table["different words, first seed"] == "90 trained on; in test episodes 21 shown and 20 asked about"
    assert table["held-out positions restored"].value == pytest.approx(0.6)
    assert table["held-out words restored"].value == pytest.approx(0.4)
    assert table["matrix of the layer: cosine to the best preconditioner"].value == pytest.approx(0.97)
    assert table["matrix of the layer: cosine to a multiple of the identity"].value == pytest.approx(0.27)
    assert set(shown.drawings) == {"training", "autoencoder"}


def test_what_was_not_measured_is_not_in_the_notes():
    rows = page(planted_study(everyone())).table("Words, codes and weights").rows
    assert [row[0] for row in rows] == ["members, for instance", "other words", "different words, first seed"]


def test_the_title_says_what_was_run():
    assert page(planted_study(everyone(), k=6, episodes=50)).subtitle == (
        "((a|b)c)* · fixed labels · complement · pca · one LSA layer · k = 6 · 3 seeds × 50 episodes"
    )


def test_the_automaton_has_every_symbol_of_the_alphabet_that_was_asked_for():
    shown = page(planted_study(everyone(), language="a*b", alphabet="cd"))
    (drawn,) = [section.widget.data for section in shown.sections if section.title == "The automaton"]
    assert drawn["alphabet"] == "abcd"


def asked(**given):
    """The widget of `Ask the layer`, where there is one; a layer of one coordinate, its encoder and what was tuned."""

    def more(seed):
        layer = {"part": "weights", "learner": TRAINED}
        return [
            array(np.array([[2.0, 1.0]]), "row", "column", part="kept", encoder="matrix"),
            array(0.25 + seed, part="kept", quantity="rate"),
            *(array((1.0 + seed) * np.eye(2), "row", "column", **layer, matrix=name) for name in ("qk", "pv")),
        ]

    facts = {"members": ["ac", "bc", "acac"], "others": ["ab", "bb", "cc"], "episode": [["ac", 1]]}
    facts |= {"words": {"training": 90, "shown": 21, "asked": 20}}
    shown = page(planted_study(everyone(), **{"more": more, "facts": facts} | given))
    return [section.widget for section in shown.sections if section.title == "Ask the layer"]


def test_words_can_be_asked_about_only_where_the_encoder_was_kept_and_the_language_is_one():
    assert len(asked()) == 1
    assert asked(more=lambda seed: ()) == []
    assert asked(language="random", labels="language") == []


def test_what_is_asked_first_are_two_members_and_two_other_words_and_every_seed_has_its_weights():
    (widget,) = asked()
    data = widget.data
    assert data["words"] == ["ac", "bc", "ab", "bb"]
    assert data["seeds"]["2"] == {
        "episode": [["ac", 1]],
        "kept": {"rate": 2.25},
        "encoder": {"matrix": [[2, 1]]},
        "weights": {TRAINED: {"qk": [[3, 0], [0, 3]], "pv": [[3, 0], [0, 3]]}},
    }


def verdicts(seeds=3, **given):
    return [one.verdict for one in page(planted_study(everyone(**given), seeds=seeds)).found]


def test_what_a_grid_counts_is_no_stronger_than_the_answer():
    assert verdicts() == ["layers read the labels", "preconditioned gd predicts most alike"]
    still = READS | {("accuracy", True): [0.95, 0.9, 0.92]}
    swapped = {"near": (0.01, 0.5, 0.01), "far": (0.2, 0.1, 0.3)}
    none = "no learner is shown to predict most alike"
    assert verdicts(layers=still, **swapped) == ["layers are not shown to read labels", none]
    assert verdicts(seeds=1) == ["whether layers read labels is undecided, with 1 seed", none]
    lost, nearest = page(planted_study(everyone())).found
    assert lost.number.value == pytest.approx(0.42)
    assert str(nearest.number) == ".011 [.009 .013]"
