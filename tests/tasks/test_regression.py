"""Regression families draw what they say."""

import pytest
import torch

from iclgd.errors import Refusal
from iclgd.tasks.families import FAMILIES
from iclgd.tasks.laws import KURTOSIS, GaussianProcess, Inputs, LinearMap, Quadratic, ReluNetwork, Sine, Sparse, Tree
from iclgd.tasks.regression import Episodes, Regression, corrupt

torch.set_num_threads(1)
F64 = torch.float64


def g(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("law", [*KURTOSIS, "sphere"])
def test_inputs_have_their_covariance_and_fourth_moment(law):
    mix = torch.randn(3, 3, generator=g(1), dtype=F64)
    inputs = Inputs(mix @ mix.T + 0.3 * torch.eye(3, dtype=F64), law)
    x = inputs.draw(100_000, 4, g(2), F64)
    assert x.mean((0, 1)).abs().max() < 0.03
    torch.testing.assert_close(x.flatten(0, 1).T @ x.flatten(0, 1) / 400_000, inputs.covariance, rtol=0.03, atol=0.03)
    weight = torch.diag(torch.tensor([1.0, 2.0, 0.5], dtype=F64))
    s = x.mT @ x / 4
    expected = inputs.second(weight, 4)
    assert ((s @ weight @ s).mean(0) - expected).norm() / expected.norm() < 0.03


def test_uniform_inputs_stay_in_their_interval():
    x = Inputs.uniform(2, width=3.0).draw(1000, 10, g(), F64)
    assert 1.45 < x.abs().max() <= 1.5


def test_weights_have_inverse_covariance_and_mean():
    inputs = Inputs(torch.diag(torch.tensor([4.0, 0.25], dtype=F64)))
    mean = torch.tensor([[1.0, -2.0]], dtype=F64)
    family = LinearMap(LinearMap.inverse(inputs).covariance, mean=mean)
    basis = torch.eye(2, dtype=F64).expand(100_000, 2, 2)
    w = family.draw(basis, g())[..., 0]  # the function at the unit vectors is its weights
    torch.testing.assert_close(w.mean(0), mean[0], atol=0.02, rtol=0)
    torch.testing.assert_close(torch.cov(w.T), torch.diag(torch.tensor([0.25, 4.0], dtype=F64)), atol=0.05, rtol=0)
    torch.testing.assert_close(w.T @ w / 100_000, family.moment, atol=0.05, rtol=0)


def test_noise_falls_on_demonstrations_and_not_on_targets():
    clean = Regression(Inputs.normal(2), LinearMap.isotropic(2, dy=3), 50)
    for varies, power in ((False, 4.0), (True, 4.0 / 3)):
        noisy = Regression(clean.inputs, clean.function, 50, noise=2.0, noise_varies=varies).draw(2000, g(3))
        plain = clean.draw(2000, g(3))
        torch.testing.assert_close(noisy.target, plain.target)
        by_episode = (noisy.y - plain.y).square().mean((1, 2))
        assert abs(float(by_episode.mean()) - power) < 0.1
        assert (by_episode.std() > 0.5) == varies


def test_sine_has_two_parameters_and_the_public_draw_has_one():
    x = torch.tensor([0.0, torch.pi / 2], dtype=F64).expand(5000, 2)[..., None]
    for one_key in (False, True):
        y = Sine(one_key).draw(x, g())[..., 0]  # a sin φ and a cos φ
        amplitude, phase = y.norm(dim=-1), torch.atan2(y[:, 0], y[:, 1])
        assert 0.1 <= amplitude.min() < 0.11
        assert 0.49 < amplitude.max() <= 0.5
        assert 0 <= phase.min() < phase.max() <= torch.pi
        correlation = float(torch.corrcoef(torch.stack([amplitude, phase]))[0, 1])
        assert (correlation > 1 - 1e-9) if one_key else (abs(correlation) < 0.05)


def test_sparse_weights_have_so_many_nonzero_entries():
    w = Sparse(3).draw(torch.eye(20, dtype=F64).expand(500, 20, 20), g())[..., 0]
    assert ((w != 0).sum(-1) == 3).all()
    assert ((w != 0).double().mean(0) - 0.15).abs().max() < 0.07  # anywhere


@pytest.mark.parametrize("function", [Quadratic(), ReluNetwork(), LinearMap.isotropic(20)])
def test_gargs_classes_have_the_variance_of_the_linear_class(function):
    drawn = Regression(Inputs.normal(20), function, 5).draw(20_000, g())
    assert abs(float(drawn.y.square().mean()) - 20) < 1


def test_quadratic_is_even_and_a_relu_network_is_positively_homogeneous():
    x = torch.randn(10, 4, 6, generator=g(), dtype=F64)
    both = Quadratic().draw(torch.cat([x, -x], 1), g())
    torch.testing.assert_close(both[:, :4], both[:, 4:])
    both = ReluNetwork(7).draw(torch.cat([x, 3 * x], 1), g())
    torch.testing.assert_close(3 * both[:, :4], both[:, 4:])


def test_a_tree_sees_signs_only_and_has_sixteen_leaves():
    x = torch.randn(50, 2000, 20, generator=g(), dtype=F64)
    both = Tree().draw(torch.cat([x, x.sign()], 1), g())
    assert torch.equal(both[:, :2000], both[:, 2000:])
    assert max(len(episode.unique()) for episode in both) == 16


def test_a_gaussian_process_has_its_kernel():
    x = torch.rand(1, 3, 2, generator=g(), dtype=F64).expand(100_000, 3, 2)

    def kernel(a, b):
        return torch.exp(a @ b.mT)

    y = GaussianProcess(kernel).draw(x, g())[..., 0]
    torch.testing.assert_close(y.T @ y / 100_000, kernel(x[0], x[0]), rtol=0.05, atol=0.05)


def test_corrupted_labels_are_the_first_ones():
    drawn = Regression(Inputs.normal(2), LinearMap.isotropic(2), 6).draw(10, g())
    changed = corrupt(drawn, 2, g(1))
    assert isinstance(changed, Episodes)
    assert (changed.y[:, :2] != drawn.y[:, :2]).all()
    assert torch.equal(changed.y[:, 2:], drawn.y[:, 2:])
    with pytest.raises(Refusal, match="7 of 6 labels"):
        corrupt(drawn, 7, g())


@pytest.mark.parametrize("name", list(FAMILIES))
def test_every_family_draws_episodes_of_the_asked_shape(name):
    dx = 1 if name.startswith("sine") else 6
    drawn = FAMILIES[name](dx, 1, 4, 0.1).draw(3, g(), queries=2)
    assert [part.shape for part in drawn] == [(3, 4, dx), (3, 4, 1), (3, 2, dx), (3, 2, 1)]
    assert all(part.isfinite().all() for part in drawn)


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (("linear", 10, 1, 0, 0.0), "at least one demonstration, not 0"),
        (("linear", 0, 1, 5, 0.0), "at least one input"),
        (("linear", 3, 1, 5, -1.0), "cannot be -1.0"),
        (("tree", 5, 2, 5, 0.0), "has one output, not 2"),
        (("sine", 2, 1, 5, 0.0), "sine has one input, not 2"),
        (("gausian", 3, 1, 5, 0.0), "Did you mean gaussian"),
    ],
)
def test_families_that_cannot_be_are_refused(arguments, sentence):
    name, *rest = arguments
    with pytest.raises(Refusal, match=sentence):
        FAMILIES[name](*rest)


def test_a_singular_covariance_is_refused():
    with pytest.raises(Refusal, match="singular"):
        Inputs(torch.ones(3, 3))


def test_more_nonzero_weights_than_inputs_are_refused():
    with pytest.raises(Refusal, match="3 non-zero weights do not fit 2 inputs"):
        FAMILIES["sparse"](2, 1, 4, 0.0).draw(3, g())


def test_a_familys_law_covariance_and_weight_mean_can_be_changed():
    task = FAMILIES["linear"](3, 2, 4, 0.0, "normal", (1.0, 2.0, 0.5), (1.0, -1.0, 3.0))
    drawn = task.draw(40_000, g(), queries=1, dtype=F64)
    torch.testing.assert_close(drawn.x.flatten(0, 1).std(0), torch.tensor([1, 2, 0.5], dtype=F64), rtol=0.02, atol=0)
    assert (drawn.x[..., 0] ** 4).mean() == pytest.approx(3, rel=0.05)  # normal, not uniform
    slope = torch.linalg.lstsq(drawn.x[:, 0], drawn.y[:, 0]).solution  # the mean function
    torch.testing.assert_close(slope.T, torch.tensor([[1.0, -1, 3]] * 2, dtype=F64), rtol=0, atol=0.06)
    one = FAMILIES["skewed"](3, 1, 4, 0.0, None, (2.0,), (0.5,))
    torch.testing.assert_close(one.inputs.covariance, 4 * torch.eye(3, dtype=F64))
    torch.testing.assert_close(one.function.covariance, torch.eye(3, dtype=F64) / 4)  # Ω = Σ⁻¹ of the inputs drawn
    assert one.function.mean.tolist() == [[0.5] * 3]


@pytest.mark.parametrize(
    "task, change, sentence",
    [
        ("linear", {"deviations": (1.0, 2.0)}, "takes 1 or 3 standard deviations, not 2"),
        ("linear", {"deviations": (1.0, -2.0, 1.0)}, "positive"),
        ("linear", {"weight_mean": (1.0, 2.0)}, "takes 1 or 3 numbers, not 2"),
        ("tree", {"weight_mean": (1.0,)}, "leave out `weight_mean`"),
    ],
)
def test_changes_that_do_not_fit_a_family_are_refused(task, change, sentence):
    with pytest.raises(Refusal, match=sentence):
        FAMILIES[task](3, 1, 4, 0.0, **change)
