"""Layers whose state learns as they read are the learners they are named after, alone, stacked and trained."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from iclgd.errors import Refusal
from iclgd.labs.linear.spec import FAST
from iclgd.metrics.functions import view
from iclgd.small import fast, learners
from iclgd.small.construct import learning_layer
from iclgd.small.fast import RULES
from iclgd.small.models import Transformer
from iclgd.small.recurrent import delta_weights, mesa_weights
from iclgd.small.theorems.fast_weights import (
    by_autograd,
    chunked_delta,
    conjugate_gradients,
    diagonal_steps,
    proximal,
    squared,
)
from iclgd.small.train import Adam, stack, train
from iclgd.tasks.laws import Inputs, LinearMap
from iclgd.tasks.regression import Episodes, Regression

torch.set_num_threads(1)
F64 = torch.float64
sizes = st.tuples(st.integers(1, 6), st.integers(1, 4), st.integers(1, 19))  # dk, dv, demonstrations
seeds = st.integers(0, 2**31)
few = settings(max_examples=25, deadline=None)


def head(size, seed):
    dk, dv, time = size
    g = torch.Generator().manual_seed(seed)
    keys, queries = torch.randn(2, time, dk, generator=g, dtype=F64) / dk**0.5
    rates, decays = torch.rand(2, time, generator=g, dtype=F64) * 0.9 + 0.05
    start = torch.randn(dv, dk, generator=g, dtype=F64)
    return keys, torch.randn(time, dv, generator=g, dtype=F64), queries, rates, decays, start


def close(a, b, tolerance=1e-12):
    assert (a - b).abs().max() <= tolerance * max(1.0, float(b.abs().max()))


def answers(states, queries):
    return torch.stack([s @ q for s, q in zip(states, queries, strict=True)])


def read(rule, keys, values, queries, **gates):
    own, asked = fast.read(RULES[rule], keys, values, queries, queries, gates)
    only, again = fast.read(RULES[rule], keys, values, None, queries, gates)
    assert only is None
    assert torch.equal(asked, again)
    return own, asked


@few
@given(sizes, seeds)
def test_delta_layer_is_sgd_with_one_demonstration_a_step(size, seed):
    keys, values, queries, rates, _, _ = head(size, seed)
    states = by_autograd(keys, values, rates, squared)
    own, asked = read("delta", keys, values, queries, rate=rates)
    close(own, answers(states, queries))
    close(asked, queries @ states[-1].T)
    close(chunked_delta(keys, values, rates, 4), states[-1])
    half = torch.full_like(rates, 0.5)
    close(fast.weights(keys, fast.solved(keys, values, half)), delta_weights(keys, values, 0.5)[-1])


@few
@given(sizes, seeds)
def test_gated_delta_layer_is_the_step_from_the_decayed_state(size, seed):
    keys, values, queries, rates, decays, _ = head(size, seed)
    states = by_autograd(keys, values, rates, squared, decays)
    own, asked = read("gated-delta", keys, values, queries, rate=rates, decay=decays)
    close(own, answers(states, queries))
    close(asked, queries @ states[-1].T)
    close(fast.weights(keys, fast.solved(keys, values, rates, decays), decays), states[-1])


@few
@given(sizes, seeds)
def test_longhorn_layer_is_the_proximal_step(size, seed):
    keys, values, queries, rates, _, _ = head(size, seed)
    states = proximal(keys, values, 5 * rates)
    own, asked = read("longhorn", keys, values, queries, rate=5 * rates)
    close(own, answers(states, queries))
    close(asked, queries @ states[-1].T)


def test_longhorn_as_built_shrinks_each_entry_of_the_state_by_the_square_of_its_key():
    """Two tokens by hand, δ = 1: Δ is 1/6, then 1/3; the proximal step would also move what stands beside."""
    keys, values = torch.tensor([[1.0, 2.0], [1.0, 1.0]], dtype=F64), torch.tensor([[6.0], [0.0]], dtype=F64)
    first, second = diagonal_steps(keys, values, torch.ones(2, dtype=F64))
    assert first.tolist() == [[1.0, 2.0]]
    close(second, torch.tensor([[2 / 3, 4 / 3]], dtype=F64))
    close(proximal(keys, values, torch.ones(2, dtype=F64))[1], torch.tensor([[0.0, 1.0]], dtype=F64))


@few
@given(sizes, seeds)
def test_ttt_layer_takes_gradients_of_a_mini_batch_at_the_state_before_it(size, seed):
    keys, values, queries, rates, _, start = head(size, seed)
    states = by_autograd(keys, values, rates, squared, start=start, minibatch=fast.MINIBATCH)
    own, asked = read("ttt", keys, values, queries, rate=rates, start=start)
    close(own, answers(states, queries))
    close(asked, queries @ states[-1].T)


@few
@given(sizes, seeds, st.floats(0.05, 5))
def test_mesa_layer_is_ridge_at_every_step_by_three_roads(size, seed, penalty):
    keys, values, queries, *_ = head(size, seed)
    own, asked = read("mesa", keys, values, queries, penalty=torch.tensor(penalty, dtype=F64))
    states = [learners.ridge(keys[: t + 1], values[: t + 1], penalty) for t in range(len(keys))]
    close(own, answers(states, queries), 1e-11)
    close(asked, queries @ states[-1].T, 1e-11)
    close(own, answers(mesa_weights(keys, values, penalty), queries), 1e-11)  # recursive least squares
    h = keys.T @ keys + penalty * torch.eye(keys.shape[-1], dtype=F64)
    solved = values.T @ keys @ conjugate_gradients(h, queries[0], keys.shape[-1])
    close(asked[0], solved, 1e-9)


@pytest.mark.parametrize("dk", [3, 8])
def test_conjugate_gradients_need_as_many_steps_as_a_key_has_dimensions(dk):
    g = torch.Generator().manual_seed(dk)
    root, query = torch.randn(dk, dk, generator=g, dtype=F64), torch.randn(dk, generator=g, dtype=F64)
    h = root @ root.T + 0.1 * torch.eye(dk, dtype=F64)
    far = [float((conjugate_gradients(h, query, n) - torch.linalg.solve(h, query)).norm()) for n in (1, dk - 1, dk)]
    assert far[0] > 1e-2
    assert far[1] > 1e-6
    assert far[2] < 1e-9


CHOSEN = {"rate": 0.3, "decay": 0.8, "penalty": 0.4, "start": 0.0}


def layers_of(rule, dx, dy, depth):
    one = learning_layer(dx, dy, {gate: CHOSEN[gate] for gate in RULES[rule].gates})
    return {name: value.expand(depth, *value.shape[1:]) for name, value in one.items()}


@pytest.mark.parametrize("rule", list(RULES))
def test_a_layer_of_a_stack_leaves_each_demonstration_what_its_state_then_missed(rule):
    """Two constructed layers: the second learns from y − S_t x, one learner after the other."""
    dx, dy, demos = 3, 2, 9
    g = torch.Generator().manual_seed(7)
    x, query = (torch.rand(n, dx, generator=g, dtype=F64) * 2 - 1 for n in (demos, 4))
    y = torch.randn(demos, dy, generator=g, dtype=F64)

    def learned(labels):
        rates, decays = (torch.full((demos,), CHOSEN[name], dtype=F64) for name in ("rate", "decay"))
        if rule == "mesa":
            return [learners.ridge(x[: t + 1], labels[: t + 1], CHOSEN["penalty"]) for t in range(demos)]
        if rule == "longhorn":
            return proximal(x, labels, rates)
        many = fast.MINIBATCH if rule == "ttt" else 1
        return by_autograd(x, labels, rates, squared, decays if rule == "gated-delta" else None, minibatch=many)

    first = learned(y)
    second = learned(y - answers(first, x))
    episodes = Episodes(x, y, query, torch.zeros(4, dy, dtype=F64))
    found = Transformer(dx, dy, 2, 1, rule).states(layers_of(rule, dx, dy, 2), episodes)
    assert len(found) == 3
    close(-found[1][:, dx:], query @ first[-1].T)
    close(-found[2][:, dx:], query @ (first[-1] + second[-1]).T)


@pytest.mark.parametrize("rule", list(RULES))
def test_gates_follow_their_tokens_and_heads_add_up(rule):
    model = Transformer(3, 1, 1, 2, rule)
    task = Regression(Inputs.normal(3), LinearMap.isotropic(3), 6)
    episodes = task.draw(5, torch.Generator().manual_seed(0), dtype=F64)
    g = torch.Generator().manual_seed(1)
    params = {n: torch.randn(p.shape, generator=g, dtype=F64) * 0.5 for n, p in model.init(0).items()}
    one = Transformer(3, 1, 1, 1, rule)
    apart = [one.predict({name: value[:, h : h + 1] for name, value in params.items()}, episodes) for h in range(2)]
    close(model.predict(params, episodes), apart[0] + apart[1])
    for gate in RULES[rule].gates:
        moved = params | {gate: params[gate] + 1.0}
        assert (model.predict(moved, episodes) - model.predict(params, episodes)).abs().max() > 1e-3
        if gate in ("rate", "decay"):
            level = params[gate].clone()
            level[..., :-1] = 0  # the same gate for every token
            assert (
                model.predict(params | {gate: level}, episodes) - model.predict(params, episodes)
            ).abs().max() > 1e-3


def test_a_gate_begins_open_and_a_rate_half_way_for_every_token():
    params = Transformer(3, 1, 2, 2, "gated-delta").init(0)
    context = torch.randn(5, 1, 7, 4)
    gates = fast.gates(RULES["gated-delta"], {name: value[0] for name, value in params.items()}, context)
    torch.testing.assert_close(gates["rate"], torch.full((5, 2, 7), 0.5))
    torch.testing.assert_close(gates["decay"], torch.full((5, 2, 7), 4.0).sigmoid())


def test_every_rule_has_a_learner_of_its_name_in_the_lab():
    from iclgd.small.known import REFERENCES

    assert tuple(RULES) == FAST
    task = Regression(Inputs.normal(3), LinearMap.isotropic(3), 5)
    sample = task.draw(200, torch.Generator().manual_seed(0), dtype=F64)
    for name in RULES:
        assert len(REFERENCES[name](task, sample, 1)) == 1


@pytest.mark.parametrize("rule", list(RULES))
def test_a_learner_at_its_best_is_the_constructed_layer_at_some_gates(rule):
    """The reference of a rule and its layer are two programs: at equal gates they answer alike."""
    from iclgd.small import optimum
    from iclgd.small.known import REFERENCES

    task = Regression(Inputs.normal(3).scaled(0.5), LinearMap.isotropic(3), 6, 0.3)
    sample = task.draw(300, torch.Generator().manual_seed(0), dtype=F64)
    ((_, best),) = REFERENCES[rule](task, sample, 1).items()
    fresh = task.draw(20, torch.Generator().manual_seed(1), dtype=F64)
    model, names = Transformer(3, 1, 1, 1, rule), [gate for gate in RULES[rule].gates if gate != "start"]

    def level(gate, value):
        return torch.cat([gate[..., :-1], gate[..., -1:] * 0 + value], -1)

    def gap(p):
        params = learning_layer(3, 1, dict.fromkeys(names, 0.5) | ({"start": 0.0} if rule == "ttt" else {}))
        if "rate" in params:  # any rate: √rate in the keys, and in the queries the rest
            params = params | {part: params[part] * p[0].sqrt() for part in ("key", "query")}
            params["rate"] = level(params["rate"], 40.0)  # σ = 1
        if "decay" in params:
            params["decay"] = level(params["decay"], p[1].log())
        if "penalty" in params:
            params["penalty"] = params["penalty"] * 0 + p[0].log()
        return (model.predict(params, fresh) - best(fresh)).square().mean()

    _, least = optimum.least(gap, torch.tensor([1.0, 50.0][: max(1, len(names))], dtype=F64))
    assert least < 1e-5  # a decay of 1 is far off in its odds


@pytest.mark.parametrize("rule", list(RULES))
def test_training_moves_every_parameter_and_members_stay_apart(rule):
    model = Transformer(2, 1, 2, 1, rule)
    task = Regression(Inputs.normal(2), LinearMap.isotropic(2), 5)
    one = task.draw(16, torch.Generator().manual_seed(3))
    batch = Episodes(*(torch.stack([part, part]) for part in one))
    members = stack([model.init(0), model.init(1)])
    both = train(model.loss, members, lambda _: batch, 5, Adam(torch.full((2,), 0.01)))
    alone = train(
        model.loss, stack([model.init(1)]), lambda _: Episodes(*(p[:1] for p in batch)), 5, Adam(torch.full((1,), 0.01))
    )
    for name, value in members.items():
        assert not torch.equal(both.params[name], value), name
        torch.testing.assert_close(both.params[name][1], alone.params[name][0], atol=1e-6, rtol=1e-4)


def test_the_order_of_demonstrations_matters_to_all_but_the_mesa_layer():
    task = Regression(Inputs.normal(3), LinearMap.isotropic(3), 6)
    episodes = task.draw(4, torch.Generator().manual_seed(0), dtype=F64)
    mixed = episodes._replace(x=episodes.x.flip(-2), y=episodes.y.flip(-2))
    for rule in RULES:
        params, model = layers_of(rule, 3, 1, 1), Transformer(3, 1, 1, 1, rule)
        change = float((model.predict(params, mixed) - model.predict(params, episodes)).abs().max())
        assert change < 1e-12 if rule == "mesa" else change > 1e-3, rule


def test_a_layer_has_sensitivities_and_an_unknown_one_is_refused():
    task = Regression(Inputs.normal(2), LinearMap.isotropic(2), 4)
    model = Transformer(2, 1, 1, 1, "longhorn")
    params = model.init(0)
    seen = view(lambda e: model.predict(params, e), task.draw(3, torch.Generator().manual_seed(0)))
    assert seen.sensitivity.shape == (3, 1, 1, 2)
    assert seen.sensitivity.abs().max() > 0
    with pytest.raises(Refusal, match="Did you mean delta"):
        Transformer(2, 1, 1, 1, "delt")


def test_transformers_own_gated_delta_rule_is_ours():
    from iclgd.small.theorems.qwen import gated_delta_rules

    keys, values, queries, rates, decays, _ = head((6, 4, 17), 5)
    own, _ = read("gated-delta", keys, values, queries, rate=rates, decay=decays)
    for name, answer in gated_delta_rules(keys, values, queries, rates, decays).items():
        close(answer.double(), own / 6**0.5, 1e-6), name
    other = gated_delta_rules(keys, values, queries, rates, decays.flip(0))["by token"]
    assert (other.double() - own / 6**0.5).abs().max() > 1e-2
