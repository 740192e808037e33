"""Two changes of the same matrices, and what the identity does not say."""

import numpy as np
import pytest
import torch

from iclgd.labs.implicit.null import attention_alone, settling, slope, trace_losses
from iclgd.labs.implicit.weights import (
    apart,
    best_step,
    between,
    cosine,
    directions,
    largest,
    overlap,
    own_best_steps,
    own_contrasts,
    own_cosines,
    own_overlap,
)
from iclgd.models.added import Outer
from iclgd.models.patches import patches, read
from iclgd.models.subject import Subject
from tiny import REGISTERED, tiny_subject, tiny_tokenizer, tokens


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def outers(seed: int, queries: int = 4) -> Outer:
    return Outer(normal(queries, 6, seed=seed), normal(queries, 9, seed=seed + 1))


def test_cosines_of_own_patches_are_those_of_their_matrices():
    one, two, b = outers(1), outers(5), normal(6, 9, seed=9)
    for i in range(4):
        assert float(own_cosines(one, b)[i]) == pytest.approx(cosine(one.of(i), b), abs=1e-12)
        assert float(own_contrasts(one, two, b)[i]) == pytest.approx(cosine(one.of(i) - two.of(i), b), abs=1e-12)
        assert float(apart(one, two)[i]) == pytest.approx(float((one.of(i) - two.of(i)).norm()), abs=1e-12)


def test_two_queries_are_as_alike_as_their_matrices():
    one = outers(1, queries=3)
    pairs = [cosine(one.of(i), one.of(j)) for i in range(3) for j in range(3) if i != j]
    assert between(one) == pytest.approx(sum(pairs) / 6, abs=1e-12)


@pytest.mark.parametrize("shape", [(6, 9), (9, 6)])
def test_directions_are_the_first_singular_vectors(shape):
    a = normal(*shape)
    left, right = directions(a, 2)
    u, _, vh = torch.linalg.svd(a)
    for found, known in ((left, u[:, :2]), (right, vh[:2].T)):
        torch.testing.assert_close((found.T @ known).abs(), torch.eye(2, dtype=torch.float64), rtol=0, atol=1e-9)


def shared(a: torch.Tensor, b: torch.Tensor, rank: int) -> tuple[float, float]:
    return overlap(directions(a, rank + 1), directions(b, rank + 1), rank)


def test_directions_of_a_large_matrix_are_those_of_its_whole_decomposition():
    a = normal(90, 120) @ torch.diag(0.8 ** torch.arange(120, dtype=torch.float64))
    u, _, vh = torch.linalg.svd(a)
    whole = (u[:, :4], vh[:4].T)
    assert overlap(directions(a, 4), whole, 4) == pytest.approx((1, 1), abs=1e-6)


@pytest.mark.parametrize("shape", [(6, 9), (9, 6)])
def test_the_largest_singular_value_is_that_of_the_matrix(shape):
    for scale in (1.0, 1e-3):
        a = scale * normal(*shape)
        assert largest(a) == pytest.approx(float(torch.linalg.svdvals(a)[0]), rel=1e-12)
    assert largest(torch.zeros(shape)) == 0


def test_overlap_is_one_for_the_same_space_none_for_another_and_chance_for_random_ones():
    a = normal(6, 9)
    assert shared(a, -3 * a, 2) == pytest.approx((1, 1))
    left, right = torch.eye(6, dtype=torch.float64), torch.eye(9, dtype=torch.float64)
    one, two = left[:, :2] @ right[:2], left[:, 2:4] @ right[2:4]
    assert shared(one, two, 2) == pytest.approx((0, 0), abs=1e-12)
    found = torch.tensor([shared(normal(6, 9, seed=i), normal(6, 9, seed=500 + i), 2) for i in range(200)])
    assert found.mean(0).tolist() == pytest.approx([2 / 6, 2 / 9], abs=0.02)


def test_a_space_of_fewer_directions_than_asked_for_is_shared_as_far_as_it_goes():
    one, two = (torch.eye(6, dtype=torch.float64)[:, i : i + 1] for i in (0, 1))
    assert overlap((one, one), (one, two), 3) == (1, 0)


def test_of_more_directions_than_are_asked_for_the_first_count():
    six = torch.eye(6, dtype=torch.float64)
    one, two = (six[:, :3], six[:, :3]), (six[:, [3, 0, 1]], six[:, [0, 4, 5]])
    assert overlap(one, two, 1) == (0, 1)
    assert overlap(one, two, 3) == pytest.approx((2 / 3, 1 / 3))


def test_own_patches_are_in_a_space_as_far_as_their_one_direction_is():
    left, right = torch.eye(4, dtype=torch.float64), torch.eye(5, dtype=torch.float64)
    own = Outer(torch.stack([left[0] + left[1], left[3]]), torch.stack([right[0], 3 * right[1] - 4 * right[2]]))
    assert own_overlap(own, (left, right[:, :4]), 1) == pytest.approx((0.25, 0.5))
    assert own_overlap(own, (left, right[:, :4]), 2) == pytest.approx((0.5, (1 + 0.36) / 2))


def test_a_patch_is_not_away_from_itself_whatever_rounding_leaves_of_it():
    many = Outer(normal(300, 6).float(), normal(300, 9, seed=1).float())
    assert (apart(many, many) <= 1e-3 * many.norms).all()  # and none is nan, as the root of −1e-16 would be


def test_the_best_step_leaves_nothing_along_the_other():
    a, b = normal(6, 9), normal(6, 9, seed=1)
    assert cosine(a - best_step(a, b) * b, b) == pytest.approx(0, abs=1e-12)


def test_best_steps_of_own_patches_are_those_of_their_matrices():
    one, two, b = outers(1), outers(5), normal(6, 9, seed=9)
    for i in range(4):
        assert float(own_best_steps(one, b)[i]) == pytest.approx(best_step(one.of(i), b), abs=1e-12)
        assert float(own_best_steps(one, b, two)[i]) == pytest.approx(best_step(one.of(i) - two.of(i), b), abs=1e-12)


def test_any_path_of_matrices_is_gradient_descent_on_trace_losses():
    assert trace_losses(normal(8, 5, 7)) <= 1e-14


def test_the_slope_of_one_over_i_is_minus_one():
    sizes = [2, 4, 8, 16]
    assert slope(sizes, 3 / torch.tensor(sizes)) == pytest.approx(-1)
    assert slope(sizes, torch.ones(4)) == pytest.approx(0)


def test_one_over_i_comes_from_averaging_random_tokens():
    """Reported as convergence, −1 is what a layer of random weights gives."""
    assert attention_alone(seed=3) == pytest.approx(-1, abs=0.05)


def test_patches_settle_in_a_model_that_was_never_trained():
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(REGISTERED["llama"](), attn_implementation="eager")
    subject = Subject(model, tiny_tokenizer(), "fresh")
    context, query = (tuple(tokens(1, length, length)[0].tolist()) for length in (130, 5))
    sizes, moved = settling(subject, (1,), (1, *context), query)
    assert sizes == [2, 4, 8, 16, 32, 64, 128]
    assert slope(sizes, moved.median(-1).values) < -0.4


def test_settling_is_how_far_the_patch_goes_with_one_more_token():
    subject = tiny_subject("llama")
    context, query = (1, *tokens(1, 9, 1)[0].tolist()), tuple(tokens(1, 4, 2)[0].tolist())
    sizes, moved = settling(subject, (1,), context, query)
    assert sizes == [2, 4, 8]

    def last(count: int) -> list[torch.Tensor]:
        target = read(subject, [query], subject.encode(context[:count]))
        return [layer.last.of(0) for layer in patches(subject, [(1, *query)], target, "C")]

    for place, size in enumerate(sizes):
        expected = [(two - one).norm() for one, two in zip(last(size), last(size + 1), strict=True)]
        torch.testing.assert_close(moved[place].float(), torch.stack(expected), rtol=1e-3, atol=1e-5)


def test_settling_begins_behind_what_every_prompt_starts_with():
    subject = tiny_subject("llama")
    context, query = (1, 1, *tokens(1, 6, 1)[0].tolist()), tuple(tokens(1, 4, 2)[0].tolist())
    assert settling(subject, (1, 1), context, query)[0] == [4]  # and 8 tokens have none behind them
    assert settling(subject, (), context[:3], query)[0] == [2]


def test_the_slope_of_attention_alone_is_that_of_softmax_attention_over_ever_more_tokens():
    """The same draws; each average by a softmax of its own, the line through logarithms by numpy."""
    tokens_, dim, draws = 20, 4, 5
    random = torch.Generator().manual_seed(2)
    shapes = ((draws, 1, dim), (draws, tokens_, dim), (draws, tokens_, dim))
    query, keys, values = (torch.randn(*shape, generator=random, dtype=torch.float64) for shape in shapes)
    map_ = torch.randn(dim, dim, generator=random, dtype=torch.float64)
    read = [
        torch.stack(
            [(keys[d, :count] @ query[d, 0] / dim**0.5).softmax(0) @ values[d, :count] @ map_.T for d in range(draws)]
        )
        for count in range(1, tokens_ + 1)
    ]
    moved = [float((read[i] - read[i - 1]).norm(dim=-1).log().mean()) for i in range(8, tokens_)]  # from 8 tokens to 9
    expected = np.polyfit(np.log(np.arange(8, tokens_)), moved, 1)[0]
    assert attention_alone(seed=2, tokens=tokens_, dim=dim, draws=draws) == pytest.approx(expected)
