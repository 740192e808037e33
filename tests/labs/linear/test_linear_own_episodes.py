"""Every seed is judged on episodes of its own, so that an interval over seeds covers which episodes were drawn."""

import numpy as np
import pytest
import torch
from planted_linear import study
from test_linear_page import entry, near
from test_linear_tables import kinds

from iclgd.labs.linear import depth, exam, figures, layers, page
from iclgd.labs.linear.run import run, shifted, together
from iclgd.labs.linear.spec import TrainSpec
from iclgd.labs.linear.stacks import DepthSpec, LayersSpec
from iclgd.metrics import functions as compare
from iclgd.results import Result
from iclgd.small import construct, learners, optimum
from iclgd.small.models import predictor
from iclgd.small.references import linear
from iclgd.small.streams import TRAINING, generator
from iclgd.tools import Tools

torch.set_num_threads(1)
SMALL = {"dx": 3, "k": 5, "steps": 2, "batch": 4, "episodes": 60}
STUDIES, SEEDS = 200, 5
RATE = 1.0


def cells(seeds, **change):
    return [cell.spec for cell in TrainSpec.of(SMALL | {"seeds": seeds} | change).cells()]


def plain(rate=RATE):
    """Learners of which none is tuned: one gradient step of this rate."""
    return exam.Learners({"gd ×1": linear(lambda x, y: learners.gd(x, y, rate, 1))}, {})


def layer_of(rate, dx):
    """The layer that is a gradient step of this rate."""
    return {name: part.float() for name, part in construct.gd_layer(dx, 1, rate)._asdict().items()}


def value(result, **labels):
    (one,) = result.select(**labels)
    return one.values


def planted_studies():
    """Of layers that are the best gradient step but for a little noise in the rate: losses [study, seed, who]."""
    specs = cells(STUDIES * SEEDS, episodes=300)
    rate = optimum.one_step(specs[0].family)[0]
    noise, found = 0.01 * np.random.default_rng(0).standard_normal(len(specs)), []
    for spec, more in zip(specs, noise, strict=True):
        held = exam.exam(spec, exam.Learners({}, {})).held
        trained = predictor(spec.model, layer_of(rate * (1 + float(more)), spec.dx))
        found.append([compare.loss(predict, held) for predict in (trained, plain(rate).references["gd ×1"])])
    return np.reshape(found, (STUDIES, SEEDS, 2)), optimum.one_step(specs[0].family)[1]


def test_the_interval_of_a_loss_over_seeds_covers_the_exact_risk_as_often_as_it_says():
    losses, risk = planted_studies()
    for who in range(2):
        sizes = [page.estimate(seeds) for seeds in losses[..., who]]
        assert 0.90 <= np.mean([size.low <= risk <= size.high for size in sizes]) <= 0.98
    apart = [page.difference(*seeds.T) for seeds in losses]
    difference, loss = (np.mean([size.high - size.low for size in some]) for some in (apart, sizes))
    assert difference < 0.1 * loss  # on the same episodes: the difference is known far better than either loss


def test_two_seeds_have_different_episodes_of_every_kind():
    one, two = cells("1,2")
    a, b = (exam.exam(spec, plain()) for spec in (one, two))
    for mine, other in ((a.held, b.held), (a.probes, b.probes)):
        assert mine.x.shape == other.x.shape
        assert not (mine.x == other.x).any()
    mine, other = exam.shifts(one), exam.shifts(two)
    for kind, cases in mine.items():
        for place, case in cases.items():
            assert not (case.x == other[kind][place].x).any(), (kind, place)
            assert place == 0 or not (case.y == other[kind][place].y).any(), (kind, place)


def test_labels_that_are_replaced_are_not_the_numbers_that_inputs_were_drawn_from():
    (spec,) = cells("1,", task="gaussian")
    found = exam.shifts(spec)["random labels"][5]
    assert not np.isin(found.y.numpy(), found.x.numpy()).any()


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_what_a_seed_is_judged_on_is_neither_what_learners_were_tuned_on_nor_what_it_was_trained_on(seed, monkeypatch):
    (spec,) = cells(f"{seed},")
    used: dict[str, set[int]] = {}

    def told(purpose, make, *given):
        monkeypatch.setattr(exam, "generator", lambda *key: seen(purpose, generator(*key)))
        make(*given)

    def seen(purpose, made):
        used.setdefault(purpose, set()).add(made.initial_seed())
        return made

    told("tuning", exam.tuning_sample, spec.family, spec.dx)
    told("held", exam.exam, spec, plain())
    told("shifted", exam.shifts, spec)
    used["training"] = {generator(TRAINING, seed, block).initial_seed() for block in range(100)}
    assert {name: len(seeds) for name, seeds in used.items()} == {"tuning": 1, "held": 1, "shifted": 2, "training": 100}
    assert len(set.union(*used.values())) == 104


def test_a_seed_has_the_same_references_and_shifts_whoever_is_run_beside_it():
    beside = list(together(TrainSpec.of(SMALL | {"seeds": "4,2,9"}).cells(), Tools()))[1]
    (cell,) = TrainSpec.of(SMALL | {"seeds": "2,"}).cells()
    alone = run(cell, Tools())
    for name in ("gd ×1", "zero"):
        for labels in ({"quantity": "loss"}, {"quantity": "shifted loss", "shift": "law"}):
            a, b = (value(result, learner=name, **labels) for result in (beside, alone))
            assert np.array_equal(a, b)
    first = [float(value(r, quantity="loss by step", learner="trained")[0]) for r in (beside, alone)]
    assert first[0] == pytest.approx(first[1], rel=1e-6)


def test_a_model_is_watched_and_judged_on_the_episodes_of_its_own_seed():
    specs = cells("3,8")
    found = list(together(TrainSpec.of(SMALL | {"seeds": "3,8"}).cells(), Tools()))
    assert value(found[0], quantity="loss", learner="zero") != value(found[1], quantity="loss", learner="zero")
    for spec, result in zip(specs, found, strict=True):
        held = exam.exam(spec, plain()).held
        zero = float(held.target.square().sum(-1).mean()) / 2
        assert float(value(result, quantity="loss", learner="zero")) == pytest.approx(zero)
        start = compare.loss(predictor(spec.model, spec.model.init(spec.seed)), held)
        assert float(value(result, quantity="loss by step", learner="trained")[0]) == pytest.approx(start, rel=1e-5)
        curve = value(result, quantity="loss by step", learner="trained")
        assert curve[-1] == pytest.approx(float(value(result, quantity="loss", learner="trained")), rel=1e-5)


def test_shifted_losses_of_the_model_and_of_learners_are_on_the_same_episodes():
    (spec,) = cells("6,")
    judged = exam.exam(spec, plain())
    result = Result({}, shifted(spec, judged, layer_of(RATE, 3)))
    for kind in exam.shifts(spec):
        own, step = (value(result, shift=kind, learner=name) for name in ("trained", "gd ×1"))
        assert own == pytest.approx(step, rel=1e-4)


@pytest.mark.parametrize("lab, spec, change", [(layers, LayersSpec, {"kinds": "linear,delta"}), (depth, DepthSpec, {})])
def test_layers_and_stacks_of_one_seed_are_judged_alike_and_those_of_another_are_not(lab, spec, change, monkeypatch):
    asked = []
    own = lab.evaluation
    monkeypatch.setattr(lab, "evaluation", lambda seed: asked.append(seed) or own(seed))
    study_cells = spec.of(SMALL | {"seeds": "2,5", "layers": 1} | change).cells()
    found = list(lab.together(study_cells, Tools()))
    assert set(asked) == {2, 5}
    if lab is layers:
        zero = [float(one.select(quantity="loss", name="zero")[0].values) for one in found]
        assert zero[:2] == zero[2:]
        assert zero[0] != zero[1]
    alone = lab.run(study_cells[1], Tools())
    for a, b in zip(found[1].arrays, alone.arrays, strict=True):
        assert np.allclose(a.values, b.values, rtol=1e-3, atol=1e-5, equal_nan=True), a.labels


# what the pages make of it


def spread(of, name="gd ×1"):
    """The same study with a learner's losses .02 apart from seed to seed."""
    for cell, result in of.found():
        for quantity in ("loss", "shifted loss"):
            for one in result.select(quantity=quantity, learner=name):
                one.values[...] = one.values + 0.02 * (cell.labels["seed"] - 1)
    return of


def test_a_learners_loss_is_its_mean_over_seeds_with_its_interval():
    shown = spread(study())
    near(entry(page.learners_table(shown), "gd ×1", "loss"), 0.29, 0.02)
    near(page.shifts_table(shown).rows[5][3], 14.0, 0.02)
    left, *_ = figures.training(shown).axes
    (line,) = [one for one in left.lines if one.get_label() == "gd ×1"]
    assert line.get_ydata()[0] == pytest.approx(0.29)
    (line,) = [one for one in figures.shifts(shown).axes[1].lines if one.get_label() == "gd ×1"]
    assert line.get_ydata() == pytest.approx([12.0, 13.0])


def test_learners_of_kinds_of_layers_have_their_mean_loss_over_seeds():
    shown = kinds("0,1,2")
    for cell, result in shown.found():
        (one,) = result.select(quantity="loss", name="gd")
        one.values[...] = 0.5 + 0.02 * (cell.labels["seed"] - 1)
    losses = next(row for row in layers.page(shown).table().rows if row[0] == "(its own loss)")
    near(losses[3], 0.5, 0.02)
