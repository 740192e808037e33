"""Batches by what memory holds: halved where it runs out, never fatal, and the numbers do not depend on it."""

from itertools import combinations, pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from iclgd.bench import Bench
from iclgd.errors import Refusal
from iclgd.models import budget
from iclgd.models.budget import LEAST, MOST, attempt, batch_tokens, batches, bytes_per_token
from iclgd.models.patches import read
from iclgd.models.subject import Subject
from iclgd.models.traces import Predictor
from iclgd.prompts import Prompts
from iclgd.spec import EpisodeSpec, PromptSpec
from iclgd.tasks.episodes import load_episode
from little import little_task
from tiny import tiny_subject, tokens

CPU_SAYS = "[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes."


def asked(count: int = 12) -> Prompts:
    ids = tokens(count, 30, seed=3).tolist()
    queries = tuple(tuple(row[: 1 + (7 * i) % 30]) for i, row in enumerate(ids))
    return Prompts((1,), (), (), queries, ((5,), (6,)), (0,) * count, blanks=((7, 8), (9,)))


def small_memory(monkeypatch, most: int, error: RuntimeError) -> list[int]:
    """A subject whose passes run out of memory beyond ``most`` tokens; returns the sizes that were tried."""
    run, tried = Subject.run, []

    def limited(subject, ids, *given, **more):
        tried.append(ids.numel())
        if ids.numel() > most:
            raise error
        return run(subject, ids, *given, **more)

    monkeypatch.setattr(Subject, "run", limited)
    return tried


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA out of memory."), RuntimeError(CPU_SAYS)])
def test_a_batch_that_does_not_fit_is_halved_until_it_does_and_every_query_is_answered(error, monkeypatch):
    subject, prompts, told = tiny_subject("llama"), asked(), []
    whole = Predictor(subject, None).trace(prompts)
    tried = small_memory(monkeypatch, 70, error)
    found = Predictor(subject, None).trace(prompts, 1000, told.append)
    too_large = [size for size in tried if size > 70]
    assert found.lowered == too_large[-1] // 2
    assert all(size < 1000 for size in too_large[1:])
    assert sum(told) == len(prompts.queries)
    for name in ("scores", "blanks", "outputs", "logits", "context", "vectors", "blocks"):
        torch.testing.assert_close(getattr(found, name), getattr(whole, name), rtol=1e-4, atol=1e-5)
    assert torch.equal(found.keys, whole.keys)
    assert whole.lowered is None


def test_a_query_that_does_not_fit_alone_is_refused_in_a_sentence(monkeypatch):
    subject = tiny_subject("llama")
    small_memory(monkeypatch, 20, torch.OutOfMemoryError("CUDA out of memory."))
    with pytest.raises(Refusal, match="a single query does not fit the memory of cpu"):
        Predictor(subject, None).trace(asked())


def test_another_error_is_not_taken_for_a_lack_of_memory():
    def broken() -> None:
        raise RuntimeError("shapes do not fit")

    with pytest.raises(RuntimeError, match="shapes do not fit"):
        attempt(broken)


def test_the_record_says_that_batches_were_made_smaller(tmp_path, monkeypatch):
    episode = load_episode(str(little_task(tmp_path)), EpisodeSpec(k=2, queries=6))
    bench = Bench(tiny_subject("llama"), episode, PromptSpec(), 0, load_episode, lambda what, done: None, 400)
    assert "batch_tokens_lowered_to" not in bench.facts()
    small_memory(monkeypatch, 60, torch.OutOfMemoryError("CUDA out of memory."))
    assert bench.zero.scores.shape == (6, 2)
    assert 0 < bench.facts()["batch_tokens_lowered_to"] < 60
    assert bench.batch == bench.facts()["batch_tokens_lowered_to"]  # what comes next starts there


def test_batches_are_as_large_as_free_memory_holds(monkeypatch):
    layout, cpu = tiny_subject("llama").layout, torch.device("cpu")
    sizes = []
    for free in (0, 2**21, 2**22, 2**60, None):
        monkeypatch.setattr(budget, "free_memory", lambda device, free=free: free)
        sizes.append(batch_tokens(layout, torch.float32, cpu, 500, 20))
    assert sizes[0] == LEAST
    assert sizes[-2:] == [MOST["cpu"], MOST["cpu"]]
    assert LEAST < sizes[1] < sizes[2] < MOST["cpu"]


def test_a_prefix_whose_scores_are_never_whole_costs_nothing_by_token():
    layout, cpu = tiny_subject("llama").layout, torch.device("cpu")

    def cost(dtype, context):
        return bytes_per_token(layout, dtype, cpu, context, 20)

    assert cost(torch.float32, 4000) == cost(torch.float32, 500)
    assert cost(torch.float64, 4000) > cost(torch.float64, 500)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=60), st.integers(1, 200), st.integers(0, 50))
def test_batches_hold_every_query_once_and_no_more_tokens_than_allowed(lengths, tokens, cost):
    made = batches(lengths, tokens, cost)
    assert sorted(i for batch in made for i in batch) == list(range(len(lengths)))
    assert all(len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= tokens for batch in made)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=7), st.integers(40, 200), st.integers(0, 50))
def test_no_other_cut_of_the_sorted_queries_takes_less(lengths, tokens, cost):
    def taken(parts) -> int:
        return sum(len(part) * max(part) + cost for part in parts)

    sizes, n = sorted(lengths), len(lengths)
    cuts = [(0, *inner, n) for count in range(n) for inner in combinations(range(1, n), count)]
    ways = [[sizes[a:b] for a, b in pairwise(cut)] for cut in cuts]
    allowed = [way for way in ways if all(len(part) * max(part) <= tokens for part in way)]
    found = [[lengths[i] for i in batch] for batch in batches(lengths, tokens, cost)]
    assert taken(found) == min(map(taken, allowed))


def test_a_worker_counts_on_its_own_share_of_a_gpu(monkeypatch):
    """Ten of which six are free; it holds three, of which one is used."""
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _device: (600, 1000))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _device: 300)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _device: 100)
    gpu = torch.device("cuda")
    assert budget.free_memory(gpu) == 600 + 200
    for share, free in (("0.5", 200 + 200), ("0.35", 50 + 200), ("0.2", 100), ("0.05", 0)):
        monkeypatch.setenv(budget.GPU_SHARE, share)
        assert budget.free_memory(gpu) == free


def test_a_worker_cannot_take_more_than_its_share_of_a_gpu(monkeypatch):
    kept: list[tuple[float, int]] = []
    monkeypatch.setattr(
        torch.cuda, "set_per_process_memory_fraction", lambda share, device: kept.append((share, device))
    )
    gpu = torch.device("cuda")
    budget.keep_to_share(gpu)
    assert kept == []  # one that has a GPU for itself
    monkeypatch.setenv(budget.GPU_SHARE, "0.25")
    budget.keep_to_share(torch.device("cpu"))
    assert kept == []
    budget.keep_to_share(gpu)  # torch wants a number here, and refuses a device without one
    budget.keep_to_share(torch.device("cuda:1"))
    assert kept == [(0.25, 0), (0.25, 1)]


def little_room(monkeypatch, model, most: int) -> list[int]:
    """A model that runs out of memory beyond ``most`` tokens at once; returns the sizes that were tried."""
    forward, tried = model.forward, []

    def limited(ids, *given, **more):
        tried.append(ids.numel())
        if ids.numel() > most:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return forward(ids, *given, **more)

    monkeypatch.setattr(model, "forward", limited)
    return tried


def test_a_context_whose_chunks_do_not_fit_is_encoded_in_smaller_ones(monkeypatch):
    subject, ids = tiny_subject("llama"), tokens(1, 50, seed=5)[0].tolist()
    whole = subject.encode(ids)
    tried = little_room(monkeypatch, subject.model, 13)
    found = subject.encode(ids)
    assert tried == [50, 25, *[12] * 4, 2]
    assert found.length == 50
    for mine, all_at_once in zip(found.layers, whole.layers, strict=True):
        for one, other in zip(mine, all_at_once, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    little_room(monkeypatch, subject.model, 0)
    with pytest.raises(Refusal, match="a context of 50 tokens does not fit the memory of cpu"):
        subject.encode(ids)


def test_reading_at_last_tokens_is_halved_where_it_does_not_fit(monkeypatch):
    subject, queries = tiny_subject("llama"), asked(6).queries
    whole = read(subject, queries, None)
    tried = little_room(monkeypatch, subject.model, 40)
    found = read(subject, queries, None)
    assert max(tried) > 40
    torch.testing.assert_close(found.logits, whole.logits, rtol=1e-4, atol=1e-5)
    little_room(monkeypatch, subject.model, 3)
    with pytest.raises(Refusal, match="a single query does not fit the memory of cpu"):
        read(subject, queries, None)
