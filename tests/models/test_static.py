"""One change of weights for all queries: what is fitted, of which rank, in which blocks."""

import pytest
import torch

from iclgd.models.faithful import residual
from iclgd.models.patches import patches, read
from iclgd.models.static import Static, fit, fitted
from tiny import tiny_subject, tokens

BOS = (1,)


def drawn(queries: int = 6, inputs: int = 20, outputs: int = 9, seed: int = 0):
    random = torch.Generator().manual_seed(seed)
    sizes = ((queries, inputs), (queries, outputs))
    return tuple(torch.randn(*size, generator=random, dtype=torch.float64) for size in sizes)


def asked(subject, count: int):
    queries = [BOS + tuple(tokens(1, 4 + i, i)[0].tolist()) for i in range(count)]
    context = subject.encode(BOS + tuple(tokens(1, 15, 99)[0].tolist()))
    return queries, read(subject, [query[1:] for query in queries], context)


def test_the_fit_is_the_minimum_of_the_ridge():
    """∇ = 0: ΔW (GᵀG + λ) = DᵀG with λ = ridge · mean ‖g‖²."""
    g, change = drawn()
    found = fitted(g, change, ridge=0.3)
    level = 0.3 * g.square().sum(-1).mean() * torch.eye(20, dtype=torch.float64)
    torch.testing.assert_close(found @ (g.T @ g + level), change.T @ g, rtol=0, atol=1e-11)


def test_without_a_ridge_every_calibration_query_gets_what_it_wants():
    g, change = drawn()
    torch.testing.assert_close(g @ fitted(g, change, 0.0).T, change, rtol=0, atol=1e-11)


@pytest.mark.parametrize("rank", [1, 3])
def test_a_fit_of_low_rank_is_the_best_of_its_rank_among_projections_of_the_whole(rank):
    g, change = drawn()
    whole, low = fitted(g, change, 0.1), fitted(g, change, 0.1, rank)
    assert torch.linalg.matrix_rank(low) == rank
    lost = (g @ (whole - low).T).norm()
    singular = torch.linalg.svdvals(g @ whole.T)
    torch.testing.assert_close(lost, singular[rank:].norm())  # Eckart and Young: no other of the rank loses less


def test_a_rank_that_the_fit_has_anyway_changes_nothing():
    g, change = drawn()
    assert torch.equal(fitted(g, change, 0.1, 6), fitted(g, change, 0.1))


def test_queries_that_are_alike_do_not_break_the_fit():
    g, change = drawn()
    twice = fitted(torch.cat([g, g]), torch.cat([change, change]), 0.0)
    torch.testing.assert_close(twice, fitted(g, change, 0.0), rtol=0, atol=1e-9)


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "gemma3"])
def test_fitted_on_one_query_without_a_ridge_it_is_that_query_s_own_patch(architecture):
    subject = tiny_subject(architecture)
    with subject.in_precision(torch.float64):
        queries, target = asked(subject, 1)
        own = patches(subject, queries, target, "C")
        for one, other in zip(own, fit(subject, queries, target, Static(ridge=0)), strict=True):
            torch.testing.assert_close(one.of(0).last, other.last, rtol=0, atol=1e-10)


def test_without_a_ridge_one_matrix_is_exact_for_all_the_queries_it_was_fitted_on():
    """As many as there are, as long as their inputs are independent; in blocks without a norm behind the MLP."""
    subject = tiny_subject("llama")
    with subject.in_precision(torch.float64):
        queries, target = asked(subject, 5)
        added = fit(subject, queries, target, Static(ridge=0))
        for i, query in enumerate(queries):
            left = residual(subject, query, target.of([i]), added)
            assert left.blocks.max() <= 1e-9
            assert left.gap > 0.5


def test_a_vector_is_the_mean_of_what_is_lacking_and_exact_for_one_query():
    subject = tiny_subject("qwen3")
    with subject.in_precision(torch.float64):
        queries, target = asked(subject, 3)
        alone = fit(subject, queries[:1], target.of([0]), Static("vector"))
        assert residual(subject, queries[0], target.of([0]), alone).blocks.max() <= 1e-12
        first = [fit(subject, [q], target.of([i]), Static("vector"))[0].bias for i, q in enumerate(queries)]
        together = fit(subject, queries, target, Static("vector"))[0].bias
        torch.testing.assert_close(together, torch.stack(first).mean(0), rtol=0, atol=1e-12)


def test_only_the_blocks_asked_for_are_changed():
    subject = tiny_subject("llama")
    queries, target = asked(subject, 3)
    found = fit(subject, queries, target, Static(), layers=[1])
    assert [one.last is None for one in found] == [True, False, True]
    assert found[1].last.norm() > 0
