"""The identities of Ren and Liu in float64 on sizes that hypothesis draws."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from iclgd.labs.dual.features import directions, log_random_variance, random_scores
from iclgd.labs.dual.model import Dual, softmax_dual
from iclgd.labs.dual.theorems import AttentionLayer, Relu, behind_relu, chain, chain_by_duals, linear_dual
from iclgd.small.theorems.duality import error_signals, linear_attention

TIGHT = 1e-12
sizes = st.integers(1, 9)
seeds = st.integers(0, 2**20)
scales = st.sampled_from([0.0, 0.3, 1.0, 10.0, 100.0, 300.0, 3000.0])
rates = st.floats(1e-3, 10.0)
quick = settings(deadline=None, max_examples=50)


def normal(seed: int, *shapes: tuple[int, ...]) -> list[torch.Tensor]:
    g = torch.Generator().manual_seed(seed)
    return [torch.randn(*shape, generator=g, dtype=torch.float64) for shape in shapes]


def head(seed: int, demos: int, own: int, dim: int, dv: int, scale: float) -> tuple[torch.Tensor, ...]:
    """Scores, keys, values and which tokens are demonstrations; the largest score is ``scale`` or its negative."""
    keys, values, query = normal(seed, (demos + own, dim), (demos + own, dv), (dim,))
    keys = keys * scale / (keys @ query).abs().max()
    return keys @ query, keys, values, torch.arange(demos + own) < demos


def close(got: torch.Tensor, wanted: torch.Tensor, scale: torch.Tensor, tolerance: float = TIGHT) -> bool:
    """Equal to rounding, relative to the largest of the numbers that were added up."""
    return bool((got - wanted).abs().max() <= tolerance * scale.abs().max())


@given(seeds, sizes, sizes, sizes, sizes)
@quick
def test_a_changed_linear_map_is_the_old_one_plus_linear_attention(
    seed: int, demos: int, dim: int, dv: int, queries: int
) -> None:
    """Row 14: (W₀ + Σ e_i x_iᵀ) x = W₀ x + LinearAttention(E, X', x); here ΔW is the dual's own gradient step."""
    start, errors, inputs, x = normal(seed, (dv, dim), (demos, dv), (demos, dim), (queries, dim))
    dual = Dual(start, inputs, errors, x[0], torch.tensor(1.0, dtype=torch.float64), inputs @ x[0])
    wanted = x @ start.T + linear_attention(errors, inputs, x)
    assert close(x @ dual.step().T, wanted, wanted)


@given(seeds, sizes, sizes, sizes, st.floats(0.01, 0.1))
@quick
def test_sequential_sgd_is_linear_attention_to_its_own_error_signals(
    seed: int, steps: int, dim: int, dv: int, rate: float
) -> None:
    """Row 15: SGD on ½‖W x − y‖², one demonstration a step, gradients by autograd."""
    start, inputs, labels, x = normal(seed, (dv, dim), (steps, dim), (steps, dv), (3, dim))
    weights = start.clone().requires_grad_()
    for key, label in zip(inputs, labels, strict=True):
        (gradient,) = torch.autograd.grad((weights @ key - label).square().sum() / 2, weights)
        weights = (weights - rate * gradient).detach().requires_grad_()
    signals = error_signals(start, inputs, labels, rate)
    wanted = x @ start.T + linear_attention(signals, inputs, x)
    assert close(x @ weights.detach().T, wanted, wanted, 1e-11)


@given(seeds, sizes, sizes, sizes, sizes, rates)
@quick
def test_linear_attention_is_zero_shot_weights_plus_one_gradient_step(
    seed: int, demos: int, own: int, dim: int, dv: int, rate: float
) -> None:
    """Rows 16 and 22: Σ_i v_i (k_i·q) = (W_ZSL + ΔW_ICL) q, with φ the identity and D = 1."""
    keys, values, query = normal(seed, (demos + own, dim), (demos + own, dv), (dim,))
    dual = linear_dual(keys, values, query, torch.arange(demos + own) < demos)
    wanted = (keys @ query) @ values
    scale = (keys @ query).abs()[:, None] * values
    assert close(dual.predict(dual.step(rate)), wanted, scale)
    assert close(dual.zero_shot, (keys[demos:] @ query) @ values[demos:], scale)


@given(seeds, sizes, sizes, sizes, sizes, scales, rates)
@settings(deadline=None, max_examples=200)
def test_softmax_attention_is_one_gradient_step(
    seed: int, demos: int, own: int, dim: int, dv: int, scale: float, rate: float
) -> None:
    """Row 17, with scores of ±300 and more, whose exponentials overflow."""
    scores, keys, values, which = head(seed, demos, own, dim, dv, scale)
    dual = softmax_dual(scores, keys, values, which)
    weights, stepped = scores.softmax(-1), dual.step(rate)
    assert stepped.isfinite().all()
    assert close(dual.predict(stepped), weights @ values, values)
    assert close(dual.zero_shot, weights[~which] @ values[~which], values)


@given(seeds, sizes, sizes, sizes, st.floats(-300, 300))
@quick
def test_a_sink_takes_weight_and_gives_nothing(seed: int, demos: int, own: int, dim: int, sink: float) -> None:
    scores, keys, values, which = head(seed, demos, own, dim, dim, 300.0)
    extra = torch.tensor(sink, dtype=torch.float64)
    dual = softmax_dual(scores, keys, values, which, extra)
    weights = torch.cat([scores, extra[None]]).softmax(-1)[:-1]
    assert close(dual.predict(dual.step()), weights @ values, values)


@given(seeds, sizes, sizes, sizes, sizes, sizes, scales)
@quick
def test_attention_with_a_relu_network_behind_it_is_one_gradient_step_on_other_labels(
    seed: int, demos: int, own: int, dim: int, hidden: int, out: int, scale: float
) -> None:
    """Row 20."""
    scores, keys, values, which = head(seed, demos, own, dim, dim, scale)
    network = Relu(*normal(seed + 1, (hidden, dim), (hidden,), (out, hidden), (out,)))
    dual, constant = behind_relu(softmax_dual(scores, keys, values, which), network)
    wanted = network(scores.softmax(-1) @ values)
    units = network.w2.abs() @ (network.w1.abs() @ values.abs().amax(0) + network.b1.abs())
    assert close(dual.predict(dual.step(0.3)) + constant, wanted, units)


@given(seeds, st.integers(1, 4), sizes, sizes, sizes, st.booleans(), st.booleans(), st.booleans())
@settings(deadline=None, max_examples=25)
def test_several_layers_are_a_chain_of_duals(
    seed: int, depth: int, demos: int, own: int, dim: int, causal: bool, network: bool, residual: bool
) -> None:
    """Row 21: every token of every layer is the prediction of its own dual."""
    length = demos + own
    tokens = normal(seed, (length, dim))[0]
    layers = []
    for layer in range(depth):
        maps = [w / dim**0.5 for w in normal(seed + layer, *[(dim, dim)] * 3)]
        behind = Relu(*normal(seed - layer - 1, (2 * dim, dim), (2 * dim,), (dim, 2 * dim), (dim,)))
        layers.append(AttentionLayer(*maps, behind if network else None, residual))
    seen = torch.ones(length, length, dtype=torch.bool)
    seen = seen.tril() if causal else seen
    wanted = chain(layers, tokens, seen)
    assert close(chain_by_duals(layers, tokens, seen, torch.arange(length) < demos), wanted, wanted, 1e-11)


def test_random_features_are_unbiased_and_vary_as_predicted() -> None:
    """Row 23, one kernel value at a time: mean exp(k·q), relative variance (exp(‖k + q‖²) − 1) / m."""
    keys, query = (t * 0.3 for t in normal(3, (5, 4), (4,)))
    g = torch.Generator().manual_seed(0)
    drawn = torch.stack([random_scores(keys, query, directions(16, 4, g)) for _ in range(4000)])
    ratio = torch.exp(drawn - keys @ query)
    predicted = log_random_variance(keys, query).exp() / 16
    assert ((ratio.mean(0) - 1).abs() <= 5 * (predicted / 4000).sqrt()).all()
    assert ((ratio.var(0) / predicted - 1).abs() <= 0.25).all()


def test_random_feature_attention_error_falls_as_one_over_the_root_of_their_number() -> None:
    """Row 23, the output of a head: slope −½ in log-log, each size averaged over draws."""
    keys, values, query = normal(5, (12, 8), (12, 8), (8,))
    keys, query = keys * 0.3, query * 0.3
    exact, g, errors = (keys @ query).softmax(-1) @ values, torch.Generator().manual_seed(1), []
    counts = [64, 256, 1024, 4096]
    for m in counts:
        tries = [random_scores(keys, query, directions(m, 8, g)).softmax(-1) @ values - exact for _ in range(100)]
        errors.append(torch.stack(tries).square().mean().sqrt())
    slope = torch.log(errors[-1] / errors[0]) / torch.log(torch.tensor(counts[-1] / counts[0]))
    assert errors == sorted(errors, reverse=True)
    assert -0.6 <= float(slope) <= -0.4


def test_random_features_of_large_scores_stay_finite() -> None:
    keys, query = (t * 17 for t in normal(7, (12, 8), (8,)))
    assert (keys @ query).abs().max() > 300
    assert random_scores(keys, query, directions(32, 8, torch.Generator().manual_seed(0))).isfinite().all()
