"""Planted numbers give the right sentences and tables."""

import math

import numpy as np
import pytest
from language_studies import planted, planted_study, study_of
from scipy import stats

from iclgd.labs.languages.measures import BYPASS, TRAINED
from iclgd.labs.languages.page import over_seeds, page
from iclgd.labs.languages.page_all import page_all
from iclgd.labs.languages.reading import readings
from iclgd.labs.languages.spec import AllSpec
from iclgd.results import array

READS = {"accuracy": [0.9, 0.92, 0.94], ("accuracy", True): [0.5, 0.51, 0.49], "loss": 0.1}


def learner(mse, accuracy=0.8, cosine=0.9, correlation=0.7, loss=0.2):
    """Shuffled, every number is a tenth less, so that the two cannot be mistaken for each other."""
    plain = {"accuracy": accuracy, "cosine": cosine, "correlation": correlation, "mse": mse}
    less = {(n, True): np.subtract(v, 0.1).tolist() for n, v in plain.items()}
    return plain | less | {"loss": loss}


def everyone(layers=READS, near=(0.01, 0.012, 0.011), far=(0.3, 0.31, 0.29)):
    return {
        TRAINED: layers,
        "gd": learner(list(far), cosine=0.3),
        "preconditioned gd": learner(list(near), cosine=0.99),
        "no context": learner([0.5, 0.5, 0.5], cosine=0.1),
    }


def half(values):
    return stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5


def test_intervals_are_students_and_end_where_the_quantity_ends():
    found = over_seeds([0.1, 0.2, 0.6])
    assert found.value == pytest.approx(0.3)
    assert found.high - found.value == pytest.approx(half([0.1, 0.2, 0.6]))
    assert found.value - found.low == pytest.approx(half([0.1, 0.2, 0.6]))
    bounded = over_seeds([0.1, 0.2, 0.6], (0, 0.5))
    assert (bounded.low, bounded.high) == (0, 0.5)
    assert str(over_seeds([0.3, 1.0], (0, 1))) == ".650 [.000 1.000]"


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
    assert "with attention switched off the predictions correlate to .980 [.955 1.000] with those with it on." in answer


def test_more_layers_are_many():
    spec = planted_study(everyone(), layers=2)
    assert page(spec).answer.startswith("The layers read the labels")
    assert "2 LSA layers" in page(spec).subtitle


def test_one_seed_decides_nothing():
    study = planted_study(everyone(), seeds=1)
    answer = page(study).answer
    assert answer.startswith("Whether the layer reads labels is undecided from 1 seed (shuffling them costs .400")
    assert "which learner predicts most alike is undecided" in answer
    assert study.page.sections[0].text.startswith("1 seed: no interval over draws.")


def entry(table, row, column):
    rows = {line[0]: line for line in table.rows}
    return rows[row][list(table.header).index(column)]


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
        last = [[0.1, 0.5], [0.1, 0.6], [0.1, 0.7]][seed]
        whole = [[0.2, 0.3], [0.1, 0.4], [0.0, 0.5]][seed]
        return [
            array(last, "step", coordinates={"step": (0, 7)}, part="encoder", quantity="symbols"),
            array(whole, "step", coordinates={"step": (0, 7)}, part="encoder", quantity="words"),
            array([9.0, 1.0], "step", coordinates={"step": (0, 7)}, part="encoder", quantity="loss"),
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


# the whole study


def whole(change=lambda setting, learners: learners):
    """Every setting with the same numbers, except for what ``change`` makes of them."""
    spec = AllSpec(seeds=3)
    by_name = {str(setting.where()): setting for setting in spec.settings()}
    results = []
    for cell in spec.cells():
        where = {name: value for name, value in cell.labels.items() if name != "seed"}
        setting = by_name[str(where)]
        learners = everyone()
        if setting.layers == 2:
            learners = {f"{n} ×2" if "gd" in n else n: row for n, row in learners.items()}
        if setting.end_to_end:
            learners["gd on learned features"] = learner([0.2, 0.2, 0.2], cosine=0.55)
            learners.pop("preconditioned gd")
        more = ()
        if setting.layers == 1 and not setting.end_to_end:
            more = [array(0.999, part="weights", quantity="cosine to the best preconditioner")]
        results.append(planted(cell.labels["seed"], change(setting, learners), more=more))
    return study_of(spec, results, "languages all")


def test_the_whole_study_counts_settings_by_their_intervals():
    answer = page_all(whole()).answer
    assert answer == (
        "With fixed labels the layers are shown to read them in 24 of 24 settings; with a sign or a language drawn for "
        "each episode preconditioned gd predicts most alike in 27 of 33 settings."
    )


def test_settings_where_nothing_is_shown_are_not_counted():
    still = {"accuracy": [0.9, 0.9, 0.9], ("accuracy", True): [0.9, 0.91, 0.87], "loss": 0.1}

    def change(setting, learners):
        far = {name: learner([0.3, 0.1, 0.2]) for name in learners if name != TRAINED}
        return {TRAINED: still} | far

    answer = page_all(whole(change)).answer
    assert "in 0 of 24 settings" in answer
    assert "no learner is shown to predict most alike in any of 33 settings" in answer


def test_the_whole_studys_tables_have_every_setting_and_number():
    shown = page_all(whole())
    assert shown.subtitle == "57 settings · seeds 0, 1, 2"
    fixed = shown.table("Fixed labels: is anything learned in context?")
    assert len(fixed.rows) == 24
    name = "a*bc* · random · autoencoder · fixed"
    assert entry(fixed, name, "accuracy").value == pytest.approx(0.92)
    assert entry(fixed, name, "less, shuffled").value == pytest.approx(0.42)
    near = shown.table("Fixed labels: what the layers are near to")
    assert entry(near, name, "largest difference of a seed").value == pytest.approx(0.45)
    assert entry(near, name, "labels shuffled").value == pytest.approx(0.5)
    assert entry(near, name, "cos no context").value == pytest.approx(0.1)
    assert entry(near, name, "MSE no context").value == pytest.approx(0.5)
    assert entry(near, name, "cos gd").value == pytest.approx(0.3)
    assert entry(near, name, "MSE gd").value == pytest.approx(0.3)
    which = shown.table("Sign or language drawn: which gradient descent?")
    assert len(which.rows) == 33
    two = "a*bc* · complement · pca · sign · 2 layers"
    assert entry(which, two, "cos gd").value == pytest.approx(0.3)
    assert entry(which, two, "cos precond. gd").value == pytest.approx(0.99)
    assert entry(which, "a*bc* · complement · end-to-end · sign", "cos precond. gd") == ""
    drawn = shown.table("Sign or language drawn: with shuffled labels, and matrices")
    assert entry(drawn, "a*bc* · complement · end-to-end · sign", "cos learned features").value == pytest.approx(0.55)
    assert entry(drawn, two, "cos A, best A") == ""
    one = "a*bc* · edits · pca · sign"
    assert entry(drawn, one, "cos A, best A").value == pytest.approx(0.999)
    assert entry(drawn, one, "accuracy").value == pytest.approx(0.92)
    assert entry(drawn, one, "shuffled").value == pytest.approx(0.5)
    assert entry(drawn, one, "shuffled: cos gd").value == pytest.approx(0.2)
    assert entry(drawn, one, "shuffled: cos precond. gd").value == pytest.approx(0.89)
    assert entry(drawn, one, "MSE gd").value == pytest.approx(0.3)
    assert entry(drawn, one, "MSE precond. gd").value == pytest.approx(0.011)
    accuracy = shown.table("Accuracy of every learner")
    assert list(accuracy.header)[1] == TRAINED
    assert len(accuracy.rows) == 57
    assert entry(accuracy, two, "gd").value == pytest.approx(0.8)
    cosines = shown.table("Cosine of every learner's sensitivities")
    assert TRAINED not in cosines.header
    assert entry(cosines, one, "gd").value == pytest.approx(0.3)
    assert entry(shown.table("Correlation of every learner's predictions"), one, "gd").value == pytest.approx(0.7)


def test_names_of_settings_say_what_is_unusual():
    names = [setting.name() for setting in AllSpec().settings()]
    assert names[0] == "a*bc* · random · autoencoder · fixed"
    assert "a*bc* · complement · pca · fixed · gd start" in names
    assert "(abc?)* · complement · autoencoder · sign · random start" in names
    assert "random · complement · pca · language · length 8" in names
    assert "random · complement · pca · language" in names
    assert names.count("((a|b)c)* · complement · pca · sign · 2 layers") == 1
    assert len(set(names)) == 57


def test_a_setting_finds_its_own_seeds_in_their_order():
    def change(setting, learners):
        return learners | {"gd": learner([0.1, 0.2, 0.3] if setting.negatives == "edits" else [0.7, 0.8, 0.9])}

    for reading in readings(whole(change)):
        if reading.setting.layers == 1:
            expected = [0.1, 0.2, 0.3] if reading.setting.negatives == "edits" else [0.7, 0.8, 0.9]
            assert reading.of("gd", "mse").tolist() == expected
            assert reading.called("gd") == "gd"
        else:
            assert reading.called("preconditioned gd") == "preconditioned gd ×2"
        assert reading.called("ridge") == ""


def test_the_automaton_has_every_symbol_of_the_alphabet_that_was_asked_for():
    shown = page(planted_study(everyone(), language="a*b", alphabet="cd"))
    (drawn,) = [section.widget.data for section in shown.sections if section.title == "The automaton"]
    assert drawn["alphabet"] == "abcd"


def test_words_can_be_asked_about_only_where_the_encoder_was_kept():
    assert "Ask the layer" not in [section.title for section in page(planted_study(everyone())).sections]
