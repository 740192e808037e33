"""The whole study of languages: settings counted by their intervals, every one in the tables."""

import json

import pytest
from language_studies import planted, planted_study, study_of
from planted_learners import entry, everyone, learner

from charted import charted, limits
from iclgd.labs.languages.charts import LOST, NEAR, language
from iclgd.labs.languages.measures import TRAINED
from iclgd.labs.languages.page_all import page_all
from iclgd.labs.languages.reading import readings
from iclgd.labs.languages.spec import REPORT, AllSpec
from iclgd.report.page import Page, Section, Table
from iclgd.results import array

FIRST = "a*bc* · random · autoencoder · fixed"


def whole(change=lambda setting, learners: learners, curves=()):
    """Every setting with the same numbers, except for what ``change`` makes of them, and with these curves."""
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
        more = [*curves]
        if setting.layers == 1 and not setting.end_to_end:
            more += [array(0.999, part="weights", quantity="cosine to the best preconditioner")]
        results.append(planted(cell.labels["seed"], change(setting, learners), more=more))
    return study_of(spec, results, "languages all")


def test_the_whole_study_counts_settings_by_their_intervals():
    answer = page_all(whole()).answer
    assert answer == (
        "With fixed labels the layers are shown to read them in 24 of 24 settings; with a sign or a language drawn for "
        "each episode preconditioned gd predicts most alike in 27 of 33 settings (each setting by its own 95% "
        "intervals)."
    )


def test_settings_where_nothing_is_shown_are_not_counted():
    still = {"accuracy": [0.9, 0.9, 0.9], ("accuracy", True): [0.9, 0.91, 0.87], "loss": 0.1}

    def change(setting, learners):
        far = {name: learner([0.3, 0.1, 0.2]) for name in learners if name != TRAINED}
        return {TRAINED: still} | far

    answer = page_all(whole(change)).answer
    assert "in 0 of 24 settings" in answer
    assert "no learner is shown to predict most alike in any of 33 settings" in answer


def has(table: Table, name: str, numbers: dict[str, float]) -> None:
    """The row of a name has these numbers."""
    assert {column: entry(table, name, column).value for column in numbers} == pytest.approx(numbers)


def test_the_whole_studys_tables_have_every_setting_and_number():
    shown = page_all(whole())
    assert shown.subtitle == "57 settings · seeds 0, 1, 2"
    unasked = [section.title for section in shown.sections if section.brief]
    assert [title.split(":")[0] for title in unasked] == ["Fixed labels", "Sign or language drawn"]
    fixed = shown.table("Fixed labels: is anything learned in context?")
    assert len(fixed.rows) == 24
    name = FIRST
    has(fixed, name, {"accuracy": 0.92, "less, shuffled": 0.42})
    near = {"largest difference of a seed": 0.45, "labels shuffled": 0.5, "cos gd": 0.3, "MSE gd": 0.3}
    near |= {"cos no context": 0.1, "MSE no context": 0.5}
    has(shown.table("Fixed labels: what the layers are near to"), name, near)
    which = shown.table("Sign or language drawn: which gradient descent?")
    assert len(which.rows) == 33
    two = "a*bc* · complement · pca · sign · 2 layers"
    has(which, two, {"cos gd": 0.3, "cos precond. gd": 0.99})
    assert entry(which, "a*bc* · complement · end-to-end · sign", "cos precond. gd") == ""
    drawn = shown.table("Sign or language drawn: with shuffled labels, and matrices")
    assert entry(drawn, "a*bc* · complement · end-to-end · sign", "cos learned features").value == pytest.approx(0.55)
    assert entry(drawn, two, "cos A, best A") == ""
    one = "a*bc* · edits · pca · sign"
    has(
        drawn, one, {"cos A, best A": 0.999, "accuracy": 0.92, "shuffled": 0.5, "MSE gd": 0.3, "MSE precond. gd": 0.011}
    )
    has(drawn, one, {"shuffled: cos gd": 0.2, "shuffled: cos precond. gd": 0.89})
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


def test_the_picture_has_what_shuffling_costs_with_fixed_labels_and_every_descents_cosine_where_they_are_drawn():
    page = page_all(whole())
    assert page.picture is not None
    lost = charted(page.picture, "panel", "name", question=LOST)
    assert len(lost) == 24
    assert lost["a*bc*", "random · autoencoder"] == [pytest.approx(0.42)]
    assert lost["a*bc*", "complement · pca · gd start"] == [pytest.approx(0.42)]
    low, high = limits(page.picture, "panel", "name", question=LOST)["a*bc*", "random · autoencoder"]
    expected = entry(page.table("Fixed labels: is anything learned in context?"), FIRST, "less, shuffled")
    assert (*low, *high) == pytest.approx((expected.low, expected.high), rel=1e-4)
    near = charted(page.picture, "panel", "name", question=NEAR)
    assert near["a*bc*", "complement · pca · 2 layers: preconditioned gd ×2"] == [pytest.approx(0.99)]
    assert near["random languages", "complement · pca · length 8: gd"] == [pytest.approx(0.3)]
    assert near["a*bc*", "complement · end-to-end: gd on learned features"] == [pytest.approx(0.55)]
    assert len(near) == 2 * 30 + 3 * 2  # of 30 on codes two descents; of three end to end plain and of features


@pytest.mark.parametrize("asked, shown", [("random", "random languages"), ("a*bc*", "a*bc*")])
def test_languages_that_are_drawn_have_one_name_wherever_the_study_was_read_from(asked, shown):
    read = json.loads(json.dumps({"language": asked, "labels": "language" if asked == "random" else "sign"}))
    (reading,) = readings(planted_study(everyone(), **read))
    assert language(reading) == shown


def test_the_chart_of_all_settings_has_accuracies_and_likeness_of_every_one():
    widget = page_section(page_all(whole()), "All settings").widget
    right = charted(widget, "labels", "panel", "name", quantity="accuracy")
    assert len(right) == 2 * 57
    assert right["sign", "a*bc*", "edits · pca"] == [pytest.approx(0.92)]
    assert right["sign", "a*bc*", "edits · pca: shuffled"] == [pytest.approx(0.5)]
    far = charted(widget, "panel", "name", quantity="MSE of predictions", labels="sign")
    assert far["a*bc*: MSE of predictions", "edits · pca: preconditioned gd"] == [pytest.approx(0.011)]
    assert "a*bc*: MSE of predictions" in widget.data["log"]
    assert "a*bc*" not in widget.data["log"]


def page_section(page: Page, title: str) -> Section:
    (found,) = [one for one in page.sections if one.title == title]
    return found


def test_training_of_three_languages_is_chosen_by_language():
    curves = [
        array([0.5, 0.8], "step", coordinates={"step": (0, 9)}, part="training", learner=TRAINED, quantity=quantity)
        for quantity in ("accuracy", "loss")
    ]
    page = page_all(whole(curves=curves))
    parts = {one.title: one.widget for one in page.sections if one.title.startswith("Training")}
    assert list(parts) == ["Training with fixed labels", "Training with a sign drawn"]
    for widget in parts.values():
        assert sorted(widget.data["names"]["group"]) == sorted(REPORT)
        assert widget.data["count"] == 3 * (2 * 4) * 4  # layers and three learners in two panels, by seed and together
    assert all(one.widget is not None for one in page.sections if one.figure is not None)
