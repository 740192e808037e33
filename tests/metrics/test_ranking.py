"""Kendall's τ of attention to training tokens, against scipy and a loop over pairs."""

import itertools
import math
import time

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from iclgd.metrics.ranking import AT_ONCE, inversions, kendall, training_token_tau


def plain_tau(a, b) -> float:
    """Concordant minus discordant pairs, over all pairs (no ties)."""
    signs = [np.sign(a[i] - a[j]) * np.sign(b[i] - b[j]) for i, j in itertools.combinations(range(len(a)), 2)]
    return float(sum(signs)) / len(signs)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.lists(st.integers(1, 4), min_size=2, max_size=4), st.integers(1, 3))
def test_tau_ranks_each_demonstration_token_by_reading_and_by_training(seed, lengths, layers):
    """Separators between the demonstrations, and bos, are left out."""
    random = np.random.default_rng(seed)
    queries, dim, separator = 3, 5, 2
    spans, start = [], 1
    for length in lengths:
        spans.append(range(start, start + length))
        start += length + separator
    context = random.standard_normal((queries, layers, start))
    tested = random.standard_normal((queries, layers, dim))
    trained = [random.standard_normal((layers, length, dim)) for length in lengths]
    found = training_token_tau(
        torch.from_numpy(context), spans, torch.from_numpy(tested), [torch.from_numpy(t) for t in trained]
    )
    for q in range(queries):
        for layer in range(layers):
            read = [context[q, layer, i] for span in spans for i in span]
            learned = [float(token @ tested[q, layer]) for demo in trained for token in demo[layer]]
            assert found[q, layer].item() == pytest.approx(plain_tau(read, learned), abs=1e-9)
            assert found[q, layer].item() == pytest.approx(kendalltau(read, learned).statistic, abs=1e-9)


def test_a_softmax_changes_no_rank():
    """The papers' code puts both through one."""
    random = np.random.default_rng(0)
    a, b = random.standard_normal((2, 20))
    soft = [np.exp(x) / np.exp(x).sum() for x in (a, b)]
    assert kendalltau(*soft).statistic == kendalltau(a, b).statistic


@pytest.mark.parametrize("tokens", [0, 1])
def test_with_fewer_than_two_training_tokens_there_is_no_rank(tokens):
    spans = [range(1, 1 + tokens)] if tokens else []
    trained = [torch.randn(2, tokens, 4)] if tokens else []
    found = training_token_tau(torch.randn(3, 2, 5), spans, torch.randn(3, 2, 4), trained)
    assert found.shape == (3, 2)
    assert all(math.isnan(x) for x in found.flatten().tolist())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 70), st.sampled_from([2, 3, 10, 10**9]), st.sampled_from([1, 2, 5, 10**9]))
def test_tau_with_any_ties_is_scipys(seed, n, kinds_a, kinds_b):
    random = np.random.default_rng(seed)
    a, b = (random.integers(0, kinds, (6, n)).astype(float) for kinds in (kinds_a, kinds_b))
    b[3:] += a[3:]
    a[5, 0] = np.nan
    found = kendall(torch.from_numpy(a), torch.from_numpy(b)).numpy()
    wanted = np.array([kendalltau(x, y).statistic for x, y in zip(a, b, strict=True)])
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12, equal_nan=True)


@given(st.integers(0, 2**31), st.integers(1, 200))
def test_inversions_are_the_pairs_out_of_order(seed, n):
    order = np.array([np.random.default_rng(seed + i).permutation(n) for i in range(3)])
    wanted = [sum(a > b for a, b in itertools.combinations(row, 2)) for row in order]
    assert inversions(torch.from_numpy(order)).tolist() == wanted


def test_tau_does_not_depend_on_how_many_rows_are_ranked_at_once(monkeypatch):
    a, b = torch.randn(2, 50, 33).round(decimals=1).double()
    whole = kendall(a, b)
    monkeypatch.setitem(AT_ONCE, "cpu", 100)
    assert torch.equal(kendall(a, b), whole)


def test_many_rows_at_once_take_a_fraction_of_a_loop_over_scipy():
    """8 times less of one core's time when it was written; the loop cannot use more than one."""
    a, b = torch.randn(2, 600, 450).double()
    kendall(a, b)

    def best(work) -> float:
        return min(_seconds(work) for _ in range(3))

    loop = best(lambda: [kendalltau(x, y).statistic for x, y in zip(a[:60].numpy(), b[:60].numpy(), strict=True)])
    assert best(lambda: kendall(a, b)) < 10 * loop / 4


def _seconds(work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
