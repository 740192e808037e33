"""Layers trained on membership, against the learners they may have become."""

import itertools

import numpy as np
import pytest
import torch
from language_studies import SMALL, run_reading

from iclgd.errors import Refusal
from iclgd.labs.languages.measures import BYPASS, TRAINED, as_preconditioner, correlation
from iclgd.labs.languages.run import together
from iclgd.labs.languages.spec import AllSpec, RunSpec
from iclgd.small.attention import Weights
from iclgd.small.models import Transformer
from iclgd.tasks.regression import Episodes
from iclgd.tools import Tools

BRIEF = {"steps": 3, "episodes": 40, "batch": 8}


@pytest.fixture(scope="module")
def fixed():
    return run_reading(steps=600)


@pytest.fixture(scope="module")
def signed():
    return run_reading(steps=600, labels="sign", start="gd")


def mean(reading, learner, quantity, shuffled=False):
    return float(np.mean(reading.of(learner, quantity, shuffled)))


def test_with_a_fixed_language_the_labels_are_not_read(fixed):
    assert mean(fixed, TRAINED, "accuracy") > 0.85
    assert abs(fixed.reads_labels().mean()) < 0.02
    assert abs(mean(fixed, "preconditioned gd", "accuracy", True) - 0.5) < 0.05  # GD of any kind reads them
    assert mean(fixed, "no context", "cosine") > 0.99  # what the layer has come near to


def test_likeness_alone_does_not_tell_whether_labels_are_read_and_shuffled_labels_do(fixed, signed):
    """Of one language the best step has one direction: a layer that reads no label has it too."""
    assert mean(fixed, "preconditioned gd", "cosine") > 0.98
    assert abs(mean(fixed, "preconditioned gd", "cosine", True)) < 0.2
    assert mean(signed, "preconditioned gd", "cosine", True) > 0.95
    assert abs(mean(signed, "no context", "cosine")) < 0.2


def test_with_a_random_sign_the_layer_comes_to_preconditioned_gd_and_not_gd(signed):
    assert signed.of("preconditioned gd", "cosine").min() > 0.999
    assert mean(signed, "gd", "cosine") < 0.9
    assert mean(signed, "preconditioned gd", "mse") < mean(signed, "gd", "mse") / 10
    assert mean(signed, TRAINED, "accuracy") > 0.85
    assert abs(mean(signed, TRAINED, "accuracy", True) - 0.5) < 0.05
    assert signed.weights("cosine to the best preconditioner").min() > 0.98
    assert signed.weights("cosine to a multiple of the identity").max() < 0.9


def test_a_cosine_near_one_takes_no_gradient_step(signed):
    """A stored classifier times a count has it too; the correlation of predictions tells the two apart."""
    assert mean(signed, "stored × hits", "cosine") > 0.95
    assert mean(signed, "preconditioned gd", "correlation") > mean(signed, "stored × hits", "correlation")
    assert signed.of("preconditioned gd", "correlation").min() > 0.999


def test_correlation_is_pearsons_over_all_queries():
    a, b = torch.tensor([[[1.0], [2.0]], [[4.0], [3.0]]]), torch.tensor([[[2.0], [1.0]], [[5.0], [7.0]]])
    expected = np.corrcoef(a.flatten(), b.flatten())[0, 1]
    assert correlation(a, b) == pytest.approx(expected)
    assert correlation(a, -3 * a + 5) == pytest.approx(-1)
    assert np.isnan(correlation(a, torch.ones_like(a)))


def test_the_layer_leaves_its_start_near_gd(signed):
    cosines = signed.training("gd", "cosine").mean(0)
    assert cosines[0] > 0.9
    assert cosines[-1] < cosines[0]


def test_curves_end_at_the_results(signed):
    assert signed.steps("training")[0] == 0
    assert signed.steps("training")[-1] == 600
    for learner, quantity in ((TRAINED, "accuracy"), (TRAINED, "loss"), ("gd", "mse"), ("gd", "cosine")):
        last = signed.training(learner, quantity)[:, -1]
        assert last == pytest.approx(signed.of(learner, quantity), rel=1e-4)


def test_a_seed_gives_its_numbers_whoever_trains_beside_it():
    both = run_reading(**BRIEF | {"steps": 5})
    for i in range(2):
        alone = run_reading(**BRIEF | {"steps": 5, "seeds": f"{i},"})
        for name in (TRAINED, *both.learners):
            assert alone.of(name, "loss")[0] == pytest.approx(both.of(name, "loss")[i], rel=1e-4)


@pytest.mark.slow
def test_with_a_drawn_language_the_layer_comes_to_preconditioned_gd_and_not_gd():
    reading = run_reading(language="random", labels="language", start="gd", min_length=8, max_length=8)
    assert mean(reading, "preconditioned gd", "cosine") > 0.99
    assert mean(reading, "gd", "cosine") < 0.92
    assert mean(reading, TRAINED, "accuracy") > 0.65
    assert abs(mean(reading, TRAINED, "accuracy", True) - 0.5) < 0.05


@pytest.mark.slow
def test_autoencoder_codes_need_white_coordinates_to_reach_the_optimum(monkeypatch):
    hard = {"language": "a*bc*", "encoder": "autoencoder", "negatives": "edits", "labels": "sign", "start": "gd"}
    white = run_reading(**hard)
    monkeypatch.setattr("iclgd.labs.languages.run.whitening", lambda task: torch.eye(task.codes.shape[-1] + 1))
    plain = run_reading(**hard)
    matrices = [found.weights("cosine to the best preconditioner").min() for found in (white, plain)]
    assert matrices[0] > 0.99 > 0.95 > matrices[1]
    assert white.of("preconditioned gd", "mse").max() < plain.of("preconditioned gd", "mse").min()


def test_a_layer_is_a_preconditioner_a_fixed_answer_and_a_term_without_labels():
    g = torch.Generator().manual_seed(0)
    model = Transformer(3, start=0.5)
    params = {name: value.double() for name, value in model.init(0).items()}
    y = (torch.randint(2, (5, 8, 1), generator=g) * 2 - 1).double()
    x, query = torch.randn(5, 8, 3, generator=g).double(), torch.randn(5, 1, 3, generator=g).double()
    weights = Weights(params["qk"], params["pv"])
    a, r = as_preconditioner(weights, 3)
    b, s = (y * x).mean(1), x.mT @ x / 8
    plain = -(weights.pv[0, 0][3, :3] @ s @ weights.qk[0, 0][:3, :3])  # p_xᵀ S Q_xx
    expected = ((b @ a + r + plain) * query[:, 0]).sum(-1)
    answer = model.predict(params, Episodes(x, y, query, query[..., :1]))
    assert torch.allclose(answer[:, 0, 0], expected, atol=1e-12)


@pytest.mark.parametrize("encoder", ["autoencoder:steps=3", "end-to-end"])
def test_the_other_encoders_run(encoder):
    reading = run_reading(**BRIEF, encoder=encoder, labels="sign")
    ours = encoder != "end-to-end"
    assert ("gd on learned features" in reading.learners) != ours
    assert ("preconditioned gd" in reading.learners) == ours
    assert (BYPASS in reading.learners) != ours
    assert (reading.encoding("loss").shape == (2, 4)) == ours
    assert bool(reading.matrix(TRAINED, "qk").size) == ours
    assert np.isfinite(reading.of(TRAINED, "loss")).all()


def test_more_layers_run_and_have_no_construction_beside_them():
    reading = run_reading(**BRIEF, labels="sign", layers=2)
    assert reading.called("gd") == "gd ×2"
    assert reading.called("preconditioned gd") == "preconditioned gd ×2"
    assert not reading.matrix(TRAINED, "qk").size
    assert not reading.weights("cosine to the best preconditioner").size


def test_a_seed_that_diverges_is_named():
    with pytest.raises(Refusal, match="lower"):
        run_reading(layers=2, rate=1e12, batch=16, steps=20, episodes=50)


def test_cells_of_a_group_are_prepared_once_and_their_results_keep_their_order(monkeypatch):
    from iclgd.labs.languages import run

    prepared = []

    def counting(data):
        prepared.append(data.seeds)
        return original(data)

    original = run.prepare
    monkeypatch.setattr(run, "prepare", counting)
    settings = [RunSpec.of(SMALL | BRIEF | {"labels": labels}) for labels in ("sign", "fixed")]
    cells = [cell for spec in settings for cell in spec.cells()]
    assert len({cell.group for cell in cells}) == 1
    mixed = list(together(cells, Tools()))
    assert prepared == [(0, 1)]
    for spec, part in zip(settings, (mixed[:2], mixed[2:]), strict=True):
        for found, alone in zip(part, together(spec.cells(), Tools()), strict=True):
            assert [a.labels for a in found.arrays] == [a.labels for a in alone.arrays]
            for a, b in zip(found.arrays, alone.arrays, strict=True):
                assert np.array_equal(a.values, b.values, equal_nan=True)


def test_settings_of_a_group_may_lack_different_seeds():
    """Of one setting seeds 3 and 5 are missing, of another only 5: each gets its own."""
    sign, fixed = (RunSpec.of(SMALL | BRIEF | {"labels": labels, "seeds": [3, 5]}) for labels in ("sign", "fixed"))
    results = list(together([*sign.cells(), fixed.cells()[1]], Tools()))
    assert len(results) == 3
    (alone,) = together(fixed.cells()[1:], Tools())
    for a, b in zip(results[2].arrays, alone.arrays, strict=True):
        assert a.labels == b.labels
        assert np.allclose(a.values, b.values, rtol=1e-3, atol=1e-4, equal_nan=True)


def test_a_layer_starts_near_a_small_step_of_gd_in_the_codes_own_coordinates():
    reading = run_reading(**BRIEF | {"steps": 1}, labels="sign", start="gd")
    other = run_reading(**BRIEF | {"steps": 1}, labels="sign", start="random")
    assert reading.training("gd", "cosine")[:, 0].min() > 0.9
    assert np.abs(other.training("gd", "cosine")[:, 0]).max() < 0.9


def test_the_study_has_every_kind_once_and_its_groups_in_a_row():
    spec = AllSpec(seeds=2)
    settings, cells = spec.settings(), spec.cells()
    assert len(settings) == 57
    assert len({str(setting.where()) for setting in settings}) == 57
    assert len({cell.spec.key() for cell in cells}) == len(cells) == 114
    assert {setting.labels for setting in settings} == {"fixed", "sign", "language"}
    assert {setting.encoder.kind for setting in settings} == {"autoencoder", "pca", "end-to-end"}
    assert {setting.layers for setting in settings} == {1, 2}
    starts = [(setting.start, setting.labels, setting.encoder.kind) for setting in settings]
    assert starts.count(("gd", "sign", "pca")) == 9 + 3  # one layer, and two
    assert starts.count(("random", "sign", "pca")) == starts.count(("gd", "fixed", "pca")) == 3
    assert starts.count(("random", "fixed", "autoencoder")) == 9
    changes = sum(a.group != b.group for a, b in itertools.pairwise(cells))
    assert changes + 1 == len({cell.group for cell in cells})
    assert cells[0].labels["language"] == "random"


def test_the_studys_settings_are_trained_as_long_and_as_fast_as_each_needs():
    settings = AllSpec(seeds=1).settings()
    assert {(one.end_to_end, one.steps) for one in settings} == {(False, 2000), (True, 1500)}
    assert {(one.layers, one.rate) for one in settings if not one.end_to_end} == {(1, 0.03), (2, 0.01)}
    drawn = [one for one in settings if one.labels == "language"]
    lengths = [(one.encoder.kind, one.min_length, one.max_length) for one in drawn]
    assert lengths == [("autoencoder", 8, 8), ("pca", 8, 8), ("pca", 1, 8)]
    assert {one.max_length for one in settings if one not in drawn} == {12}
    assert {one.languages for one in settings} == {1000}
    assert {one.encoder["steps"] for one in settings if one.encoder.kind == "autoencoder"} == {1000}
    assert {one.languages for one in AllSpec(shrink=50).settings()} == {20}
    assert {one.steps for one in AllSpec(shrink=5000).settings()} == {1}


def test_a_shrunken_study_divides_steps_and_languages():
    small = AllSpec(shrink=100).settings()
    assert {setting.steps for setting in small} == {20, 15}
    assert {setting.encoder["steps"] for setting in small if setting.encoder.kind == "autoencoder"} == {10}
    assert {setting.languages for setting in small} == {10}


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({"labels": "signs"}, "Did you mean sign"),
        ({"negatives": "edit"}, "Did you mean edits"),
        ({"encoder": "pcb"}, "Did you mean pca"),
        ({"encoder": "autoencoder:steps=0"}, "autoencoder: steps must be at least 1, not 0"),
        ({"encoder": "pca:steps=3"}, 'pca has no option "steps"'),
        ({"start": "zero"}, "`start` takes random, gd"),
        ({"k": 7}, "an even `k`, not 7"),
        ({"k": 0}, "`k` must be at least 2"),
        ({"labels": "language"}, "`language` is random"),
        ({"language": "random"}, "`language` is random"),
        ({"language": "a*("}, "is not a regular expression"),
        ({"min_length": 5, "max_length": 4}, "lower `min_length`"),
        ({"max_length": 60}, "`max_length` must be at most 40"),
        ({"rate": 0.0}, "`rate` must be above 0"),
        ({"rate": float("nan")}, "`rate` takes a finite number"),
        ({"steps": 0}, "`steps` must be at least 1"),
        ({"seeds": 0}, "from 1 to 10000"),
        ({"queries": 0}, "`queries` must be at least 1"),
        ({"layers": 0}, "`layers` must be at least 1"),
        ({"dims": 41}, "`dims` must be at most 40"),
        ({"seeds": [2**32]}, "below 4294967296"),
        ({"encoder": "end-to-end", "start": "gd"}, "leave out `start`"),
        ({"language": "random", "labels": "language", "alphabet": "abc $<"}, "cannot be a symbol"),
        (
            {"language": "random", "labels": "language", "alphabet": "abcdefghij", "max_length": 30},
            "lower `max_length`",
        ),
    ],
)
def test_what_cannot_be_run_gets_a_sentence(given, sentence):
    with pytest.raises(Refusal, match=sentence):
        RunSpec.of(SMALL | given)


@pytest.mark.parametrize(
    "given, queries, rate, start",
    [
        ({}, 1, 0.03, "random"),
        ({"labels": "sign"}, 32, 0.03, "gd"),
        ({"labels": "language", "language": "random"}, 32, 0.03, "gd"),
        ({"labels": "sign", "encoder": "end-to-end"}, 1, 0.003, "random"),
        ({"encoder": "end-to-end"}, 1, 0.003, "random"),
        ({"labels": "sign", "queries": 5, "rate": 0.5, "start": "random"}, 5, 0.5, "random"),
    ],
)
def test_defaults_follow_labels_and_encoder(given, queries, rate, start):
    spec = RunSpec.of(SMALL | given)
    assert (spec.queries, spec.rate, spec.start) == (queries, rate, start)
