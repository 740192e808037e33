"""Closed forms meet Monte Carlo, and the numbers that were printed elsewhere."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from iclgd.errors import Refusal
from iclgd.metrics.functions import half_square
from iclgd.small import learners, optimum
from iclgd.tasks.laws import KURTOSIS, Inputs, LinearMap, Sine
from iclgd.tasks.regression import Regression

torch.set_num_threads(1)
F64 = torch.float64
PUBLIC = Regression(Inputs.uniform(10), LinearMap.isotropic(10), 10)  # von Oswald's setting
AHN = torch.diag(torch.tensor([1, 1, 0.25, 0.0625, 1], dtype=F64))


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def near(value, expected, relative):
    assert abs(value - expected) <= relative * abs(expected), (value, expected)


def test_one_step_has_the_public_rate_and_loss():
    rate, risk = optimum.one_step(PUBLIC)
    near(rate, 6.0606, 1e-4)
    near(risk, 0.20623, 1e-4)


@pytest.mark.parametrize("law", [*KURTOSIS, "sphere"])
def test_one_step_is_the_least_squares_rate_on_drawn_episodes(law):
    """Any law, correlated inputs, anisotropic weights with a mean, noise that varies by episode."""
    g = generator(1)
    mix = torch.randn(4, 4, generator=g, dtype=F64)
    inputs = Inputs(mix @ mix.T / 4 + 0.2 * torch.eye(4, dtype=F64), law)
    weights = LinearMap(torch.diag(torch.tensor([1, 2, 0.5, 1], dtype=F64)), mean=torch.ones(1, 4, dtype=F64))
    task = Regression(inputs, weights, 12, noise=1.5, noise_varies=True)
    drawn = task.draw(200_000, g)
    answer = learners.predict(learners.averaging(drawn.x, drawn.y), drawn.query)
    fitted = float((answer * drawn.target).sum() / answer.square().sum())
    rate, risk = optimum.one_step(task)
    near(rate, fitted, 0.02)
    near(risk, float(half_square(rate * answer, drawn.target)), 0.03)


def test_mahankalis_rate_with_noise():
    for noise in (0.0, 1.0, 2.0):
        task = Regression(Inputs.normal(5), LinearMap.isotropic(5), 20, noise)
        near(optimum.one_step(task)[0], 20 / (26 + noise**2), 1e-9)
        drawn = task.draw(300_000, generator())
        answer = learners.predict(learners.averaging(drawn.x, drawn.y), drawn.query)
        near(float((answer * drawn.target).sum() / answer.square().sum()), optimum.one_step(task)[0], 0.01)


def test_tuned_steps_of_gd_and_gdpp_meet_the_printed_losses():
    sample = PUBLIC.draw(8_000, generator(2), dtype=F64)
    near(optimum.best_gd(PUBLIC, sample, 1)[0], 6.0606, 0.01)  # the search finds what the closed form says
    near(optimum.best_gd(PUBLIC, sample, 2)[1], 0.1567, 0.01)
    near(optimum.best_gd(PUBLIC, sample, 3)[1], 0.1329, 0.01)
    near(optimum.best_gdpp(PUBLIC, sample, 2)[2], 0.1105, 0.015)


def test_two_untied_steps_of_gdpp_have_three_minima():
    """Ahn's trained pair of layers is the second: error 0.0861, rates 0.772 and 2.651, curvature 0.353 · 0.772."""
    task = Regression(Inputs.normal(5), LinearMap.isotropic(5), 20)
    minima = optimum.gdpp_minima(task, task.draw(10_000, generator(3), dtype=F64), 2)
    assert len(minima) == 3
    rates, curvatures, risk = minima[1]
    near(2 * risk, 0.0861, 0.05)
    near(float(rates[0]), 0.772, 0.02)
    near(float(rates[1]), 2.651, 0.02)
    near(float(curvatures[0]), 0.353 * 0.772, 0.02)
    near(2 * minima[0][2], 0.056, 0.05)


def test_risk_given_the_inputs_is_the_mean_loss_over_weights_noise_and_queries():
    task = Regression(Inputs.normal(3), LinearMap.isotropic(3, dy=2), 8, noise=0.7)
    drawn = task.draw(200_000, generator(4), dtype=F64)

    def learner(x, y):
        return learners.ridge(x, y, 0.5)

    exact = float(optimum.risk(learner, drawn, task))
    near(float(half_square(learners.predict(learner(drawn.x, drawn.y), drawn.query), drawn.target)), exact, 0.01)


def test_input_scale_moves_the_loss_as_printed():
    rate = optimum.one_step(PUBLIC)[0]
    for factor, printed in ((0.5, 0.0812), (1.0, 0.2062), (1.5, 1.204), (2.0, 8.40)):
        near(optimum.one_step_off_scale(PUBLIC, rate, factor), printed, 1e-3)
        task = Regression(PUBLIC.inputs.scaled(factor), PUBLIC.function, 10)
        drawn = task.draw(200_000, generator(5))
        answer = learners.predict(learners.gd(drawn.x, drawn.y, rate), drawn.query)
        near(float(half_square(answer, drawn.target)), printed, 0.02)


@pytest.mark.parametrize("inverse, error, risk_error", [(False, 0.03, 0.01), (True, 0.01, 0.01)])
def test_the_best_single_layer_is_ahns_preconditioner(inverse, error, risk_error):
    inputs = Inputs(AHN)
    task = Regression(inputs, LinearMap.inverse(inputs) if inverse else LinearMap.isotropic(5), 20)
    matrix, risk = optimum.best_preconditioner(task)
    if inverse:
        torch.testing.assert_close(matrix, 20 / 26 * torch.linalg.inv(AHN))
        near(2 * risk, 30 / 26, 1e-9)
    else:
        gamma = torch.linalg.inv(1.05 * AHN + AHN.trace() / 20 * torch.eye(5, dtype=F64))
        torch.testing.assert_close(matrix, gamma)
        near(2 * risk, float(AHN.trace() - (AHN @ AHN @ gamma).trace()), 1e-9)
    drawn = task.draw(400_000, generator(6))
    fitted = optimum.fitted_preconditioner(drawn)
    assert (fitted - matrix).norm() / matrix.norm() < error
    answer = learners.predict(learners.preconditioned(drawn.x, drawn.y, fitted.float()), drawn.query)
    near(float(half_square(answer, drawn.target)), risk, risk_error)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 6), st.integers(1, 40), st.integers(1, 40))
def test_zhangs_risk_is_bias_plus_variance(seed, dx, trained, shown):
    g = generator(seed)
    mix = torch.randn(dx, dx, generator=g, dtype=F64)
    lam, w = mix @ mix.T + 0.1 * torch.eye(dx, dtype=F64), torch.randn(dx, generator=g, dtype=F64)
    task = Regression(Inputs(lam), LinearMap.isotropic(dx), trained)
    matrix = optimum.best_preconditioner(task)[0]
    miss = w - matrix.T @ lam @ w
    outer = (w @ lam @ w) * lam + torch.outer(lam @ w, lam @ w)
    expected = float(miss @ lam @ miss + (matrix.T @ outer @ matrix @ lam).trace() / shown)
    near(optimum.zhang_risk(lam, w, trained, shown), expected, 1e-9)


def test_zhangs_risk_meets_monte_carlo():
    w, g = torch.tensor([1, -1, 0.5, 2, 0.3], dtype=F64), generator(7)
    matrix = optimum.best_preconditioner(Regression(Inputs(AHN), LinearMap.isotropic(5), 20))[0]
    x = Inputs(AHN).draw(200_000, 31, g, F64)
    answer = learners.predict(learners.preconditioned(x[:, :30], x[:, :30] @ w[:, None], matrix), x[:, 30:])
    near(float((answer[:, 0, 0] - x[:, 30] @ w).square().mean()), optimum.zhang_risk(AHN, w, 20, 30), 0.01)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 8), st.integers(0, 6))
def test_newtons_residual_is_a_power_of_two_of_its_start(seed, dx, steps):
    x = torch.randn(dx + 5, dx, generator=generator(seed), dtype=F64)
    lam, vectors = torch.linalg.eigh(x.T @ x)
    alpha = float(1 / lam.max() ** 2)
    residual = torch.eye(dx, dtype=F64) - learners.newton(x, x, steps, alpha)  # labels x: W should become the identity
    expected = (vectors * (1 - alpha * lam**2) ** 2**steps) @ vectors.T
    assert (residual - expected).abs().max() < 1e-12


def test_newton_stalls_at_the_largest_scale_that_fu_allows():
    x = torch.randn(40, 20, generator=generator(8), dtype=F64)
    w = torch.randn(1, 20, generator=generator(9), dtype=F64)
    top = float(torch.linalg.eigvalsh(x.T @ x).max())
    assert (learners.newton(x, x @ w.T, 20, 2 / top**2) - w).norm() / w.norm() > 0.01
    assert (learners.newton(x, x @ w.T, 20) - w).norm() < 1e-9


def test_gradient_steps_that_match_newton_grow_exponentially():
    x = torch.randn(40, 20, generator=generator(10), dtype=F64)
    lam = torch.linalg.eigvalsh(x.T @ x / 40)
    rate = float(2 / (lam.min() + lam.max()))
    w = torch.randn(1, 20, generator=generator(11), dtype=F64)
    y = x @ w.T
    needed = []
    for newton in (6, 8, 10, 12):
        target = (learners.newton(x, y, newton) - w).norm()
        found, steps = w.new_zeros(1, 20), 0
        while (found - w).norm() > target:
            found, steps = found + rate * learners.descent(found, x, y), steps + 1
        needed.append(steps)
    ratios = [b / a for a, b in pairwise(needed)]
    assert all(1.7 < ratio < 4.5 for ratio in ratios), needed


def test_least_squares_and_averaging_err_as_garg_prints():
    for demos in (5, 10, 15, 20, 40):
        task = Regression(Inputs.normal(20), LinearMap.isotropic(20), demos)
        drawn = task.draw(2_000, generator(12), dtype=F64)
        squares, average = optimum.garg_errors(20, demos)
        # Given the inputs the risk is exact, so averaging's heavy tail does not need many episodes.
        near(2 * float(optimum.risk(learners.averaging, drawn, task)) / 20, average, 0.02)
        error = 2 * float(optimum.risk(learners.least_squares, drawn, task)) / 20
        assert abs(error - squares) < 0.02 * squares + 1e-9


def test_the_best_ridge_is_the_posterior():
    task = Regression(Inputs.normal(8), LinearMap.isotropic(8), 16, noise=1.0)
    drawn = task.draw(5_000, generator(13), dtype=F64)
    risks = {
        p: float(optimum.risk(lambda x, y, p=p: learners.ridge(x, y, p), drawn, task))
        for p in (0.25, 0.5, 1.0, 2.0, 4.0)
    }
    assert min(risks, key=risks.get) == 1
    guess = torch.tensor([0.3], dtype=F64)
    near(optimum.tuned(lambda p: lambda x, y: learners.ridge(x, y, p[0]), guess, drawn, task)[0].item(), 1.0, 0.02)


def test_closed_forms_refuse_what_is_not_linear():
    with pytest.raises(Refusal, match="linear functions, not Sine"):
        optimum.one_step(Regression(Inputs.uniform(1, 10.0), Sine(), 10))
