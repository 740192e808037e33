"""Moments drawn by themselves have the law of those of drawn demonstrations."""

import pytest
import torch

from iclgd.small import attention, moments
from iclgd.small.models import Transformer
from iclgd.tasks.families import FAMILIES
from iclgd.tasks.laws import Inputs, LinearMap
from iclgd.tasks.regression import Regression

torch.set_num_threads(1)
F64 = torch.float64
COUNT = 30_000


def g(seed=0):
    return torch.Generator().manual_seed(seed)


def families():
    mix = torch.tensor([[1.0, 0.5, 0], [0.5, 2, 0.3], [0, 0.3, 0.5]], dtype=F64)
    weights = LinearMap(torch.diag(torch.tensor([1, 0.5, 2], dtype=F64)), 2, torch.ones(2, 3, dtype=F64))
    yield Regression(Inputs(mix), weights, 7)
    yield Regression(Inputs(mix), weights, 7, noise=0.8)
    yield Regression(Inputs(mix), weights, 7, noise=1.5, noise_varies=True)
    yield Regression(Inputs(mix), weights, 3, noise=0.5)  # fewer demonstrations than dimensions
    yield Regression(Inputs(mix), LinearMap.isotropic(3), 1)


def sampled(task, seed):
    """The plain twin: demonstrations are drawn, and their moment is taken."""
    drawn = task.draw(COUNT, g(seed), dtype=F64)
    return moments.Moments(attention.moment(torch.cat([drawn.x, drawn.y], -1)), drawn.query, drawn.target)


def statistics(found):
    """First and second moments of all that an episode holds, each with its standard error."""
    parts = [found.c.flatten(1), found.query.flatten(1), found.target.flatten(1)]
    row = torch.cat(parts, 1)
    products = (row[:, :, None] * row[:, None, :]).flatten(1)
    every = torch.cat([row, products], 1)
    return every.mean(0), every.std(0) / len(every) ** 0.5


@pytest.mark.parametrize("task", list(families()), ids=lambda task: f"{task.demos} demos, noise {task.noise}")
def test_first_and_second_moments_are_those_of_sampling(task):
    (a, a_error), (b, b_error) = statistics(moments.draw(task, COUNT, g(1), dtype=F64)), statistics(sampled(task, 2))
    error = (a_error**2 + b_error**2).sqrt()
    scores = (a - b).abs() / error.clamp_min(1e-12)
    assert float(scores.max()) < 6  # heavy tails: six standard errors over some 400 numbers


@pytest.mark.parametrize("degrees", [1, 2, 4, 30])
def test_bartletts_factor_gives_a_wishart(degrees):
    """E A = n I, var A_ij = n (1 + δ_ij), and the diagonal's third moment n (n + 2)(n + 4)."""
    factor = moments.bartlett(200_000, 3, degrees, g(3), F64)
    assert factor.shape == (200_000, 3, min(3, degrees))
    a = factor @ factor.mT
    eye = torch.eye(3, dtype=F64)
    torch.testing.assert_close(a.mean(0), degrees * eye, rtol=0.02, atol=0.02 * degrees**0.5)
    torch.testing.assert_close(a.var(0), degrees * (1 + eye), rtol=0.05, atol=0)
    third = degrees * (degrees + 2) * (degrees + 4)
    torch.testing.assert_close(
        a.diagonal(dim1=1, dim2=2).pow(3).mean(0), torch.full((3,), third, dtype=F64), rtol=0.06, atol=0
    )
    assert torch.linalg.matrix_rank(a[:50]).max() == min(3, degrees)


@pytest.mark.parametrize("layers", [1, 2])
def test_the_loss_from_moments_is_the_loss_from_tokens_in_expectation(layers):
    task = FAMILIES["gaussian"](3, 1, 6, 0.4)
    model = Transformer(3, layers=layers)
    params = {name: 0.02 * torch.randn(layers, 1, 4, 4, generator=g(5), dtype=F64) for name in ("qk", "pv")}
    params["qk"] = params["qk"] + torch.diag(torch.tensor([1.0, 1, 1, 0], dtype=F64))
    params["pv"] = params["pv"] - 0.3 * torch.diag(torch.tensor([0.0, 0, 0, 1], dtype=F64))
    by_token = model.loss(params, task.draw(300_000, g(6), dtype=F64))
    by_moment = model.moment_loss(params, moments.draw(task, 300_000, g(7), dtype=F64))
    assert float(by_moment) == pytest.approx(float(by_token), rel=0.015)


def test_the_loss_from_the_moment_of_drawn_tokens_is_their_loss():
    task = FAMILIES["gaussian"](3, 2, 6, 0.4)
    model = Transformer(3, 2, layers=2, heads=2, start=0.3)
    params = {name: value.double() for name, value in model.init(0).items()}
    drawn = task.draw(20, g(8), queries=2, dtype=F64)
    c = attention.moment(torch.cat([drawn.x, drawn.y], -1))
    both = model.moment_loss(params, moments.Moments(c, drawn.query, drawn.target)), model.loss(params, drawn)
    assert float(both[0]) == pytest.approx(float(both[1]), rel=1e-12)


def test_moments_are_exact_for_normal_inputs_and_linear_functions_only():
    names = {name for name in FAMILIES if moments.exact(FAMILIES[name](1 if "sine" in name else 3, 1, 4, 0.1))}
    assert names == {"gaussian", "skewed"}
    assert not moments.exact(FAMILIES["gaussian"](3, 1, 4, 0.0, "laplace"))
    assert moments.exact(FAMILIES["linear"](3, 1, 4, 0.0, "normal"))


@pytest.mark.parametrize("demos", [1, 3, 40])
@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("dy", [1, 2])
def test_labels_read_once_are_those_of_the_layer_itself_and_of_the_layer_read_from_a_moment(demos, heads, dy):
    g = torch.Generator()
    g.seed()
    context, query = (torch.randn(2, 5, n, 4, generator=g, dtype=torch.float64) for n in (demos, 3))
    weights = attention.Weights(*(torch.randn(1, heads, 4, 4, generator=g, dtype=torch.float64) for _ in range(2)))
    found = attention.read_once(context, query, weights, dy)
    by_moment = attention.query_states(attention.moment(context), query, weights, 1)[-1]
    layer = attention.states(torch.cat([context, query], -2), demos, weights, 1)[-1][..., demos:, :]
    torch.testing.assert_close(found, by_moment[..., -dy:], rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(found, layer[..., -dy:], rtol=1e-11, atol=1e-11)
