"""Functions of queries in chunks."""

import pytest
import torch

from iclgd.metrics import rows
from iclgd.metrics.likeness import sim_am, sim_am_delta, sim_aou
from iclgd.metrics.nulls import isotropic, isotropic_maps, other_query, other_query_maps


def traces(count: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(count)
    return [torch.randn(count, 2, 3, 4, generator=generator) for _ in range(3)]


@pytest.mark.parametrize("at_once", [1, 24, 60, 7 * 24])
def test_likeness_in_chunks_of_queries_is_the_likeness_of_all_at_once(at_once, monkeypatch):
    zero, icl, tuned = traces(7)
    whole = sim_aou(zero[:, :, 0], icl[:, :, 0], tuned[:, :, 0]), sim_am(icl, tuned), sim_am_delta(zero, icl, tuned)
    monkeypatch.setattr(rows, "AT_ONCE", at_once)
    parts = sim_aou(zero[:, :, 0], icl[:, :, 0], tuned[:, :, 0]), sim_am(icl, tuned), sim_am_delta(zero, icl, tuned)
    for one, other in zip(whole, parts, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("at_once", [1, 60])
def test_nulls_in_chunks_of_queries_are_those_of_all_at_once(at_once, monkeypatch):
    zero, _, tuned = traces(7)
    keys = torch.arange(4) < torch.tensor([1, 2, 3, 4, 4, 2, 3])[:, None]

    def nulls() -> list[torch.Tensor]:
        masked = zero * keys[:, None, None], tuned * keys[:, None, None]
        return [
            isotropic(zero, tuned, 3),
            isotropic_maps(*masked, keys, 3),
            other_query(zero, tuned, 3),
            other_query_maps(*masked, keys, 3),
        ]

    whole = nulls()
    monkeypatch.setattr(rows, "AT_ONCE", at_once)
    for one, other in zip(whole, nulls(), strict=True):
        assert torch.equal(one, other)


def test_no_chunk_is_larger_than_what_is_allowed(monkeypatch):
    seen = []

    @rows.row_wise
    def watched(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
        seen.append((one.numel(), len(two)))
        return one.sum((1, 2))

    monkeypatch.setattr(rows, "AT_ONCE", 25)
    values = torch.arange(70.0).view(7, 5, 2)
    assert torch.equal(watched(values, torch.arange(7)), values.sum((1, 2)))
    assert seen == [(20, 2), (20, 2), (20, 2), (10, 1)]


def test_no_query_gives_no_value():
    assert sim_aou(*(torch.zeros(0, 2, 3) for _ in range(3))).shape == (0, 2)
