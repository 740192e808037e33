"""Attention logits without padding: what they are beside the padded ones, and that nothing as large is ever made."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from iclgd.bench import Bench, Run
from iclgd.learners.prompted import InContext
from iclgd.metrics import rows
from iclgd.metrics.compared import Compared, am, am_delta, contrast_am, contrast_am_centred
from iclgd.metrics.likeness import cosine, sim_am, sim_am_delta
from iclgd.metrics.nulls import isotropic_maps, other_query_maps
from iclgd.models import own
from iclgd.models.own import OwnLogits
from iclgd.models.traces import Predictor, Trace
from iclgd.nulls.untrained import OtherQuery, RandomDirections
from iclgd.prompts import Prompts
from tiny import tiny_subject, tokens

LONG, SHORT, MANY = 60, 4, 200
LABELS = ((5,), (6,))


class Largest(TorchDispatchMode):
    """The most numbers in one floating point tensor that was made."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        made = [one for one in tree_leaves(found) if isinstance(one, torch.Tensor) and one.is_floating_point()]
        self.numbers = max([self.numbers, *(one.untyped_storage().nbytes() // one.element_size() for one in made)])
        return found


def asked() -> Prompts:
    """One long query among many short ones."""
    long, short = tokens(1, LONG, seed=1).tolist(), tokens(MANY, SHORT, seed=2).tolist()
    queries = (*map(tuple, short[:7]), tuple(long[0]), *map(tuple, short[7:]))
    return Prompts((1,), (), (), queries, LABELS, (0,) * len(queries))


def traced(context: tuple[int, ...]) -> Trace:
    subject = tiny_subject("llama")
    return Predictor(subject, subject.encode(context)).trace(asked(), tokens=64)


def null_of(null: Any, zero: Trace, tuned: Trace) -> Trace:
    """A null in the place of a learner, whose trace it is given; drawn by seed 3."""
    bench = object.__new__(Bench)
    bench.__dict__.update(zero=zero, seed=3)
    return null.trace(bench, "learner", InContext(), Run(tuned))


def padded_by_hand(values: torch.Tensor, lengths: list[int]) -> torch.Tensor:
    return values * (torch.arange(values.shape[-1]) < torch.tensor(lengths)[:, None])[:, None, None, None]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=6), st.integers(0, 2**31), st.integers(1, 200), st.data())
def test_what_is_put_in_any_order_is_padded_again(lengths, seed, at_once, data):
    drawn = torch.randn(len(lengths), 3, 2, 4, 8, generator=torch.Generator().manual_seed(seed))
    wanted = padded_by_hand(drawn, lengths)[..., : max(lengths)]
    order = data.draw(st.permutations(range(len(lengths))))
    cut = data.draw(st.integers(0, len(lengths)))
    found = OwnLogits.empty(lengths, (3, 2, 4), torch.float32, drawn.device)
    for some in (order[:cut], order[cut:]):
        found.scatter(drawn[some], some)
    again = replace(found, entries=torch.full_like(found.entries, torch.nan))
    turned = replace(found, entries=torch.full_like(found.entries, torch.nan))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own, "AT_ONCE", at_once)
        for position in range(2):
            assert torch.equal(found.padded(position), wanted[:, :, position])
            for some in found.some_queries():
                assert torch.equal(found.padded(position, queries=some), wanted[some, :, position])
                again.put(found.padded(position, queries=some), position, queries=some)
            for some in found.some_layers():
                assert torch.equal(found.padded(position, some), wanted[:, some, position])
                turned.put(found.padded(position, some), position, some)
    assert torch.equal(again.entries, found.entries)
    assert torch.equal(turned.entries, found.entries)
    few = found.first(2)
    assert torch.equal(few.padded(1), wanted[:2, :, 1, :, : max(lengths[:2])])


def test_no_more_is_padded_at_once_than_is_allowed_but_one_query_or_one_layer(monkeypatch):
    one = OwnLogits.empty([3, 5, 5, 1], (3, 2, 4), torch.float32, torch.device("cpu"))
    for at_once, queries, layers in (
        (1, [1] * 4, [1] * 3),
        (120, [2, 2], [1] * 3),
        (160, [2, 2], [2, 1]),
        (10**9, [4], [3]),
    ):
        monkeypatch.setattr(own, "AT_ONCE", at_once)
        assert [part.stop - part.start for part in one.some_queries()] == queries
        assert [part.stop - part.start for part in one.some_layers()] == layers


def test_maps_of_a_trace_their_metrics_and_nulls_are_those_of_the_padded_ones(monkeypatch):
    traces = [traced(context) for context in ((1,), (1, 7, 8, 9), (1, 9, 8, 7), (1, 11, 12), (1, 13))]
    zero, icl, tuned, icl_wrong, tuned_wrong = traces
    monkeypatch.setattr(own, "AT_ONCE", 40_000)
    for position in range(2):
        seen = Compared(zero, icl, tuned, asked(), position, icl_wrong=icl_wrong, tuned_wrong=tuned_wrong)
        maps = [trace.logits[:, :, position].contiguous() for trace in traces]
        assert torch.equal(am(seen), sim_am(*maps[1:3]))
        assert torch.equal(am_delta(seen), sim_am_delta(*maps[:3]))
        read, learned = maps[1].double() - maps[3].double(), maps[2].double() - maps[4].double()
        torch.testing.assert_close(contrast_am(seen), cosine(read, learned).nanmean(-1), rtol=0, atol=1e-14)
        made = null_of(RandomDirections(), zero, tuned).logits[:, :, position]
        assert torch.equal(made, isotropic_maps(maps[0], maps[2], zero.keys[:, position], 3))
        other = other_query_maps(maps[0], maps[2], zero.keys[:, position], 3)
        assert torch.equal(null_of(OtherQuery(), zero, tuned).logits[:, :, position], other)


def test_nothing_is_as_large_as_the_padded_logits_of_all_queries(monkeypatch):
    """Of 201 queries one has 60 tokens and the others 4: padded, a trace's logits would be 294,264 numbers."""
    monkeypatch.setattr(own, "AT_ONCE", 20_000)
    monkeypatch.setattr(rows, "AT_ONCE", 20_000)
    with Largest() as largest:
        zero, icl, tuned = (traced(context) for context in ((1,), (1, 7, 8, 9), (1, 9, 8, 7)))
        for trace in (tuned, *(null_of(null, zero, tuned) for null in (RandomDirections(), OtherQuery()))):
            seen = Compared(zero, icl, trace, asked(), icl_wrong=zero, tuned_wrong=zero)
            for metric in (am, am_delta, contrast_am, contrast_am_centred):
                metric(seen)
    padded = (MANY + 1) * 3 * 2 * 4 * (LONG + 1)
    assert zero.logits.numel() == padded
    assert zero.own.entries.numel() < padded / 6
    assert largest.numbers < padded / 4, largest.numbers
