"""Fast ways of attention, each beside its plain twin: rows behind a prefix, and a context encoded in chunks."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from iclgd.models import attention
from iclgd.models.attention import kernel_for, masked, merged, scores_of, summed_scores, weighted, weights_of
from iclgd.models.budget import FUSED_CHUNK, chunk_tokens
from iclgd.models.subject import Captured, Subject
from tiny import ARCHITECTURES, REGISTERED, tiny_subject, tokens

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]
SINGLE = {"xglm", "gpt-oss"}  # they do not run in float64
NARROW = {"mistral", "gemma3", "gemma3-sees", "gpt-oss", "cohere2"}  # windows of 8 hide a prefix in some layers
CAPPED = {"gemma2"}


def apart(found: Tensor, wanted: Tensor) -> float:
    """The largest difference, relative to the largest entry."""
    return float((found.double() - wanted.double()).abs().max() / wanted.double().abs().max().clamp_min(1e-30))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype, bound", [(torch.float32, 1e-6), (torch.bfloat16, 0.02)])
@settings(max_examples=20, deadline=None)
@given(st.data())
def test_merging_by_log_sum_exp_is_the_softmax_over_prefix_and_own_tokens(device, dtype, bound, data):
    def draw(low, high):
        return data.draw(st.integers(low, high))

    torch.manual_seed(draw(0, 2**31))
    batch, keyheads, groups, own, length, dim = draw(1, 4), draw(1, 3), draw(1, 3), draw(1, 9), draw(64, 90), 16
    query = torch.randn(batch, keyheads * groups, own, dim, device=device)
    key, value = torch.randn(2, batch, keyheads, own, dim, device=device)
    keys, values = torch.randn(2, 1, keyheads, length, dim, device=device)
    sinks = torch.randn(keyheads * groups, device=device) if data.draw(st.booleans()) else None
    hidden = torch.full((1, 1, own, own), torch.finfo(dtype).min, device=device).triu(1)
    query, key, value, keys, values = (part.to(dtype) for part in (query, key, value, keys, values))
    kernel = kernel_for(query, length)
    assert kernel is not None
    scores = masked(scores_of(query, key, None, 0.3), hidden.to(dtype))
    found = merged(query, scores, value, (keys, values), 0.3, sinks, kernel)
    exact = [part.double() for part in (query, key, value, keys, values)]
    wide = masked(scores_of(exact[0], exact[1], (exact[3], exact[4]), 0.3), hidden.double())
    twin = weighted(weights_of(wide, sinks, torch.float64), exact[2], (exact[3], exact[4]))
    assert found.dtype == dtype
    assert apart(found, twin) <= bound


def test_in_bfloat16_a_prefix_has_its_share_to_the_precision_of_what_comes_out():
    """206 equal keys and one more: the log of 206 in bfloat16 would be 1.6% off, the share of the one as well."""
    length, dim = 206, 16
    query, nothing = torch.zeros(1, 1, 1, dim).bfloat16(), torch.zeros(1, 1, length, dim).bfloat16()
    kernel = kernel_for(query, length)
    assert kernel is not None
    own = torch.zeros(1, 1, 1, 1).bfloat16()
    found = merged(query, own, torch.ones_like(query), (nothing, nothing), 1.0, None, kernel)
    assert apart(found, torch.full_like(found, 1 / (length + 1))) <= 0.005


def test_a_mask_of_the_last_keys_hides_only_among_them_with_and_without_a_gradient():
    scores, mask = torch.randn(2, 3, 4, 9), torch.full((1, 1, 4, 4), -1e9).triu(1)
    twin = scores + torch.nn.functional.pad(mask, (5, 0))
    assert torch.equal(masked(scores.clone().requires_grad_(), mask), twin)
    assert torch.equal(masked(scores.clone(), mask), twin)


def test_scores_summed_over_heads_are_the_sum_of_every_heads_scores():
    query, keys = torch.randn(2, 6, 3, 5).double(), torch.randn(1, 3, 11, 5).double()
    twin = torch.einsum("bhqd,hkd->bqk", query, keys[0].repeat_interleave(2, 0))
    assert apart(summed_scores(query, keys), twin) <= 1e-12


def both_ways(subject: Subject, monkeypatch, length: int = 70) -> tuple[Captured, Captured, int]:
    """The same pass through the fused kernel and without it, and how many layers the kernel served."""
    prefix, queries = subject.encode(tokens(1, length, seed=1)[0].tolist()), tokens(3, 7, seed=2)
    rows, served = torch.arange(7).expand(3, -1), []
    plain = attention._on_cpu
    monkeypatch.setattr(attention, "_on_cpu", lambda *given: served.append(1) or plain(*given))
    monkeypatch.setitem(attention.FUSED_FROM, "cpu", math.inf)
    explicit = subject.run(queries, rows, prefix)
    assert not served
    monkeypatch.setitem(attention.FUSED_FROM, "cpu", 1)
    return subject.run(queries, rows, prefix), explicit, len(served)


@pytest.mark.parametrize("architecture", REGISTERED)
def test_a_pass_through_the_fused_kernel_is_the_pass_with_every_score_in_memory(architecture, monkeypatch):
    subject = tiny_subject(architecture)
    fused, explicit, served = both_ways(subject, monkeypatch)
    for name in ("vocabulary", "outputs", "logits", "context", "vectors", "blocks"):
        assert apart(getattr(fused, name), getattr(explicit, name)) <= 2e-6, name
    layers = subject.layout.layers
    if architecture in NARROW | CAPPED:
        assert served < layers  # a window hides the prefix from some rows, a soft cap is not what the kernel computes
    else:
        assert served == layers


def test_a_window_as_long_as_all_there_is_hides_nothing(monkeypatch):
    subject = tiny_subject("mistral")
    _, _, narrow = both_ways(subject, monkeypatch)
    subject.model.config.sliding_window = 77  # 70 tokens of prefix and 7 of their own
    _, _, wide = both_ways(subject, monkeypatch)
    subject.model.config.sliding_window = 76
    _, _, almost = both_ways(subject, monkeypatch)
    assert (narrow, wide, almost) == (0, 3, 0)


def test_float64_and_gradients_are_left_to_the_explicit_way():
    query = torch.randn(1, 2, 3, 16)
    assert kernel_for(query, 500) is not None
    assert kernel_for(query.double(), 500) is None
    assert kernel_for(query.clone().requires_grad_(), 500) is None
    assert kernel_for(query, 1) is None


@pytest.mark.parametrize(
    "architecture, precision",
    [(name, "float32") for name in ARCHITECTURES] + [(name, "float64") for name in REGISTERED if name not in SINGLE],
)
def test_a_context_encoded_in_chunks_is_the_context_encoded_in_one_pass(architecture, precision):
    subject = tiny_subject(architecture, dtype=getattr(torch, precision))
    ids = tokens(1, 41, seed=5)[0].tolist()
    whole, parts = subject.encode(ids, chunk=41), subject.encode(ids, chunk=9)
    bound = 1e-6 if precision == "float32" else 1e-12
    for layer, (one, other) in enumerate(zip(whole.layers, parts.layers, strict=True)):
        for a, b in zip(one, other, strict=True):
            assert apart(b, a) <= bound, layer


class Largest(TorchDispatchMode):
    """The number of entries of the largest tensor that is made."""

    entries = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        if isinstance(made, Tensor):
            self.entries = max(self.entries, made.untyped_storage().nbytes() // made.element_size())
        return made


@pytest.mark.parametrize("architecture", REGISTERED)
def test_later_chunks_of_a_context_see_the_earlier_ones_through_the_fused_kernel(architecture, monkeypatch):
    subject, served = tiny_subject(architecture), []
    ids = tokens(1, 70, seed=5)[0].tolist()
    plain = attention._on_cpu
    monkeypatch.setattr(attention, "_on_cpu", lambda *given: served.append(given[1].shape[2]) or plain(*given))
    monkeypatch.setitem(attention.FUSED_FROM, "cpu", 1)
    whole = subject.encode(ids, chunk=70)
    assert not served
    parts = subject.encode(ids, chunk=23)
    for one, other in zip(whole.layers, parts.layers, strict=True):
        assert max(apart(b, a) for a, b in zip(one, other, strict=True)) <= 2e-6
    layers = subject.layout.layers
    if subject.layout.sees_all(70):
        assert served == [before for before in (23, 46, 69) for _ in range(layers)]
    else:
        assert architecture in NARROW | CAPPED
        assert len(served) < 3 * layers
    monkeypatch.setitem(attention.FUSED_FROM, "cpu", math.inf)
    assert apart(subject.encode(ids, chunk=23).layers[-1][0], parts.layers[-1][0]) <= 2e-6


def chunk_of(subject: Subject, length: int) -> int:
    return chunk_tokens(subject.layout, subject.dtype, subject.device, length, subject.capture == "registered")


@pytest.mark.parametrize("length", [4096, pytest.param(32768, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])  # through the fused kernel and without it
def test_no_square_of_scores_is_ever_in_memory(length, dtype, monkeypatch):
    subject = tiny_subject("llama", dtype=dtype)
    monkeypatch.setattr("iclgd.models.budget.CHUNK", 2**25)
    chunk = chunk_of(subject, length)
    assert chunk < length // 4
    with Largest() as largest:
        prefix = subject.encode(tokens(1, length)[0].tolist())
        queries, rows = tokens(8, 6), torch.tensor([[4, 5]] * 8)
        subject.run(queries, rows, prefix)
    heads = subject.layout.heads
    assert largest.entries <= heads * chunk * (chunk + 1 if dtype == torch.float32 else length)
    assert largest.entries < heads * length * length / 8
    assert prefix.length == length


def test_a_chunk_is_the_whole_of_a_short_context():
    """So that numbers of short contexts do not depend on free memory."""
    subject = tiny_subject("llama")
    assert chunk_of(subject, 500) >= 500


@pytest.mark.parametrize(
    "architecture, dtype, quick",
    [
        ("llama", torch.float32, True),
        ("llama", torch.float64, False),  # the kernel is not precise enough
        ("mistral", torch.float32, False),  # a window hides the earlier chunks from some rows
        ("gemma2", torch.float32, False),  # so it does, and a soft cap is not what the kernel computes
        ("bloom", torch.float32, False),  # captured as its own code attends, every score in memory
    ],
)
def test_chunks_of_a_long_context_are_long_where_no_score_over_earlier_ones_is_in_memory(
    architecture, dtype, quick, monkeypatch
):
    subject = tiny_subject(architecture, dtype=dtype)
    scores = 2**29 // (4 * subject.layout.heads * 4)
    monkeypatch.setattr("iclgd.models.budget.free_memory", lambda _device: None)
    assert chunk_of(subject, 100_000) == (512 if quick else max(64, scores // 100_000))
    assert chunk_of(subject, math.isqrt(scores)) >= math.isqrt(scores)
    monkeypatch.setitem(FUSED_CHUNK, "cpu", 10**9)
    assert chunk_of(subject, 100_000) == (math.isqrt(scores) if quick else max(64, scores // 100_000))
    monkeypatch.setattr("iclgd.models.budget.free_memory", lambda _device: 2**20)
    assert 64 <= chunk_of(subject, 100_000) <= 200
