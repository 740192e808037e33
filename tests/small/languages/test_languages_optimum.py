"""Exact optima of membership episodes, against all episodes there are; and coordinates that change nothing."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from iclgd.small import learners, optimum
from iclgd.small.languages.coordinates import in_basis, rebased, whitening
from iclgd.small.languages.membership import Membership
from iclgd.small.languages.optimum import best_classifier, best_preconditioner, best_rate, moments
from iclgd.small.models import Transformer
from iclgd.tasks.regression import Episodes

seeds = st.integers(0, 2**31)


def random_task(seed, languages=1, dx=3, demos=2, signs=False):
    """Pools of two to four words, with the padding that pools of different sizes leave."""
    g = torch.Generator().manual_seed(seed)
    sizes = torch.randint(2, 5, (languages, 2, 2), generator=g)
    codes = torch.randn(languages, 2, 2, 4, dx, generator=g)
    codes *= (torch.arange(4) < sizes[..., None])[..., None]
    return Membership(codes, sizes, demos, signs)


def every_episode(task):
    """All episodes of a task with two demonstrations, each as often as its probability says."""
    rows = []
    for language, sizes in enumerate(task.sizes.tolist()):
        (others, members), (no, yes) = sizes
        pools = list(itertools.product(range(others), range(members)))
        asked = [(0, w) for w in range(no)] + [(1, w) for w in range(yes)]
        for (other, member), (label, word) in itertools.product(pools, asked):
            x = torch.stack([task.codes[language, 0, 0, other], task.codes[language, 0, 1, member]])
            weight = 1 / (len(task.sizes) * others * members * 2 * sizes[1][label])
            rows.append((x, task.codes[language, 1, label, word], 2.0 * label - 1, weight))
    x, query, target, weight = zip(*rows, strict=True)
    y = torch.tensor([-1.0, 1.0]).expand(len(rows), 2)[..., None]
    shaped = Episodes(torch.stack(x), y, torch.stack(query)[:, None], torch.tensor(target)[:, None, None])
    return Episodes(*(part.double() for part in shaped)), torch.tensor(weight, dtype=torch.float64)


@given(seeds, st.integers(1, 3))
def test_moments_are_those_of_all_episodes(seed, languages):
    task = random_task(seed, languages)
    episodes, weight = every_episode(task)
    assert float(weight.sum()) == pytest.approx(1)
    b = learners.averaging(episodes.x, episodes.y)[:, 0]
    found = moments(task)
    expected = torch.einsum("n,ni,nj->ij", weight, b, b)
    assert torch.allclose(found.b.mean(0), expected, atol=1e-12)
    assert torch.allclose(found.m.mean(0), weight @ b, atol=1e-12)
    query, target = episodes.query[:, 0], episodes.target[:, 0]
    assert torch.allclose(found.c.mean(0), weight @ (query * target), atol=1e-12)
    assert torch.allclose(found.q.mean(0), torch.einsum("n,ni,nj->ij", weight, query, query), atol=1e-12)


@given(seeds, st.integers(1, 3))
def test_rate_and_preconditioner_leave_no_gradient_over_all_episodes(seed, languages):
    task = random_task(seed, languages)
    episodes, weight = every_episode(task)
    b, query, target = learners.averaging(episodes.x, episodes.y)[:, 0], episodes.query[:, 0], episodes.target[:, 0, 0]
    features = b[:, :, None] * query[:, None, :]
    matrix = best_preconditioner(task)
    miss = (features * matrix).sum((1, 2)) - target
    size = max(1.0, float(matrix.abs().max()))  # of what is added up: words that are nearly alike make it large
    assert torch.einsum("n,n,nij->ij", weight, miss, features).abs().max() < 1e-10 * size
    answer, rate = (b * query).sum(1), best_rate(task)
    slope = float((weight * (rate * answer - target) * answer).sum())
    assert abs(slope) < 1e-10 or (rate == 0 and slope > 0)


@given(seeds)
def test_of_one_language_the_best_preconditioner_has_rank_one(seed):
    sizes = torch.linalg.svdvals(best_preconditioner(random_task(seed)))
    assert sizes[1] < 1e-8 * sizes[0]


def test_episodes_that_are_drawn_lead_to_the_same_preconditioner():
    task = random_task(3, 2, dx=2)
    drawn = task.draw(200_000, torch.Generator().manual_seed(0), dtype=torch.float64)
    assert torch.allclose(optimum.fitted_preconditioner(drawn), best_preconditioner(task), atol=0.05)


def test_pools_that_do_not_span_the_code_are_no_obstacle():
    task = random_task(0, dx=8)
    episodes, weight = every_episode(task)
    b, query = learners.averaging(episodes.x, episodes.y)[:, 0], episodes.query[:, 0]
    features = b[:, :, None] * query[:, None, :]
    miss = (features * best_preconditioner(task)).sum((1, 2)) - episodes.target[:, 0, 0]
    assert torch.einsum("n,n,nij->ij", weight, miss, features).abs().max() < 1e-8


@given(seeds)
def test_without_context_the_best_answer_is_the_direction_of_the_best_step(seed):
    task = random_task(seed)
    episodes, weight = every_episode(task)
    w = best_classifier(task)
    query, target = episodes.query[:, 0], episodes.target[:, 0, 0]
    assert (weight * (query @ w - target) @ query).abs().max() < 1e-10
    step = moments(task).m[0] @ best_preconditioner(task)
    assert abs(float(torch.cosine_similarity(step, w, dim=0)) - 1) < 1e-6


@pytest.mark.parametrize("layers", [1, 2])
def test_a_layer_in_white_coordinates_is_the_layer_on_the_codes(layers):
    task = random_task(5, 2)
    basis = whitening(task).double()
    model = Transformer(3, layers=layers, start=0.5)
    params = {name: value.double() for name, value in model.init(0).items()}
    on_codes, on_white = (
        part.draw(50, torch.Generator().manual_seed(1), 3, torch.float64)
        for part in (task, Membership(task.codes.double() @ basis[:-1, :-1].mT, task.sizes, task.k, task.signs))
    )
    answer = model.predict(params, on_codes)
    assert torch.allclose(model.predict(rebased(params, basis), on_white), answer, atol=1e-10)
    back = rebased(rebased(params, basis), torch.linalg.inv(basis))
    assert all(torch.allclose(back[name], params[name], atol=1e-10) for name in params)


def test_white_codes_are_white():
    task = random_task(7, 3)
    codes = in_basis(task, whitening(task)).codes.double().flatten(0, -2)
    assert torch.allclose(codes.mT @ codes / task.sizes.sum(), torch.eye(3).double(), atol=1e-5)


@pytest.mark.parametrize("queries", [1, 6, 7])
def test_many_queries_are_drawn_as_one_is(queries):
    """Even odds for either label, and every word of a label as likely as the next."""
    task = random_task(11, signs=True)
    drawn = task.draw(20_000, torch.Generator().manual_seed(0), queries=queries)
    assert drawn.query.shape == (20_000, queries, 3)
    sign = drawn.y[:, -1:]  # members come last
    for label, size in enumerate(task.sizes[0, 1].tolist()):
        assert ((drawn.target * sign > 0) == bool(label)).float().mean() == pytest.approx(0.5, abs=0.02)
        for word in range(size):
            share = (drawn.query == task.codes[0, 1, label, word]).all(-1).float().mean()
            assert share == pytest.approx(0.5 / size, abs=0.02)
    if queries == 6:
        assert (((drawn.target * sign) > 0).sum(1) == 3).all()


def test_where_a_step_only_hurts_the_best_rate_is_zero():
    task = random_task(3)
    turned = task.codes.clone()
    turned[:, 1] *= -1  # queries on the other side of the demonstrations' direction
    rates = [best_rate(task), best_rate(Membership(turned, task.sizes, task.k, task.signs))]
    assert min(rates) == 0
    assert max(rates) > 0
