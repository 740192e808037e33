"""Members that train together get the numbers of training apart."""

from contextlib import suppress
from typing import NamedTuple

import pytest
import torch

from iclgd.errors import Refusal
from iclgd.small.models import DeepFeatures, Transformer
from iclgd.small.streams import generator, stream
from iclgd.small.train import Adam, alone, member, one_thread, stack, train
from iclgd.tasks.families import FAMILIES
from iclgd.tasks.laws import Inputs, LinearMap
from iclgd.tasks.regression import Episodes, Regression

torch.set_num_threads(1)
TASK = Regression(Inputs.uniform(4), LinearMap.isotropic(4), 6)


class Moved(NamedTuple):
    """A batch with names and a tuple in it."""

    x: torch.Tensor
    y: tuple[torch.Tensor, torch.Tensor]


def trained(model, seeds, rates, steps=40, task=TASK, batch=16, clip=None):
    adam = Adam(torch.tensor(rates), clip=clip)
    return train(
        model.loss,
        stack([model.init(s) for s in seeds]),
        stream([(seed, task.draw) for seed in seeds], batch),
        steps,
        adam,
    )


@pytest.mark.parametrize("attention", ["linear", "softmax", "rbf"])
def test_seeds_and_rates_trained_together_are_those_trained_apart(attention):
    model = Transformer(4, layers=2, heads=2, attention=attention)
    together = trained(model, [0, 1, 1], [0.01, 0.01, 0.03], clip=0.5)
    for i, (seed, rate) in enumerate(((0, 0.01), (1, 0.01), (1, 0.03))):
        apart = trained(model, [seed], [rate], clip=0.5)
        torch.testing.assert_close(together.loss[:, i], apart.loss[:, 0], rtol=1e-4, atol=1e-6)
        for name, value in member(together.params, i).items():
            torch.testing.assert_close(value, apart.params[name][0], rtol=1e-3, atol=1e-5)
    assert not torch.allclose(together.params["qk"][1], together.params["qk"][2], atol=1e-3)


@pytest.mark.parametrize(
    "wrap", [lambda x, y: (x, y), lambda x, y: Moved(x, (y, y)), lambda x, y: torch.stack([x, y], 1)]
)
def test_one_member_alone_has_the_loss_and_gradient_of_one_that_is_mapped(wrap):
    def loss(params, batch):
        x, y = batch if isinstance(batch, tuple) else batch.unbind()
        return ((params["w"] @ x.T - (y[1] if isinstance(batch, Moved) else y).sum()) ** 2).mean()

    g = generator(3)
    params = {"w": torch.randn(1, 4, dtype=torch.float64, generator=g, requires_grad=True)}
    batch = wrap(*torch.randn(2, 1, 5, 4, dtype=torch.float64, generator=g))
    one, mapped = alone(loss)(params, batch), torch.func.vmap(loss)(params, batch)
    assert one.shape == (1,)
    torch.testing.assert_close(one, mapped, rtol=1e-13, atol=0)
    slopes = [torch.autograd.grad(value.sum(), params["w"])[0] for value in (one, mapped)]
    torch.testing.assert_close(*slopes, rtol=1e-12, atol=1e-13)


def test_a_narrow_mlp_padded_with_zero_units_trains_as_the_narrow_one():
    wide, narrow = Transformer(4, width=12, hidden=20), Transformer(4, width=8, hidden=6)
    small = narrow.init(0)
    padded = {name: torch.zeros_like(value) for name, value in wide.init(1).items()}
    keep = {"qk": (-8, -8), "pv": (-8, -8), "embed": (-8, None), "in": (6, -8), "in_bias": (6,), "out": (-8, 6)}
    for name, value in small.items():
        cut = keep.get(name, (-8,))  # the answer is read from the last coordinates, so width is padded in front
        index = tuple(slice(None) if c is None else slice(c, None) if c < 0 else slice(0, c) for c in cut)
        padded[name][(..., *index)] = value
    wide_params = stack([wide.init(1), padded])
    adam = Adam(torch.tensor([0.01, 0.01]))
    both = train(wide.loss, wide_params, stream([(seed, TASK.draw) for seed in [1, 0]], 16), 30, adam)
    alone = train(narrow.loss, stack([small]), stream([(0, TASK.draw)], 16), 30, Adam(torch.tensor([0.01])))
    torch.testing.assert_close(both.loss[:, 1], alone.loss[:, 0], rtol=1e-4, atol=1e-6)


def test_adam_and_clipping_are_those_of_torch():
    model = Transformer(4, start=0.3)
    ours = train(
        model.loss,
        stack([model.init(3)]),
        stream([(3, TASK.draw)], 16),
        25,
        Adam(torch.tensor([0.02]), betas=(0.8, 0.95), clip=0.05, decay=False),
    )
    params = {name: value.clone().requires_grad_() for name, value in model.init(3).items()}
    theirs, batches = torch.optim.Adam(params.values(), 0.02, betas=(0.8, 0.95)), stream([(3, TASK.draw)], 16)
    for step in range(25):
        theirs.zero_grad()
        model.loss(params, Episodes(*(part[0] for part in batches(step)))).backward()
        torch.nn.utils.clip_grad_norm_(params.values(), 0.05)
        theirs.step()
    for name, value in params.items():
        torch.testing.assert_close(ours.params[name][0], value.detach(), rtol=1e-3, atol=1e-5)


def test_a_member_that_diverges_hurts_no_other_and_all_that_do_are_refused():
    model = Transformer(4, layers=3)
    mixed = trained(model, [0, 1], [0.01, 1e6])
    assert not mixed.loss[-1, 1].isfinite()
    torch.testing.assert_close(mixed.loss[:, 0], trained(model, [0], [0.01]).loss[:, 0], rtol=1e-4, atol=1e-6)
    with pytest.raises(Refusal, match=r"diverged at step \d+ with learning rate 1e\+06; lower the rate"):
        trained(model, [0, 1], [1e6, 1e6])


def test_batches_depend_on_seed_and_step_alone():
    three, one = stream([(seed, TASK.draw) for seed in [4, 5, 6]], 3), stream([(5, TASK.draw)], 3)
    forward = [three(step).x[1] for step in range(20)]
    assert all(torch.equal(one(step).x[0], forward[step]) for step in reversed(range(20)))
    everything = torch.cat([*forward, TASK.draw(60, generator(1)).x, three(0).x[0], three(0).x[2]])
    assert len(everything.flatten(1).unique(dim=0)) == len(everything)  # no episode twice, none of them held out


def test_batches_are_the_same_in_any_order_and_what_the_draw_refuses_is_refused():
    forward, back = stream([(1, TASK.draw)], 2, ahead=3), stream([(1, TASK.draw)], 2, ahead=3)
    there = [forward(step) for step in range(10)]
    for step in reversed(range(10)):
        torch.testing.assert_close(back(step).x, there[step].x, rtol=0, atol=0)
    straight = TASK.draw(6, generator(0, 1, 2))  # the third block, drawn by hand
    torch.testing.assert_close(there[7].y[0], straight.y[2:4], rtol=0, atol=0)

    def refuses(episodes, generator):
        raise Refusal("nothing to draw.")

    with pytest.raises(Refusal, match="nothing to draw"):
        stream([(0, refuses)], 2)(0)


def test_threads_are_restored_after_an_exception():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    with suppress(ZeroDivisionError), one_thread():
        assert torch.get_num_threads() == 1
        raise ZeroDivisionError
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)


def test_what_is_watched_is_seen_at_the_start_on_the_way_and_at_the_end():
    model = Transformer(4)
    seen = train(
        model.loss,
        stack([model.init(0)]),
        stream([(0, TASK.draw)], 8),
        10,
        Adam(torch.tensor([0.01])),
        watch=lambda params: {"size": params["pv"].norm()},
        every=4,
    )
    assert list(seen.watched) == [0, 4, 8, 10]
    torch.testing.assert_close(seen.watched[10]["size"], seen.params["pv"].norm())


def test_the_reference_for_sine_learns_from_its_demonstrations():
    task = FAMILIES["sine"](1, 1, 10, 0.0)
    features = DeepFeatures(1, width=8, hidden=16)
    params = features.init(0) | {"rate": torch.tensor(-2.0)}
    drawn = task.draw(50, torch.Generator().manual_seed(0))
    other = drawn._replace(y=drawn.y.flip(0))
    assert (features.predict(params, drawn) - features.predict(params, other)).abs().max() > 1e-3


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"attention": "sofmax"}, "Did you mean softmax"),
        ({"layers": 0}, "at least one layer"),
        ({"width": 2, "dy": 3}, "no room for 3 outputs"),
    ],
)
def test_models_that_cannot_be_are_refused(change, sentence):
    with pytest.raises(Refusal, match=sentence):
        Transformer(**{"dx": 4} | change)


def test_all_parameters_take_the_steps_that_torch_takes_one_by_one():
    """Adam by hand, tensor by tensor, with the same clipping; scalars among matrices."""
    model, rates, steps = Transformer(4, width=6, hidden=5, layers=2), torch.tensor([0.01, 0.003]), 7
    params = stack([model.init(seed) for seed in (0, 1)]) | {"level": torch.tensor([0.5, -1.0])}
    weights = {name: torch.randn(value.shape, generator=generator(5)) for name, value in params.items()}

    def loss(params, scale):
        return sum((scale * params[name] - weights[name][0]).pow(4).sum() for name in params)

    found = train(loss, params, lambda step: torch.tensor([1.0, 0.3]), steps, Adam(rates, clip=2.0, decay=False))
    for i, scale in enumerate((1.0, 0.3)):
        own = [value[i].clone().requires_grad_() for value in params.values()]
        adam = torch.optim.Adam(own, float(rates[i]), (0.9, 0.98))
        for _ in range(steps):
            adam.zero_grad()
            loss(dict(zip(params, own, strict=True)), scale).backward()
            torch.nn.utils.clip_grad_norm_(own, 2.0)
            adam.step()
        for name, value in zip(params, own, strict=True):
            torch.testing.assert_close(found.params[name][i], value.detach(), rtol=1e-4, atol=1e-6)


def test_what_was_trained_owns_its_memory():
    found = trained(Transformer(4), [0], [0.01], 2).params
    assert len({value.untyped_storage().data_ptr() for value in found.values()}) == len(found)


def test_what_is_watched_stays_as_it_was_whatever_steps_follow():
    adam, model = Adam(torch.tensor([0.1])), Transformer(4)
    found = train(
        model.loss, stack([model.init(0)]), stream([(0, TASK.draw)], 16), 3, adam, watch=lambda params: params, every=1
    )
    assert torch.equal(found.watched[0]["qk"][0], model.init(0)["qk"])
    assert not torch.equal(found.watched[1]["qk"], found.watched[2]["qk"])
