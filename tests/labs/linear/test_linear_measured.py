"""A layer whose weights are written down is measured to be what it is."""

import numpy as np
import pytest
import torch

from iclgd.labs.linear import exam as exam_
from iclgd.labs.linear.run import curves, measured
from iclgd.labs.linear.spec import TrainSpec
from iclgd.metrics import functions as compare
from iclgd.small import construct, learners, optimum
from iclgd.small.train import Trained

torch.set_num_threads(1)
GIVEN = {
    "task": "skewed",
    "dx": 3,
    "dy": 2,
    "k": 5,
    "noise": 0.2,
    "episodes": 200,
    "seeds": 1,
    "learners": "gd,averaging",
}


def cell_of(**change):
    return TrainSpec.of(GIVEN | change).cells()[0].spec


def exam_of(cell):
    return exam_.exam(cell, exam_.at_their_best(cell))


def as_params(layer):
    """The same layer at another scale of its two matrices, which moves freely between them."""
    return {"qk": 2 * layer.qk.float(), "pv": layer.pv.float() / 2}


@pytest.fixture(scope="module")
def built():
    """The best gradient step as a layer of attention, and all that is measured on it."""
    cell = cell_of()
    judged, rate = exam_of(cell), optimum.one_step(cell.family)[0]
    return cell, judged, rate, measured(cell, judged, as_params(construct.gd_layer(3, 2, rate)), [])


def only(result, **labels):
    (one,) = result.select(**labels)
    return one


def test_the_layer_of_a_gradient_step_is_like_that_step_in_every_measure(built):
    _, judged, _, result = built
    cosine, distance, prediction, spd, implied = only(result, quantity="likeness", learner="gd ×1").values
    assert cosine == pytest.approx(1, abs=1e-5)
    assert max(distance, prediction, spd, implied) < 1e-4
    own = float(only(result, quantity="loss", learner="trained").values)
    assert own == pytest.approx(float(only(result, quantity="loss", learner="gd ×1").values), rel=1e-5)
    assert own == pytest.approx(compare.loss(judged.references["gd ×1"], judged.held), rel=1e-5)


def test_its_distances_to_other_learners_are_those_learners_own(built):
    _, judged, rate, result = built
    held, probes = judged.held, judged.probes
    w = learners.averaging(held.x, held.y)
    gap = (rate - 1) * learners.predict(w, held.query)
    found = only(result, quantity="likeness", learner="averaging").values
    assert found[0] == pytest.approx(1, abs=1e-5)
    assert found[2] == pytest.approx(float(gap.norm(dim=-1).mean()), rel=1e-4)
    assert found[3] == pytest.approx(float(gap.square().sum(-1).mean()), rel=1e-4)
    implied = ((rate - 1) * learners.averaging(probes.x, probes.y)).square().sum((-2, -1)).mean()
    assert found[4] == pytest.approx(float(implied), rel=1e-3)
    zero = only(result, quantity="likeness", learner="zero").values
    assert np.isnan(zero[0])
    assert zero[3] == pytest.approx(float((rate * learners.predict(w, held.query)).square().sum(-1).mean()), rel=1e-4)
    assert float(only(result, quantity="loss", learner="zero").values) == pytest.approx(
        float(held.target.square().sum(-1).mean()) / 2
    )


def test_the_exact_risk_is_that_of_the_best_step_and_only_linear_families_have_it(built):
    cell, _, _, result = built
    assert [one.labels["learner"] for one in result.select(quantity="risk")] == ["gd ×1"]
    assert float(only(result, quantity="risk").values) == pytest.approx(optimum.one_step(cell.family)[1])


def test_its_weights_imply_its_rate_and_stand_at_their_distance_from_both_constructions(built):
    cell, judged, rate, result = built
    assert float(only(result, quantity="rate / N", learner="trained").values) == pytest.approx(rate / 5, rel=1e-5)
    assert float(only(result, quantity="rate / N", learner="gd ×1").values) == pytest.approx(rate / 5)
    assert float(only(result, quantity="weight distance", learner="gd").values) < 1e-6
    matrix = optimum.best_preconditioner(cell.family)[0]
    scaled = matrix / matrix.diagonal().mean()
    qk = float((torch.eye(3, dtype=torch.float64) - scaled).square().sum() / scaled.square().sum())
    pv = (1 - rate / float(matrix.diagonal().mean())) ** 2
    far = float(only(result, quantity="weight distance", learner="preconditioned").values)
    assert far == pytest.approx(((qk + pv) / 2) ** 0.5, rel=1e-4)
    half_matrix = (torch.eye(3, dtype=torch.float64) + scaled) / 2 * (rate + float(matrix.diagonal().mean())) / 2
    x, y = judged.held.x.double(), judged.held.y.double()
    answer = learners.predict(learners.preconditioned(x, y, half_matrix), judged.held.query.double())
    expected = float(compare.half_square(answer, judged.held.target.double()))
    assert float(only(result, quantity="half-way loss").values) == pytest.approx(expected, rel=1e-4)


def test_the_matrices_kept_are_the_learned_and_the_constructed_ones(built):
    cell, _, rate, result = built
    matrix = optimum.best_preconditioner(cell.family)[0]
    scale = float(matrix.diagonal().mean())

    def kept(side, name):
        return only(result, quantity="weights", side=side, matrix=name).values

    assert kept("learned", "qk")[:3, :3] == pytest.approx(np.eye(3))
    assert kept("learned", "pv")[3:, 3:] == pytest.approx(-rate * np.eye(2), rel=1e-5)
    assert kept("constructed", "qk")[:3, :3] == pytest.approx((matrix / scale).numpy(), rel=1e-5)
    assert kept("constructed", "pv")[3:, 3:] == pytest.approx(-scale * np.eye(2), rel=1e-5)


def test_out_of_distribution_the_layer_stays_the_step(built):
    cell, judged, _, result = built
    for kind, cases in exam_.shifts(cell).items():
        losses = {
            name: only(result, quantity="shifted loss", shift=kind, learner=name) for name in ("trained", "gd ×1")
        }
        assert losses["trained"].coordinates["value"] == tuple(cases)
        assert losses["trained"].values == pytest.approx(losses["gd ×1"].values, rel=1e-4)
        expected = [compare.loss(judged.references["gd ×1"], case) for case in cases.values()]
        assert losses["gd ×1"].values == pytest.approx(expected)


def test_shifted_episodes_are_shifted_as_they_say(built):
    cell, *_ = built
    shifted = exam_.shifts(cell)
    base = shifted["label scale"][1.0]
    assert list(shifted["input scale"]) == [0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0]
    for factor, case in shifted["input scale"].items():
        torch.testing.assert_close(case.x, factor * base.x)
    assert list(shifted["label scale"]) == [0.5, 1.0, 2.0, 3.0, 4.0, 5.0]
    for factor, case in shifted["label scale"].items():
        torch.testing.assert_close((case.x, case.y, case.target), (base.x, factor * base.y, factor * base.target))
    assert list(shifted["law"]) == ["uniform", "normal", "laplace", "exponential", "sphere"]
    torch.testing.assert_close(shifted["law"]["normal"].x, base.x)
    white = shifted["law"]["sphere"].x.double() @ torch.linalg.inv(cell.family.inputs.root).T
    torch.testing.assert_close(white.norm(dim=-1), torch.full((200, 5), 3**0.5, dtype=torch.float64), rtol=1e-4, atol=0)
    assert list(shifted["random labels"]) == [0, 1, 2, 3, 4, 5]
    for count, case in shifted["random labels"].items():
        torch.testing.assert_close(case.y[:, count:], base.y[:, count:])
        assert not count or (case.y[:, :count] != base.y[:, :count]).all()
        torch.testing.assert_close(case.target, base.target)


@pytest.mark.parametrize("k, counts", [(3, [0, 1, 2, 3]), (10, [0, 2, 4, 6, 8, 10]), (12, [0, 2, 4, 6, 8, 10, 12])])
def test_random_labels_come_in_about_five_steps_up_to_all_of_them(k, counts):
    cell = cell_of(k=k, episodes=2)
    assert list(exam_.shifts(cell)["random labels"]) == counts


def test_the_exam_has_its_episodes_and_enough_queries_for_implied_weights(built):
    _, judged, _, _ = built
    assert judged.held.query.shape == (200, 1, 3)
    assert judged.probes.query.shape == (200, 6, 3)
    assert list(judged.references) == ["gd ×1", "averaging", "zero"]
    assert {"gd ×1", "averaging", "3 nearest", "zero"} == set(judged.candidates)


def test_the_answer_after_each_layer_is_compared_by_itself():
    cell = cell_of(layers=2, shared=True, learners="gd", noise=0.0)
    judged, rate = exam_of(cell), optimum.one_step(cell.family)[0]
    result = measured(cell, judged, as_params(construct.gd_layer(3, 2, rate)), [])
    found = only(result, quantity="likeness by layer")
    assert found.coordinates["layer"] == (1, 2)
    assert float(found.at(layer=1, learner="gd ×1", metric="spd").values) < 1e-6
    assert float(found.at(layer=1, learner="gd ×1", metric="cosine").values) == pytest.approx(1, abs=1e-4)
    probes = judged.probes
    two = learners.predict(learners.gd(probes.x, probes.y, rate, 2), probes.query)
    one = learners.predict(learners.gd(probes.x, probes.y, rate, 1), probes.query)
    gap = float((two - one).square().sum(-1).mean())
    assert float(found.at(layer=2, learner="gd ×1", metric="spd").values) == pytest.approx(gap, rel=1e-3)
    assert not result.select(quantity="weights")


def test_curves_are_each_seeds_own(built):
    _, judged, _, _ = built
    watched = {
        step: {"loss": torch.tensor([1.0, 2.0]) + step, "alike": torch.arange(18.0).reshape(2, 3, 3) + step}
        for step in (0, 5)
    }
    loss, *alike = curves(Trained({}, torch.zeros(1, 2), watched), judged, 1)
    assert loss.values.tolist() == [2.0, 7.0]
    assert loss.coordinates["step"] == (0, 5)
    assert [one.labels["learner"] for one in alike] == ["gd ×1", "averaging", "zero"]
    assert alike[1].at(metric="distance").values.tolist() == [13.0, 18.0]
    assert alike[2].at(step=5).values.tolist() == [20.0, 21.0, 22.0]
