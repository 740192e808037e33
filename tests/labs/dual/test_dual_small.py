"""Modified attention trained on regressions and on anything that draws episodes."""

from dataclasses import replace

import pytest
import torch

from iclgd.choices import parse_one
from iclgd.errors import Refusal
from iclgd.labs.dual.modifications import MODIFICATIONS, TRAINED
from iclgd.labs.dual.modified import (
    Arbitrary,
    Augmented,
    Block,
    Centred,
    Modification,
    Negative,
    Regularised,
    RegularisedSlide,
    dual_of,
)
from iclgd.labs.dual.small import (
    HIDDEN,
    LINKS,
    Recipe,
    Source,
    Task,
    adapters_of,
    centred,
    curves,
    find_task,
    gd_reference,
    loss,
    predict,
    start,
    with_params,
)
from iclgd.small.train import Params
from iclgd.tasks.regression import Episodes, Regression

SHORT = Recipe(epochs=3, steps=5, batch=16, episodes=64)


PLAIN = Modification()
ARMS = {text: parse_one(text, MODIFICATIONS).make() for text in ("plain", *TRAINED)}


def same(task: Task, seeds: int = 2) -> list[tuple[int, Source]]:
    return [(seed, Source(task, task)) for seed in range(seeds)]


def moved(params: Params) -> Params:
    """Away from the start, where an adapter's second matrix is zero."""
    g = torch.Generator().manual_seed(9)
    return {name: value.double() + 0.3 * torch.randn(value.shape, generator=g) for name, value in params.items()}


def as_double(episodes: Episodes) -> Episodes:
    return Episodes(*(part.double() for part in episodes))


@pytest.mark.parametrize("arm", ARMS.values(), ids=ARMS)
def test_the_layer_that_is_trained_is_one_gradient_step_of_its_dual(arm: Modification) -> None:
    params = moved(start(6, 0, adapters_of(arm)))
    asked = as_double(find_task("linear", 5, 7).draw(4, torch.Generator().manual_seed(0)))
    answers = predict(params, asked, arm)
    tokens = torch.cat([torch.cat([asked.x, asked.y], -1), torch.cat([asked.query, 0 * asked.target], -1)], -2)
    block = Block(torch.tensor([*range(7), -1]), torch.tensor([7]))
    states = [tokens @ params[name].mT for name in ("query", "key", "value")]
    dual = dual_of(states[0][:, -1], states[1], states[2], block, with_params(arm, params), tokens)
    assert (dual.predict(dual.step())[:, -1:] - answers).abs().max() <= 1e-11


@pytest.mark.parametrize("zero", [Regularised(0.0), RegularisedSlide(0.0), Negative(3, 0.0), Augmented(0.0)])
def test_training_at_strength_zero_gives_the_unmodified_curve_bit_for_bit(zero: Modification) -> None:
    sources = same(find_task("linear", 4, 6))
    assert torch.equal(curves(sources, PLAIN, SHORT), curves(sources, zero, SHORT))
    if isinstance(zero, Augmented):  # and with some strength the same adapters change the curve
        assert not torch.equal(curves(sources, PLAIN, SHORT), curves(sources, Augmented(), SHORT))


def test_augmented_arms_start_as_the_unmodified_layer() -> None:
    asked = find_task("trigonometric", 4, 6).draw(8, torch.Generator().manual_seed(1))
    plain = loss(start(5, 3), asked, PLAIN)
    for adapters in ("g1", "g2", "both"):
        arm = Augmented(adapters=adapters)
        assert torch.equal(loss(start(5, 3, adapters_of(arm)), asked, arm), plain)


def test_a_curve_has_every_epoch_of_every_seed_and_comes_out_the_same_again() -> None:
    sources = same(find_task("linear", 4, 6))
    first, second = (curves(sources, PLAIN, SHORT) for _ in range(2))
    assert first.shape == (SHORT.epochs + 1, 2)
    assert (first[:, 0] != first[:, 1]).all()
    assert torch.equal(first, second)


def test_training_beats_the_best_constant_and_negatives_beat_normal() -> None:
    recipe = Recipe(epochs=40, steps=25, batch=64, rate=0.02, episodes=1024)
    sources = same(find_task("linear", 4, 10), 4)
    normal, negative = curves(sources, PLAIN, recipe)[-1], curves(sources, Negative(3, 0.5), recipe)[-1]
    assert normal.max() < 0.9  # the best constant has 1
    assert (negative < normal).all()


@pytest.mark.parametrize(
    "name, mean, variance", [("linear", 0, 1), ("trigonometric", 0, None), ("exponential", 1.13, 0.36)]
)
def test_the_regressions_have_the_scale_they_say(name: str, mean: float, variance: float | None) -> None:
    target = find_task(name, 10, 3).draw(20000, torch.Generator().manual_seed(0)).target
    assert float(target.mean()) == pytest.approx(mean, abs=0.03)
    if variance:
        assert float(target.var()) == pytest.approx(variance, rel=0.06)
    else:
        assert float(target.abs().max()) <= 1


def test_any_object_that_draws_episodes_can_be_trained_on() -> None:
    class Flipped:
        """The sign of the labels is drawn with the episode, as in a language's membership task."""

        def draw(self, episodes: int, generator: torch.Generator, /) -> Episodes:
            drawn = find_task("linear", 3, 5).draw(episodes, generator)
            return drawn._replace(y=drawn.y.sign(), target=drawn.target.sign())

    assert curves(same(Flipped()), PLAIN, SHORT).isfinite().all()


def test_a_seed_trains_on_its_own_source_and_is_judged_on_its_test_side() -> None:
    near, far = find_task("linear", 4, 6), find_task("exponential", 4, 6)
    mixed = curves([(0, Source(near, near)), (1, Source(far, near))], PLAIN, SHORT)
    alone = curves(same(near), PLAIN, SHORT)
    assert torch.equal(mixed[:, 0], alone[:, 0])  # whatever trains beside it
    assert torch.equal(mixed[0], alone[0])  # judged on the same side: alike before training
    assert mixed[-1, 1] != alone[-1, 1]


def test_families_of_the_linear_lab_are_tasks_too() -> None:
    assert isinstance(find_task("sparse", 5, 4), Regression)
    with pytest.raises(Refusal, match="no regression.*Did you mean sparse"):
        find_task("sparce", 5, 4)
    assert set(LINKS) == {"linear", "trigonometric", "exponential"}


def test_members_keep_their_seeds_whoever_trains_beside_them() -> None:
    """Seed 3 alone is seed 3 among others, but for the rounding of a larger product."""
    sources = same(find_task("trigonometric", 4, 6), 4)
    among, alone = curves(sources, Negative(2, 0.5), SHORT), curves(sources[3:], Negative(2, 0.5), SHORT)
    assert torch.allclose(among[:, 3:], alone, rtol=1e-5, atol=0)
    assert not torch.allclose(among[:, 2:3], alone, rtol=1e-2)


def test_a_rate_at_which_nothing_is_left_is_refused() -> None:
    with pytest.raises(Refusal, match=r"diverge"):
        curves(same(find_task("exponential", 4, 6)), PLAIN, replace(SHORT, rate=1e30))


def test_centred_episodes_have_no_mean_and_the_same_differences() -> None:
    drawn = as_double(find_task("exponential", 3, 5).draw(7, torch.Generator().manual_seed(0)))
    less, mean = centred(drawn)
    assert less.x.mean(-2).abs().max() <= 1e-15
    assert less.y.mean(-2).abs().max() <= 1e-15
    assert torch.allclose(less.y + mean, drawn.y)
    assert torch.allclose(less.target + mean, drawn.target)
    assert torch.allclose(drawn.query[:, 0] - drawn.x[:, 0], less.query[:, 0] - less.x[:, 0])


def test_the_reference_is_the_best_matrix_for_a_centred_step() -> None:
    """No multiple of the identity does better, and a shift of inputs and labels changes nothing."""
    task = find_task("linear", 3, 8)
    found = torch.stack([gd_reference(source, seed, 4096) for seed, source in same(task)])
    assert found[0] != found[1]

    held, _ = centred(Source(task, task).held(1, 4096))
    best = torch.stack([step_loss(held, rate * torch.eye(3)) for rate in torch.linspace(0.1, 3, 59)]).min()
    assert float(found[1]) <= float(best) * 1.01
    assert float(found[1]) < 0.6  # the best constant has 1

    class Shifted:
        def draw(self, episodes: int, generator: torch.Generator, /) -> Episodes:
            x, y, query, target = task.draw(episodes, generator)
            return Episodes(x + 2, y - 3, query + 2, target - 3)

    assert torch.allclose(gd_reference(Source(Shifted(), Shifted()), 1, 4096), found[1], rtol=1e-3)


def step_loss(held: Episodes, matrix: torch.Tensor) -> torch.Tensor:
    weights = (held.y.mT @ held.x) / held.x.shape[-2] @ matrix
    return (held.query @ weights.mT - held.target).square().mean()


def test_the_reference_trains_on_the_train_side_and_is_judged_on_the_test_side() -> None:
    near, far = find_task("linear", 3, 8), find_task("exponential", 3, 8)
    crossed = gd_reference(Source(far, near), 0, 512)
    assert not torch.equal(crossed, gd_reference(Source(near, near), 0, 512))
    assert not torch.equal(crossed, gd_reference(Source(far, far), 0, 512))


def test_a_start_has_adapters_that_add_nothing_and_matrices_of_unit_rows() -> None:
    params = start(400, 0, ("g1",))
    assert set(params) == {"query", "key", "value", "g1_w1", "g1_w2"}
    assert not params["g1_w2"].any()
    assert params["g1_w2"].shape == (400, HIDDEN)
    for name in ("query", "key", "value", "g1_w1"):
        assert float(params[name].norm(dim=-1).mean()) == pytest.approx(1, rel=0.05)
    assert not torch.equal(params["query"], params["key"])
    assert torch.equal(params["query"], start(400, 0)["query"])
    assert not torch.equal(params["query"], start(400, 1)["query"])


def test_each_adapter_goes_where_its_name_says() -> None:
    params = moved(start(4, 0, ("g1", "g2")))
    both = with_params(Augmented(), params)
    assert torch.equal(both.value.w1, params["g1_w1"])
    assert torch.equal(both.value.w2, params["g1_w2"])
    assert torch.equal(both.key.w1, params["g2_w1"])
    only = with_params(Augmented(adapters="g2"), params)
    assert only.value is None
    assert only.key is not None


def test_held_episodes_are_a_seeds_own_and_of_the_test_side() -> None:
    near, far = find_task("linear", 3, 8), find_task("exponential", 3, 8)
    source = Source(far, near)
    assert torch.equal(source.held(3, 5).x, source.held(3, 5).x)
    assert not torch.equal(source.held(3, 5).x, source.held(4, 5).x)
    assert torch.equal(source.held(3, 5).target, Source(near, near).held(3, 5).target)
    assert source.held(3, 5).x.shape == (5, 8, 3)


def test_a_sine_has_one_input() -> None:
    assert find_task("sine", 1, 4).draw(2, torch.Generator().manual_seed(0)).x.shape == (2, 4, 1)
    with pytest.raises(Refusal, match="one input, not 3"):
        find_task("sine", 3, 4)


def test_the_usual_arms_are_those_of_the_slides_with_the_controls() -> None:
    made = list(ARMS.values())
    for wanted in (
        *(form(alpha) for form in (Regularised, RegularisedSlide) for alpha in (0.5, -0.5)),
        *(Negative(k, beta) for k in (1, 3) for beta in (0.1, 0.5)),
        *(Augmented(adapters=adapters) for adapters in ("g1", "g2", "both")),
        Arbitrary(3, 0.5),
        Centred(1.0),
    ):
        assert wanted in made
    assert [adapters_of(arm) for arm in made if adapters_of(arm)] == [("g1",), ("g2",), ("g1", "g2")]
