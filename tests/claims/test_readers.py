"""What claims read from studies of language models and of trained layers, on studies that take a moment."""

from dataclasses import replace

import numpy as np
import pytest

from iclgd.claims import reading, ren2024_modified
from iclgd.claims.claim import CLAIMS, Read
from iclgd.claims.ledger import Asked, cells_of, run_claims
from iclgd.claims.pages import own
from iclgd.claims.studies import FEW, FEW_UNTRAINED, LABELS, STRONG, STRONG_READ
from iclgd.lab import LABS
from iclgd.running import Where, run_study
from little import little_model, little_task

STUDIES = (FEW, FEW_UNTRAINED, STRONG, STRONG_READ)
NAMED = ("another query's", "other demonstrations'")
NULLS = ("another query", "wrong labels")
OF_MODELS = [claim.name for claim in own() if claim.reads[0] in STUDIES]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    made = tmp_path_factory.mktemp("readers")
    little_model(made / "tiny")
    for name, words in (("sst2", ("Negative", "Positive")), ("mr", ("good", "bad"))):
        little_task(made, name, words)
    return made


@pytest.fixture(scope="module")
def small(place):
    """The studies of the ledger, on a tiny model and two little tasks."""
    tasks = tuple(str(place / f"{name}.yaml") for name in ("sst2", "mr"))
    few = {"task": tasks, "k": 3, "queries": 4, "seeds": 2, "rates": (1e-3,), "init": ("trained", "random")}
    quick = {"learners": ("gd", "lcgd"), "nulls": ("random", "other-query", "wrong-labels"), "floor": False}
    return Read("compare", {**STRONG.fields, **few, **quick, "model": str(place / "tiny")})


@pytest.fixture
def asked(small, monkeypatch):
    """The claims about language models, asked of the tiny one."""
    things = dict(CLAIMS._known)
    for name in OF_MODELS:
        own_cells = replace(small, only=CLAIMS[name].reads[0].only)
        things[name] = replace(CLAIMS[name], reads=(own_cells,), needs=("model",))
    monkeypatch.setattr(CLAIMS, "_things", things)


def test_every_claim_about_a_language_model_can_be_judged(place, asked):
    rows = run_claims(OF_MODELS, Where(place / "cells"))
    assert len(rows) > 20
    for row in rows:
        assert row.state != "error", (row.claim.name, row.reason)
        for finding in row.judgement.findings.values():  # four queries may hold none that training corrects
            assert np.isfinite(finding.value) or row.claim.name == "dai2022.rec2ftp", (row.claim.name, finding)


def test_readings_are_the_arrays_they_name(place, small):
    study = run_study("compare", LABS["compare"].spec.of(dict(small.fields)), Where(place / "cells"))
    task = study.spec.task[0]

    def mean(init: str, learner: str, metric: str, seed: int) -> float:
        (one,) = study.arrays(init=init, learner=learner, metric=metric, null=None, seed=seed, task=task)
        return float(np.nanmean(one.at(position="label").values))

    found = reading.untrained_less_trained("SimAOU")(study)[task]
    wanted = [mean("random", "gd 0.001", "SimAOU", s) - mean("trained", "gd 0.001", "SimAOU", s) for s in (0, 1)]
    assert found == pytest.approx(wanted, abs=1e-6)
    lcgd = CLAIMS["deutch2023.lcgd-over-untrained"].measure(study)[task]
    names = (("trained", "lcgd 0.001"), ("random", "gd 0.001"))
    wanted = [[mean(init, name, "SimAM_delta", s) for s in (0, 1)] for init, name in names]
    assert lcgd == pytest.approx([a - b for a, b in zip(*wanted, strict=True)], abs=1e-6)
    over = reading.differences_by_task(
        {"learner": "lcgd 0.001", "metric": "SimAM"}, {"learner": "gd 0.001", "metric": "SimAM"}
    )(study)[task]
    gaps = [mean("trained", "lcgd 0.001", "SimAM", s) - mean("trained", "gd 0.001", "SimAM", s) for s in (0, 1)]
    assert over.mean == pytest.approx(np.mean(gaps), abs=1e-6)


def test_what_labels_change_is_held_against_each_null_under_either_loss(place, small):
    from iclgd.claims.dai2022_labels import beyond_nulls, right_less_wrong

    fields = {**LABELS.fields, "model": str(place / "tiny"), "task": small.fields["task"], "k": 3, "queries": 4}
    study = run_study("compare", LABS["compare"].spec.of(fields | {"seeds": 2}), Where(place / "cells"))

    def mean(learner: str, metric: str, null: str | None) -> float:
        found = study.arrays(learner=learner, metric=metric, null=null)
        values = [one.at(position="prompt").values if "position" in one.axes else one.values for one in found]
        return float(np.mean([np.nanmean(one) for one in values]))

    found = beyond_nulls("0.01")(study)
    assert list(found) == [f"{loss}, {null}" for loss in ("all tokens", "label") for null in NAMED]
    own, other = (mean("gd 0.01 target=label", "contrast-AOU", null) for null in (None, "other-demos"))
    assert found["label, other demonstrations'"].mean == pytest.approx(own - other, abs=1e-6)
    right, wrong = (mean("gd 0.01", "accuracy", null) for null in (None, "wrong-labels"))
    assert right_less_wrong("0.01")(study)["all tokens"].mean == pytest.approx(right - wrong, abs=1e-6)


def test_likeness_is_held_against_nulls_under_either_loss(place, small):
    from iclgd.claims.dai2022 import beyond

    learners = ("gd", "gd:target=label")
    fields = {**small.fields, "learners": learners, "init": ("trained",), "metrics": ("SimAOU",), "contrast": False}
    study = run_study("compare", LABS["compare"].spec.of(fields), Where(place / "cells"))
    found = beyond(another_query="other-query", wrong_labels="wrong-labels")(study)
    assert list(found) == [f"{loss}, {null}" for loss in ("all tokens", "label") for null in NULLS]

    def mean(null: str | None) -> float:
        arrays = study.arrays(learner="gd 0.001 target=label", metric="SimAOU", null=null)
        return float(np.mean([np.nanmean(one.at(position="prompt").values) for one in arrays]))

    assert found["label, another query"].mean == pytest.approx(mean(None) - mean("other-query"), abs=1e-6)


def test_depths_are_the_first_half_and_the_third_quarter_of_the_layers(monkeypatch):
    from iclgd.labs.compare import view

    layers = np.arange(24.0) ** 2

    class Planted:
        spec = type("Spec", (), {"task": ("one",)})

        def __init__(self, study):
            pass

        def values(self, tasks, position, learner, **labels):
            return np.ones((1, 2, 3, 1)) * (layers if learner.startswith("lcgd") else 0)

    monkeypatch.setattr(view, "Comparison", Planted)
    found = reading.by_depth("SimAM_delta")(None)
    assert found == {"first half": [layers[:12].mean()], "third quarter": [layers[12:18].mean()]}


def test_words_of_a_demonstration_are_counted_against_what_was_printed(place, small):
    study = run_study("compare", LABS["compare"].spec.of(dict(small.fields)), Where(place / "cells"))
    found = reading.tokens_over({"sst2": 10.0, "mr": 20.0})(study)
    facts = [r.facts for c, r in study.found() if "learner" not in c.labels and c.labels["init"] == "trained"]
    first = [f["context_tokens"] / f["demonstrations"] for f in facts if f["task"] == "sst2"]
    assert found[0] == pytest.approx(np.mean(first) / 10)


def test_the_learners_that_claims_name_are_learners_of_their_study():
    for study in (FEW, STRONG):
        assert {cell.labels.get("learner") for cell in cells_of(study, Asked())} == {None, "gd 0.001", "lcgd 0.001"}


def test_the_arms_that_claims_name_are_arms_of_their_study():
    cells = LABS["dual train"].spec.of(dict(ren2024_modified.TRAIN.fields)).cells()
    named = {*ren2024_modified.LEGEND, "regularised", "augmented", "centred", "plain"}
    assert named == {cell.labels["arm"] for cell in cells}
    changed = LABS["dual modify"].spec.of(dict(ren2024_modified.MODIFY[0].fields)).cells()
    assert {"plain", "negative k=1 beta=0.1", "negative beta=0.1"} == {c.labels["modification"] for c in changed}


def test_arms_of_trained_attention_are_paired_with_plain_by_seed(tmp_path):
    fields = {"tasks": ("linear",), "arms": ("negative:k=3:beta=0.5", "centred"), "seeds": 2, "epochs": 2, "steps": 2}
    spec = LABS["dual train"].spec.of({**fields, "batch": 4, "episodes": 8, "dx": 3, "k": 5})
    study = run_study("dual train", spec, Where(tmp_path))
    arm, plain = (reading.last_losses(study, "linear", name) for name in ("negative", "plain"))
    assert len(arm) == len(plain) == 2
    assert reading.minus_plain(study, "linear", "negative") == [a - b for a, b in zip(arm, plain, strict=True)]
    steps = [float(one.values) for one in study.arrays(quantity="reference", learner="centred gd step")]
    best = reading.best_arm_less_step(study, "linear", ["negative", "centred"])
    both = zip(arm, reading.last_losses(study, "linear", "centred"), strict=True)
    assert best == [min(pair) - step for pair, step in zip(both, steps, strict=True)]


# layers, depths, orders


def test_distances_to_the_own_learner_are_over_the_nearest_other():
    from iclgd.claims.reading_layers import own_over_others
    from iclgd.results import array

    class Planted:
        def arrays(self, **labels):
            found = {"gd": (0.1, 0.2), "delta": (0.4, 0.5), "zero": (0.2, 0.9)}
            return [array(v, name=name, **labels) for name, values in found.items() for v in values]

    found = own_over_others({"linear": "gd", "delta": "delta"})(Planted())
    assert found["linear"] == pytest.approx([0.5, 0.4])
    assert found["delta"] == pytest.approx([4.0, 2.5])


def test_orders_are_read_with_their_intervals_over_draws(place):
    from iclgd.claims.reading_layers import of_orders, tokens_with_reading

    given = {"model": str(place / "tiny"), "task": str(place / "sst2.yaml"), "k": 3, "queries": 4, "orders": 3}
    more = {"seeds": 3, "learners": "gd", "rates": (0.1,), "device": "cpu", "top": 3}
    study = run_study("order", LABS["order"].spec.of(given | more), Where(place / "cells"))
    reading, less = of_orders("updates", "icl")(study), of_orders("updates", "icl", "gd 0.1, all at once")(study)
    assert reading.seeds == 3
    assert less.mean == pytest.approx(reading.mean, abs=1e-3)  # a full batch does not see the order
    p = np.stack([one.values for one in study.arrays(quantity="p", learner="gd 0.1")])
    assert of_orders("p", "gd 0.1")(study).mean == pytest.approx(p.std(1, ddof=1).mean())
    shared = [one.values.mean() for one in study.arrays(quantity="overlap with icl", learner="gd 0.1")]
    before = [one.values.mean() for one in study.arrays(quantity="overlap with icl", learner="zero-shot")]
    assert tokens_with_reading("gd 0.1")(study).mean == pytest.approx(np.mean(shared))
    assert tokens_with_reading("gd 0.1", "zero-shot")(study).mean == pytest.approx(np.mean(shared) - np.mean(before))


def test_no_share_of_tokens_has_an_interval_that_reaches_below_none():
    from iclgd.claims.reading_layers import tokens_with_reading

    class Planted:
        class spec:
            seeds = (0, 1)

        def stack(self, along, seeds, learner, **labels):
            return np.array([[0.0, 0.1], [0.2, 0.1]]) + (0.8 if learner == "zero-shot" else 0.0)

    found, less = tokens_with_reading("gd")(Planted()), tokens_with_reading("gd", "zero-shot")(Planted())
    assert (found.mean, less.mean) == (pytest.approx(0.1), pytest.approx(-0.8))
    assert 0 <= found.low < 0.1 < found.high <= 1
    assert -1 <= less.low <= less.high <= 1


def test_growth_by_layer_is_one_number_a_seed(place):
    from iclgd.claims.reading_layers import growth_by_layer

    given = {"dx": 2, "k": 4, "steps": 3, "batch": 4, "episodes": 30, "seeds": 2, "layers": 2}
    study = run_study("linear depth", LABS["linear depth"].spec.of(given), Where(place / "cells"))
    steps = [one.values for one in study.arrays(quantity="steps", path="gd", layers=2, init=None)]
    assert growth_by_layer(2)(study) == pytest.approx([two / one for one, two in steps])
