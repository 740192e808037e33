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
    Arbitrary,
    Augmented,
    Block,
    Centred,
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
    return Block(torch.tensor([*range(demos), *[-1] * own]), torch.tensor([demos + own - 1]))


def adapters(seed: int, dim: int) -> tuple[Adapter, Adapter]:
    g = torch.Generator().manual_seed(seed)
    return Adapter.random(dim, dim, 5, g), Adapter.random(dim, dim, 5, g)


def modified(kind: str, strength: float, k: int, seed: int, dim: int) -> Modification:
    g1, g2 = adapters(seed, dim)
    return {
        "plain": Modification(),
        "regularised": Regularised(strength),
        "slide": RegularisedSlide(strength),
        "g1": Augmented(strength, value=g1),
        "g2": Augmented(strength, key=g2),
        "g1 and g2": Augmented(strength, value=g1, key=g2),
        "negative": Negative(k, strength),
        "arbitrary": Arbitrary(k, strength, seed),
        "centred": Centred(strength),
    }[kind]


KINDS = ("plain", "regularised", "slide", "g1", "g2", "g1 and g2", "negative", "arbitrary", "centred")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1.0, 12.0])
@given(seeds, sizes, sizes, sizes, strengths, sizes, st.floats(1e-3, 10.0))
@settings(deadline=None, max_examples=30)
def test_modified_attention_is_the_gradient_step_of_the_modified_loss(
    kind: str, scale: float, seed: int, demos: int, own: int, dim: int, strength: float, k: int, rate: float
) -> None:
    query, keys, values, inputs = head(seed, demos, own, dim, scale)
    modification = modified(kind, strength, k, seed, dim)
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
    changed = attend(query[None], keys, values, block(demos, own), modified(kind, 0.0, 2, seed, dim), inputs)
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


@given(seeds, st.integers(2, 9), sizes, st.integers(1, 4))
@settings(deadline=None, max_examples=50)
def test_negatives_of_a_demonstration_are_the_other_demonstrations_with_the_lowest_scores(
    seed: int, demos: int, dim: int, k: int
) -> None:
    query, keys, values, _ = head(seed, demos, 2, dim)
    scores = keys @ query / dim**0.5
    less = values.clone()
    for i in range(demos):
        others = sorted((j for j in range(demos) if j != i), key=lambda j: float(scores[j]))
        less[i] -= 0.7 * values[others[:k]].mean(0)
    got = attend(query[None], keys, values, block(demos, 2), Negative(k, 0.7))[0]
    assert (got - scores.softmax(-1) @ less).abs().max() <= 1e-12


def test_in_a_prompt_negatives_are_demonstrations_and_not_tokens() -> None:
    """Three demonstrations of 2, 3 and 1 tokens, bos before and the query behind: by hand."""
    owner = torch.tensor([-1, 0, 0, 1, 1, 1, 2, -1])
    scores = torch.tensor([9.0, 1.0, 3.0, 0.0, 4.0, 5.0, 2.5, 0.5], dtype=torch.float64)  # means 2, 3, 2.5
    values = torch.randn(8, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    mean = {d: values[owner == d].mean(0) for d in range(3)}
    less = values.clone()
    for token, d in enumerate(owner.tolist()):
        if d >= 0:
            less[token] -= 0.4 * mean[2 if d == 0 else 0]  # the lowest but itself
    weights = scores.softmax(-1)
    found = Negative(1, 0.4).weights(weights[None], scores[None], Block(owner, torch.tensor([7])))
    assert (found[0] @ values - weights @ less).abs().max() <= 1e-14


def test_arbitrary_negatives_do_not_look_at_scores_and_are_never_ones_own() -> None:
    seen = torch.ones(2, 6, dtype=torch.bool)
    scores = torch.randn(2, 6, generator=torch.Generator().manual_seed(1))
    first = Arbitrary(2, 0.5, seed=3).sets(scores, seen)
    assert torch.equal(first[0], first[1])
    assert torch.equal(first, Arbitrary(2, 0.5, seed=3).sets(-scores, seen))
    assert (first.diagonal(dim1=-2, dim2=-1) == 0).all()
    assert torch.allclose(first.sum(-1), torch.ones(2, 6))
    assert ((first == 0) | (first == 0.5)).all()
    assert any(not torch.equal(first, Arbitrary(2, 0.5, seed=s).sets(scores, seen)) for s in range(4, 9))


def test_centring_takes_the_mean_of_all_demonstrations_off_their_values() -> None:
    query, keys, values, _ = head(5, 6, 2, 3)
    weights = (keys @ query / 3**0.5).softmax(-1)
    less = values.clone()
    less[:6] -= 0.8 * values[:6].mean(0)
    got = attend(query[None], keys, values, block(6, 2), Centred(0.8))[0]
    assert (got - weights @ less).abs().max() <= 1e-13


def test_the_slides_negative_loss_gives_another_model_than_the_slides() -> None:
    """With φ(k_j) in the negative term, as printed, the negatives lose weight of their own and no value changes."""
    query, keys, values, _ = head(4, 6, 2, 5)
    scores, k, beta = keys @ query / 5**0.5, 2, 0.5
    plain = dual_of(query, keys, values, block(6, 2), Modification())
    times = Negative(k, beta).sets(scores[:6], torch.ones(6, dtype=torch.bool)).sum(0)  # how often each is a negative
    printed = replace(
        plain,
        inputs=torch.cat([plain.inputs, plain.inputs]),
        labels=torch.cat([plain.labels, -beta * times[:, None] * plain.labels]),
    )
    weights = scores.softmax(-1)
    follows = weights @ values - beta * (weights[:6] * times) @ values[:6]
    model = attend(query[None], keys, values, block(6, 2), Negative(k, beta))[0]
    assert (printed.predict(printed.step()) - follows).abs().max() <= 1e-12
    assert (follows - model).abs().max() > 1e-2


HIDDEN = torch.finfo(torch.float32).min


def test_what_a_mask_hides_is_no_negative_and_loses_nothing() -> None:
    weights = torch.tensor([[0.0, 0.2, 0.3, 0.5]])
    scores = torch.tensor([[HIDDEN, 0.2, 0.3, 0.5]])
    where = Block(torch.tensor([0, 1, 2, -1]), torch.tensor([3]))
    # three asked for, one other can be seen: each of the two is the other's only negative
    changed = Negative(3, 0.5).weights(weights, scores, where)
    assert torch.allclose(changed, torch.tensor([[0.0, 0.2 - 0.15, 0.3 - 0.1, 0.5]]))
    centred = Centred(1.0).weights(weights, scores, where)
    assert torch.allclose(centred, torch.tensor([[0.0, 0.2 - 0.25, 0.3 - 0.25, 0.5]]))


def test_a_demonstration_that_a_window_cuts_has_the_mean_of_what_is_left() -> None:
    weights = torch.tensor([[0.0, 0.1, 0.2, 0.3, 0.4]])
    scores = torch.tensor([[HIDDEN, 0.0, 0.1, 0.2, 0.3]])
    where = Block(torch.tensor([0, 0, 1, 1, -1]), torch.tensor([4]))
    changed = Negative(1, 1.0).weights(weights, scores, where)
    assert torch.allclose(changed, torch.tensor([[0.0, 0.1 - 0.5, 0.2 - 0.05, 0.3 - 0.05, 0.4]]))


def test_without_another_demonstration_there_is_no_negative() -> None:
    weights, scores = torch.tensor([[0.4, 0.6]]), torch.tensor([[0.0, 1.0]])
    where = Block(torch.tensor([0, -1]), torch.tensor([1]))
    assert torch.equal(Negative(2, 1.0).weights(weights, scores, where), weights)


def test_half_precision_weights_are_modified_in_single_precision_and_stay_half() -> None:
    weights = torch.tensor([[0.25, 0.25, 0.5]], dtype=torch.bfloat16)
    where = Block(torch.tensor([0, 1, -1]), torch.tensor([2]))
    found = Negative(1, 0.5).weights(weights, weights.log(), where)
    assert found.dtype == torch.bfloat16
    assert found.tolist() == [[0.125, 0.125, 0.5]]


def read(text: str) -> Modification:
    return parse_one(text, MODIFICATIONS).make()


def test_modifications_are_read_from_text() -> None:
    assert read("negative:k=1:beta=0.1") == Negative(1, 0.1)
    assert read("regularised") == Regularised()
    assert read("augmented:adapters=g1:c=0.2") == Augmented(0.2, "g1")
    assert read("arbitrary:k=2:seed=5") == Arbitrary(2, 0.5, 5)
    assert read("centred") == Centred(1.0)
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


def test_the_regularised_forms_take_half_unless_they_are_told():
    """Of what attention gives to the query's own key (.5), and of one (the slide)."""
    where, weights = Block(torch.tensor([0, -1]), torch.tensor([1])), torch.tensor([[0.5, 0.5]])
    assert Regularised().weights(weights, weights, where).tolist() == [[0.5, 0.25]]
    assert RegularisedSlide().weights(weights, weights, where).tolist() == [[0.5, 0.0]]
