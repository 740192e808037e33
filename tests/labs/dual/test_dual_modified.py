"""Each modified attention is the gradient step of its modified loss, and at strength 0 it is plain."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from iclgd.choices import parse_one
from iclgd.errors import Refusal
from iclgd.labs.dual.modifications import MODIFICATIONS
from iclgd.labs.dual.modified import (
    Adapter,
    Augmented,
    Block,
    Modification,
    Negative,
    Regularised,
    RegularisedSlide,
    attend,
    dual_of,
)

sizes = st.integers(1, 9)
seeds = st.integers(0, 2**20)
strengths = st.floats(-2, 2)


def head(seed: int, demos: int, own: int, dim: int, scale: float = 1.0) -> tuple[torch.Tensor, ...]:
    g = torch.Generator().manual_seed(seed)
    return tuple(
        scale * torch.randn(*shape, generator=g, dtype=torch.float64)
        for shape in [(dim,), (demos + own, dim), (demos + own, dim), (demos + own, dim)]
    )


def block(demos: int, own: int) -> Block:
    return Block(torch.arange(demos + own) < demos, torch.tensor([demos + own - 1]))


def adapters(seed: int, dim: int) -> tuple[Adapter, Adapter]:
    g = torch.Generator().manual_seed(seed)
    return Adapter.random(dim, dim, 5, g), Adapter.random(dim, dim, 5, g)


def change(kind: str, strength: float, k: int, seed: int, dim: int) -> Modification:
    g1, g2 = adapters(seed, dim)
    return {
        "plain": Modification(),
        "regularised": Regularised(strength),
        "slide": RegularisedSlide(strength),
        "g1": Augmented(strength, value=g1),
        "g2": Augmented(strength, key=g2),
        "g1 and g2": Augmented(strength, value=g1, key=g2),
        "negative": Negative(k, strength),
    }[kind]


KINDS = ("plain", "regularised", "slide", "g1", "g2", "g1 and g2", "negative")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1.0, 12.0])
@given(seeds, sizes, sizes, sizes, strengths, sizes, st.floats(1e-3, 10.0))
@settings(deadline=None, max_examples=30)
def test_modified_attention_is_the_gradient_step_of_the_modified_loss(
    kind: str, scale: float, seed: int, demos: int, own: int, dim: int, strength: float, k: int, rate: float
) -> None:
    query, keys, values, inputs = head(seed, demos, own, dim, scale)
    modification = change(kind, strength, k, seed, dim)
    wanted = attend(query[None], keys, values, block(demos, own), modification, inputs)[0]
    dual = dual_of(query, keys, values, block(demos, own), modification, inputs)
    got = dual.predict(dual.step(rate))
    size = modification.states(keys, values, inputs)[1].abs().max() * (1 + abs(strength))
    assert (got - wanted).abs().max() <= 1e-12 * size


@pytest.mark.parametrize("kind", KINDS)
@given(seeds, sizes, sizes, sizes)
@settings(deadline=None, max_examples=20)
def test_strength_zero_is_the_unmodified_attention_bit_for_bit(
    kind: str, seed: int, demos: int, own: int, dim: int
) -> None:
    query, keys, values, inputs = head(seed, demos, own, dim)
    plain = attend(query[None], keys, values, block(demos, own), Modification(), inputs)
    changed = attend(query[None], keys, values, block(demos, own), change(kind, 0.0, 2, seed, dim), inputs)
    assert torch.equal(plain, changed)


@given(seeds, sizes, sizes, st.floats(0.1, 0.9))
@settings(deadline=None, max_examples=30)
def test_the_slides_regularised_form_departs_from_its_loss(seed: int, demos: int, dim: int, alpha: float) -> None:
    """They agree only where the slide's α is α A_qq and the query is the only token of its own (T = 1)."""
    query, keys, values, _ = head(seed, demos, 1, dim)
    where = block(demos, 1)
    exact = attend(query[None], keys, values, where, Regularised(alpha))
    slide = attend(query[None], keys, values, where, RegularisedSlide(alpha))
    own = (keys @ query / dim**0.5).softmax(-1)[-1]
    same = attend(query[None], keys, values, where, RegularisedSlide(alpha * float(own)))
    assert (exact - same).abs().max() <= 1e-12
    assert torch.allclose(exact - slide, alpha * (1 - own) * values[-1:], atol=1e-12)


@given(seeds, sizes, sizes, sizes, st.floats(0.1, 0.9))
@settings(deadline=None, max_examples=30)
def test_with_any_number_of_own_tokens_the_two_differ_by_own_value_less_what_own_tokens_give(
    seed: int, demos: int, own: int, dim: int, alpha: float
) -> None:
    query, keys, values, _ = head(seed, demos, own, dim)
    forms = [
        attend(query[None], keys, values, block(demos, own), form(alpha)) for form in (Regularised, RegularisedSlide)
    ]
    weights = (keys @ query / dim**0.5).softmax(-1)
    wanted = alpha * (values[-1] - weights[demos:] @ values[demos:])
    assert torch.allclose((forms[0] - forms[1])[0], wanted, atol=1e-12)


@given(seeds, st.integers(4, 9), sizes, st.integers(1, 3))
@settings(deadline=None, max_examples=30)
def test_negatives_are_the_demonstrations_with_the_lowest_scores(seed: int, demos: int, dim: int, k: int) -> None:
    query, keys, values, _ = head(seed, demos, 2, dim)
    scores = keys @ query / dim**0.5
    lowest = sorted(range(demos), key=lambda i: float(scores[i]))[:k]
    less = values.clone()
    less[:demos] -= 0.7 * values[lowest].mean(0)
    wanted = scores.softmax(-1) @ less
    got = attend(query[None], keys, values, block(demos, 2), Negative(k, 0.7))[0]
    assert (got - wanted).abs().max() <= 1e-12


def test_the_slides_negative_loss_gives_another_model_than_the_slides() -> None:
    """With φ(k_j) in the negative term, as printed, the negatives lose weight of their own and no value changes."""
    query, keys, values, _ = head(4, 6, 2, 5)
    scores, k, beta = keys @ query / 5**0.5, 2, 0.5
    plain = dual_of(query, keys, values, block(6, 2), Modification())
    index, part = Negative(k, beta).chosen(scores[:6], torch.ones(6, dtype=torch.bool))
    printed = replace(
        plain,
        inputs=torch.cat([plain.inputs, plain.inputs[index]]),
        labels=torch.cat([plain.labels, -6 * beta * part[:, None] * plain.labels[index]]),  # once for each of the 6
    )
    weights = scores.softmax(-1)
    follows = weights @ values - 6 * beta / k * weights[index] @ values[index]
    model = attend(query[None], keys, values, block(6, 2), Negative(k, beta))[0]
    assert (printed.predict(printed.step()) - follows).abs().max() <= 1e-12
    assert (follows - model).abs().max() > 1e-2


def test_a_key_that_a_mask_hides_is_no_negative() -> None:
    weights = torch.tensor([[0.0, 0.2, 0.3, 0.5]])
    scores = torch.tensor([[torch.finfo(torch.float32).min, 0.2, 0.3, 0.5]])
    where = Block(torch.tensor([True, True, True, False]), torch.tensor([3]))
    changed = Negative(3, 1.0).weights(weights, scores, where)  # three asked for, two can be seen
    assert torch.allclose(changed, torch.tensor([[0.0, 0.2 - 0.25, 0.3 - 0.25, 0.5]]))


def read(text: str) -> Modification:
    return parse_one(text, MODIFICATIONS).make()


def test_modifications_are_read_from_text() -> None:
    assert read("negative:k=1:beta=0.1") == Negative(1, 0.1)
    assert read("regularised") == Regularised()
    assert read("augmented:adapters=g1:c=0.2") == Augmented(0.2, "g1")
    assert type(read("plain")) is Modification


@pytest.mark.parametrize(
    "text, says",
    [
        ("negativ", "Did you mean negative"),
        ("negative:q=1", "has no option"),
        ("negative:beta=x", "takes a finite number"),
        ("negative:k=1.5", "takes a whole number"),
        ("negative:k=0", "at least 1"),
        ("negative:k=1:k=2", "give it once"),
        ("regularised:alpha=nan", "finite"),
        ("augmented:adapters=g3", "takes g1, g2, both"),
        ("plain:x=1", "It has none"),
    ],
)
def test_a_modification_that_cannot_be_read_is_refused(text: str, says: str) -> None:
    with pytest.raises(Refusal, match=says):
        read(text)
