"""Constructed layers are the learners they are named after: fresh sizes and inputs, float64."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from iclgd.errors import Refusal
from iclgd.small import attention, construct, learners, recurrent
from iclgd.small.attention import Weights
from iclgd.small.kernels import KERNELS
from iclgd.small.theorems import duality, interleaved

torch.set_num_threads(1)
F64 = torch.float64
sizes = st.tuples(st.integers(1, 8), st.integers(1, 4), st.integers(1, 12))  # dx, dy, demos
seeds = st.integers(0, 2**31)
few = settings(max_examples=20, deadline=None)


def problem(size, seed, batch=3, queries=2):
    dx, dy, demos = size
    g = torch.Generator().manual_seed(seed)
    x, query = (torch.rand(batch, n, dx, generator=g, dtype=F64) * 2 - 1 for n in (demos, queries))
    y = torch.randn(batch, demos, dy, generator=g, dtype=F64)
    return x, y, query, g


def run(weights, x, y, query, depth, start=None, kind="linear"):
    state = attention.tokens(x, y, query, start)
    return attention.states(state, x.shape[-2], weights, depth, kind)[-1]


def random_weights(layers, heads, dim, g, size=0.3):
    return Weights(*(size * torch.randn(layers, heads, dim, dim, generator=g, dtype=F64) for _ in range(2)))


def close(a, b, tolerance=1e-12):
    assert (a - b).abs().max() <= tolerance * max(1.0, float(b.abs().max()))


@few
@given(sizes, seeds, st.integers(1, 20))
def test_one_layer_used_k_times_is_k_gradient_steps_from_any_start(size, seed, steps):
    x, y, query, g = problem(size, seed)
    dx, dy, demos = size
    rate = 0.9 / dx  # ‖x‖² ≤ dx, so descent converges and rounding does not grow
    start = torch.randn(dy, dx, generator=g, dtype=F64)
    out = run(construct.gd_layer(dx, dy, rate, start), x, y, query, steps, start)
    w = learners.gd(x, y, rate, steps, start)
    close(attention.answer(out, demos, dy), learners.predict(w, query))
    close(out[:, :demos, dx:], y - learners.predict(w - start, x))  # the demonstrations hold residual targets


@few
@given(sizes, seeds, st.integers(1, 5))
def test_gdpp_layers_are_gd_with_shrinking_inputs(size, seed, steps):
    x, y, query, g = problem(size, seed)
    dx, dy, demos = size
    rates, curvatures = torch.rand(2, steps, generator=g, dtype=F64)
    out = run(construct.gdpp_layers(dx, dy, rates, curvatures), x, y, query, steps)
    close(attention.answer(out, demos, dy), learners.predict(learners.gdpp(x, y, rates, curvatures), query))
    moved = x
    for curvature in curvatures:
        moved = moved @ (torch.eye(dx, dtype=F64) - curvature * moved.mT @ moved / demos)
    close(out[:, :demos, :dx], moved)


@few
@given(sizes, seeds, st.integers(1, 3))
def test_preconditioned_layer_is_preconditioned_descent(size, seed, steps):
    x, y, query, g = problem(size, seed)
    dx, dy, demos = size
    matrix = torch.randn(dx, dx, generator=g, dtype=F64) / dx
    out = run(construct.preconditioned_layer(matrix, dy), x, y, query, steps)
    close(attention.answer(out, demos, dy), learners.predict(learners.preconditioned(x, y, matrix, steps), query))


@few
@given(sizes, seeds, st.sampled_from(list(KERNELS)))
def test_kernel_attention_is_functional_gradient_descent(size, seed, kernel):
    x, y, query, _ = problem(size, seed)
    dx, dy, demos = size
    rate, steps = 0.3 / dx, 50
    out = run(construct.kernel_layer(dx, dy, rate), x, y, query, steps, kind=kernel)
    close(attention.answer(out, demos, dy), learners.functional_gd(x, y, query, KERNELS[kernel], rate, steps))


@few
@given(sizes, seeds, st.integers(1, 4))
def test_interleaved_tokens_with_a_copying_layer_descend(size, seed, steps):
    x, y, query, g = problem(size, seed, queries=1)
    dx, dy, demos = size
    rate, start = 0.9 / dx, torch.randn(dy, dx, generator=g, dtype=F64)
    state = interleaved.interleave(x, y, query[:, 0], start=start)
    read = 2 * demos + 1
    state = attention.states(state, read, interleaved.copy_layer(dx, dy, demos), 1, "softmax", causal=True)[-1]
    layer = interleaved.descent_layer(dx, dy, demos, rate, start=start)
    state = attention.states(state, read, layer, steps)[-1]
    w = learners.gd(x, y, rate, steps, start)
    close(-state[:, -1, dx : dx + dy], learners.predict(w, query)[:, 0])


@few
@given(sizes, seeds)
def test_two_softmax_heads_tend_to_centred_linear_attention(size, seed):
    x, y, query, _ = problem(size, seed)
    dx, dy, demos = size
    centred = y.mT @ (x - x.mean(-2, keepdim=True)) / demos
    errors = []
    for epsilon in (0.1, 0.01):
        out = run(construct.softmax_pair(dx, dy, 1.0, epsilon), x, y, query, 1, kind="softmax")
        errors.append(float((attention.answer(out, demos, dy) - learners.predict(centred, query)).abs().max()))
    if demos > 1 and errors[0] > 1e-6:
        assert 95 < errors[0] / errors[1] < 105  # the error is of second order: a tenth of ε, a hundredth of it
    else:
        assert max(errors) < 1e-6


@few
@given(sizes, seeds)
def test_mesa_layer_is_ridge_regression_on_what_it_has_read(size, seed):
    dx, dy, _ = size
    g = torch.Generator().manual_seed(seed)
    keys, queries = torch.randn(2, 40, dx, generator=g, dtype=F64)
    values = torch.randn(40, dy, generator=g, dtype=F64)
    out = recurrent.mesa(keys, values, queries, penalty=0.7)
    for t in (1, 5, 40):
        w = learners.ridge(keys[:t], values[:t], 0.7)
        close(out[t - 1], queries[t - 1] @ w.T)


@few
@given(sizes, seeds)
def test_delta_rule_is_sgd_and_its_signals_are_attention_values(size, seed):
    """Dai's form with the error signals of true sequential SGD: F(x) = W₀ x + LinearAttention(E, X, x)."""
    x, y, query, g = problem(size, seed, batch=1, queries=1)
    dx, dy, demos = size
    start, rate = torch.randn(dy, dx, generator=g, dtype=F64), 0.5 / dx
    w = start.clone().requires_grad_()
    for i in range(demos):
        loss = ((x[0, i] @ w.T - y[0, i]) ** 2).sum() / 2
        w = (w - rate * torch.autograd.grad(loss, w)[0]).detach().requires_grad_()
    signals = duality.error_signals(start, x[0], y[0], rate)
    close(query[0] @ start.T + duality.linear_attention(signals, x[0], query[0]), query[0] @ w.detach().T)
    asked = query[0].expand(demos, dx)
    close(recurrent.delta_rule(x[0], y[0], asked, rate, start)[-1:], query[0] @ w.detach().T)


@few
@given(sizes, seeds)
def test_an_outer_product_update_is_linear_attention(size, seed):
    x, y, query, g = problem(size, seed, batch=1)
    start = torch.randn(size[1], size[0], generator=g, dtype=F64)
    w = start + duality.outer_update(y[0], x[0])
    close(query[0] @ w.T, query[0] @ start.T + duality.linear_attention(y[0], x[0], query[0]))


@few
@given(sizes, seeds)
def test_linear_attention_over_demonstrations_is_zero_shot_weights_plus_an_update(size, seed):
    dim, dv, demos = size
    g = torch.Generator().manual_seed(seed)
    w_value, w_key = torch.randn(dv, dim, generator=g, dtype=F64), torch.randn(dim, dim, generator=g, dtype=F64)
    shown, own = torch.randn(demos, dim, generator=g, dtype=F64), torch.randn(3, dim, generator=g, dtype=F64)
    query = torch.randn(2, dim, generator=g, dtype=F64)
    zero, update = duality.split_weights(w_value, w_key, shown, own)
    everything = torch.cat([shown, own])
    close(
        duality.linear_attention(everything @ w_value.T, everything @ w_key.T, query), query @ (zero + update).T, 1e-11
    )


@few
@given(sizes, seeds)
def test_linear_attention_is_one_step_on_its_dual_loss(size, seed):
    """Ren & Liu's dual with φ = id: the loss −(1/η) Σ v_iᵀ W k_i, whose step is ΔW = Σ v_i k_iᵀ."""
    x, y, query, _ = problem(size, seed, batch=1)
    rate = 0.37
    w = torch.zeros(size[1], size[0], dtype=F64, requires_grad=True)
    step = torch.autograd.grad(-((x[0] @ w.T) * y[0]).sum() / rate, w)[0]
    close(query[0] @ (-rate * step).T, duality.linear_attention(y[0], x[0], query[0]), 1e-13)


@few
@given(sizes, seeds, st.integers(1, 3), st.integers(1, 2))
def test_the_second_moment_carries_all_that_linear_attention_sees(size, seed, layers, heads):
    x, y, query, g = problem(size, seed)
    dx, dy, demos = size
    weights = random_weights(layers, heads, dx + dy, g)
    state = attention.tokens(x, y, query)
    by_token = attention.states(state, demos, weights, layers)
    by_moment = attention.query_states(attention.moment(state[:, :demos]), state[:, demos:], weights, layers)
    for a, b in zip(by_moment, by_token, strict=True):
        close(a, b[:, demos:], 1e-13)


@few
@given(sizes, seeds, st.floats(0.01, 100))
def test_scaling_qk_against_pv_changes_nothing(size, seed, factor):
    x, y, query, g = problem(size, seed)
    weights = random_weights(2, 1, size[0] + size[1], g)
    scaled = Weights(weights.qk * factor, weights.pv / factor)
    close(run(scaled, x, y, query, 2), run(weights, x, y, query, 2), 1e-14)


@few
@given(sizes, seeds)
def test_k_steps_have_the_closed_form_of_the_geometric_series(size, seed):
    """W = Yᵀ X / N · S⁺ (I − (I − ηS)^K)."""
    x, y, _, _ = problem(size, seed)
    dx, _, demos = size
    rate, steps = 0.9 / dx, 7
    s = x.mT @ x / demos
    values, vectors = torch.linalg.eigh(s)
    factor = torch.where(values > 1e-9, (1 - (1 - rate * values) ** steps) / values, steps * rate)
    expected = y.mT @ x / demos @ (vectors * factor[..., None, :]) @ vectors.mT
    close(learners.gd(x, y, rate, steps), expected, 1e-11)


@few
@given(sizes, seeds)
def test_the_prediction_of_gd_has_its_weights_as_sensitivity(size, seed):
    x, y, query, _ = problem(size, seed, queries=1)
    w = learners.gd(x, y, 0.3)
    query.requires_grad_()
    out = run(construct.gd_layer(size[0], size[1], 0.3), x, y, query, 1)
    for k in range(size[1]):
        (gradient,) = torch.autograd.grad(
            attention.answer(out, size[2], size[1])[..., k].sum(), query, retain_graph=True
        )
        close(gradient[:, 0], w[:, k], 1e-14)


@few
@given(seeds, st.integers(1, 6), st.integers(2, 10), st.integers(1, 4))
def test_states_stay_linear_in_each_tokens_own_x_and_y(seed, dx, demos, layers):
    """x_i^l = M x_i + y_i u and y_i^l = a y_i − ⟨w, x_i⟩ (Vladymyrov 2024): one matrix moves every token."""
    x, y, query, g = problem((dx, 1, demos + dx), seed)
    weights = random_weights(layers, 2, dx + 1, g)
    state = attention.tokens(x, y, query)
    last = attention.states(state, demos + dx, weights, layers)[-1]
    fit = torch.linalg.lstsq(state[:, : demos + dx], last[:, : demos + dx]).solution
    close(state[:, : demos + dx] @ fit, last[:, : demos + dx], 1e-12)
    close(state @ fit, last, 1e-10)  # the queries, which were not fitted, move by the same matrix


@few
@given(seeds, st.integers(1, 6), st.integers(1, 10), st.integers(1, 4))
def test_diagonal_heads_are_four_scalars(seed, dx, demos, layers):
    x, y, query, g = problem((dx, 1, demos), seed)
    scalars = 0.3 * torch.randn(layers, 4, generator=g, dtype=F64)
    out = run(construct.four_scalar_layers(dx, scalars), x, y, query, layers)
    close(attention.answer(out, demos, 1), learners.four_scalars(x, y, query, scalars))


@few
@given(seeds)
def test_order_of_demonstrations_matters_only_under_a_causal_mask(seed):
    x, y, query, g = problem((5, 1, 12), seed)
    weights, order = random_weights(2, 1, 6, g), torch.randperm(12, generator=g)

    def answer(x, y, causal):
        state = attention.tokens(x, y, query)
        return attention.answer(attention.states(state, 12, weights, 2, causal=causal)[-1], 12, 1)

    close(answer(x[:, order], y[:, order], False), answer(x, y, False))
    if not torch.equal(order, torch.arange(12)):
        assert (answer(x[:, order], y[:, order], True) - answer(x, y, True)).abs().max() > 1e-4


def test_a_block_that_does_not_fit_is_refused():
    with pytest.raises(Refusal, match="does not fit 3 inputs and 2 outputs"):
        construct.gd_layer(3, 2, 0.1, torch.zeros(2, 4))


def test_two_heads_that_cannot_differ_are_refused():
    with pytest.raises(Refusal, match="positive epsilon"):
        construct.softmax_pair(3, 1, 0.1, 0.0)


def test_no_demonstrations_are_refused():
    with pytest.raises(Refusal, match="at least one demonstration"):
        attention.tokens(torch.zeros(2, 0, 3), torch.zeros(2, 0, 1), torch.zeros(2, 1, 3))
