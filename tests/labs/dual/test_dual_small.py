"""Modified attention trained on regressions and on anything that draws episodes."""

from dataclasses import replace

import pytest
import torch

from iclgd.choices import parse_one
from iclgd.errors import Refusal
from iclgd.labs.dual.modifications import MODIFICATIONS, TRAINED
from iclgd.labs.dual.modified import Augmented, Block, Modification, Negative, Regularised, RegularisedSlide, dual_of
from iclgd.labs.dual.small import (
    LINKS,
    Recipe,
    Source,
    Task,
    adapters_of,
    curves,
    find_task,
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
