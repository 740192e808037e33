"""Traces: what is kept at the named positions, and that it is what the model did."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from iclgd.errors import Refusal
from iclgd.learners.prompted import InContext, ZeroShot
from iclgd.metrics.updates import update_size
from iclgd.models.subject import Subject
from iclgd.models.traces import Predictor, log_probabilities
from iclgd.prompts import Demo, Prompts
from tiny import tiny_model, tiny_subject, tiny_tokenizer, tokens

QUERIES = ((10, 11, 12), (13, 14, 15, 16, 17), (18,))


def prompts(labels=((5,), (6,)), bos=(1,)) -> Prompts:
    demos = (Demo((20, 21, *labels[0]), labels[0]), Demo((22, *labels[1]), labels[1]))
    return Prompts(bos, demos, (9, 9), QUERIES, labels, (0, 1, 1))


def log_probability(model, context, label) -> float:
    """Mean log p of the label's tokens, one plain forward pass, from the definition."""
    ids = torch.tensor([[*context, *label]])
    with torch.no_grad():
        logs = model(ids).logits[0].log_softmax(-1)
    return sum(float(logs[len(context) - 1 + i, token]) for i, token in enumerate(label)) / len(label)


@pytest.mark.parametrize("labels", [((5,), (6,)), ((5, 7), (6,)), ((5,), (6, 7, 8))], ids=["single", "first", "last"])
@pytest.mark.parametrize("bos", [(1,), ()], ids=["bos", "no-bos"])
@pytest.mark.parametrize("learner", [ZeroShot(), InContext()], ids=["zero-shot", "icl"])
def test_label_scores_are_mean_log_probabilities_of_the_label_words(labels, bos, learner):
    subject, asked = tiny_subject("llama"), prompts(labels, bos)
    with learner.learn(subject, asked) as predictor:
        trace = predictor.trace(asked)
    context = asked.context if isinstance(learner, InContext) else bos
    model = tiny_model("llama")
    for q, query in enumerate(QUERIES):
        for i, label in enumerate(labels):
            assert float(trace.scores[q, i]) == pytest.approx(log_probability(model, context + query, label), abs=1e-5)


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "bloom"])
def test_outputs_are_the_attention_after_its_projection_at_the_prompts_last_token_and_at_the_label(architecture):
    subject, asked = tiny_subject(architecture), prompts()
    with InContext().learn(subject, asked) as predictor:
        trace = predictor.trace(asked)
    for q, query in enumerate(QUERIES):
        ids = torch.tensor([[*asked.context, *query, 5]])
        seen: list[torch.Tensor] = []
        handles = [
            out.register_forward_hook(lambda _m, _a, y, seen=seen: seen.append(y[0])) for out in subject.layout.outs
        ]
        with torch.no_grad():
            subject.model(ids)
        for handle in handles:
            handle.remove()
        for layer, out in enumerate(seen):
            torch.testing.assert_close(trace.outputs[q, layer], out[-2:], rtol=1e-4, atol=1e-5)


def test_keys_are_the_querys_own_tokens_and_at_the_label_the_label_word_too():
    subject, asked = tiny_subject("llama"), prompts()
    with ZeroShot().learn(subject, asked) as predictor:
        trace = predictor.trace(asked)
    assert trace.keys.sum(-1).tolist() == [[len(q), len(q) + 1] for q in QUERIES]
    assert trace.logits.shape == (3, 3, 2, 4, 6)
    assert bool((trace.logits.permute(0, 2, 4, 1, 3)[~trace.keys] == 0).all())
    assert bool((trace.logits.permute(0, 2, 4, 1, 3)[trace.keys] != 0).all())


def test_accuracy_counts_queries_whose_best_scored_label_is_the_right_one():
    subject, asked = tiny_subject("llama"), prompts()
    with ZeroShot().learn(subject, asked) as predictor:
        trace = predictor.trace(asked)
    right = [int(scores.argmax()) == answer for scores, answer in zip(trace.scores, asked.answers, strict=True)]
    assert trace.accuracy == pytest.approx(sum(right) / 3)


def test_without_demonstrations_reading_changes_nothing():
    subject = tiny_subject("qwen3")
    asked = Prompts((1,), (), (9,), QUERIES, ((5,), (6,)), (0, 1, 1))
    with ZeroShot().learn(subject, asked) as zero, InContext().learn(subject, asked) as icl:
        before, after = zero.trace(asked), icl.trace(asked)
    assert torch.equal(before.outputs, after.outputs)
    assert float(update_size(before.outputs[:, :, 0], after.outputs[:, :, 0]).max()) == 0


def test_progress_is_told_of_every_query_once():
    subject, told = tiny_subject("llama"), []
    Predictor(subject, None).trace(prompts(), tokens=6, progress=told.append)
    assert sum(told) == len(QUERIES)
    assert len(told) > 1


def test_numbers_that_overflow_on_a_query_are_refused_rather_than_reported():
    model = tiny_model("llama")
    model.model.embed_tokens.weight.data[18] = torch.inf
    subject = Subject(model, tiny_tokenizer(), "overflowing")
    with pytest.raises(Refusal, match="overflowing gives NaN or infinite numbers in float32"):
        Predictor(subject, None).trace(prompts())


@given(st.floats(0.01, 100), st.integers(0, 2**31))
def test_update_size_is_the_length_of_the_change_over_the_length_before(factor, seed):
    before = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    change = torch.nn.functional.normalize(torch.randn_like(before), dim=-1)
    length = torch.linalg.vector_norm(before, dim=-1, keepdim=True)
    size = update_size(before, before + factor * length * change)
    assert torch.allclose(size, torch.full_like(size, factor), rtol=1e-9)


def test_update_size_of_a_zero_output_is_undefined():
    assert bool(update_size(torch.zeros(1, 1, 3), torch.ones(1, 1, 3)).isnan().all())


def test_ids_are_padded_on_the_right():
    assert tiny_subject("llama").tensor([[4, 5, 6], [7]]).tolist() == [[4, 5, 6], [7, 0, 0]]


def test_the_context_length_is_known_where_positions_are_bounded():
    assert tiny_subject("llama").room == 256
    assert tiny_subject("gpt2").room == 256
    assert tiny_subject("bloom").room is None


def test_a_query_behind_demonstrations_longer_than_a_window_keeps_its_own_positions():
    """Gemma-3's windowed layers see 8 tokens: far demonstrations change later layers, never the window's own."""
    subject, asked = tiny_subject("gemma3"), prompts()
    far, near = tokens(1, 40, seed=1)[0].tolist(), tokens(1, 8, seed=2)[0].tolist()
    traces = [Predictor(subject, subject.encode([*start, *near])).trace(asked) for start in (far, far[::-1])]
    torch.testing.assert_close(traces[0].outputs[:, 0], traces[1].outputs[:, 0], rtol=1e-5, atol=1e-6)
    assert not torch.allclose(traces[0].outputs[:, 1], traces[1].outputs[:, 1], rtol=1e-3)


@pytest.mark.parametrize("labels", [((5,), (6,)), ((5, 7), (6,)), ((5, 7), (5, 8, 4), (6,))])
def test_queries_without_content_are_scored_like_any_other(labels):
    subject, asked = tiny_subject("llama"), replace(prompts(labels), blanks=((30, 31), (32,)))
    with InContext().learn(subject, asked) as predictor:
        trace = predictor.trace(asked)
    model = tiny_model("llama")
    for b, blank in enumerate(asked.blanks):
        for i, label in enumerate(labels):
            wanted = log_probability(model, asked.context + blank, label)
            assert float(trace.blanks[b, i]) == pytest.approx(wanted, abs=1e-5)
    assert trace.blanks.shape == (2, len(labels))
    assert len(trace.scores) == len(trace.outputs) == len(QUERIES)


@pytest.mark.parametrize("labels, passes", [(((5,), (6,)), 1), (((5, 7), (6,), (6, 8)), 2)], ids=["one", "many"])
def test_labels_and_queries_without_content_share_their_passes(labels, passes, monkeypatch):
    """One pass that is captured; one more for all labels, where a label has more than one token."""
    subject, asked = tiny_subject("llama"), replace(prompts(labels), blanks=((30, 31), (32,)))
    run, counted = Subject.run, []
    monkeypatch.setattr(Subject, "run", lambda *given, **more: counted.append(1) or run(*given, **more))
    Predictor(subject, None).trace(asked)
    assert len(counted) == passes


@pytest.mark.parametrize("architecture", ["llama", "gemma2", "bloom"])
def test_attention_to_the_context_is_kept_of_the_first_queries_alone(architecture):
    subject, asked = tiny_subject(architecture), prompts()
    with InContext().learn(subject, asked) as predictor:
        every, first, none = (predictor.trace(asked, ranked=count) for count in (3, 2, 0))
    assert every.context.shape[::3] == (3, len(asked.context))
    assert [len(trace.context) for trace in (first, none)] == [2, 0]
    assert [len(trace.vectors) for trace in (first, none)] == [2, 0]
    for name in ("context", "vectors"):
        torch.testing.assert_close(getattr(first, name), getattr(every, name)[:2])
    assert torch.equal(first.outputs, every.outputs)


def test_log_probabilities_are_those_of_the_whole_table():
    logits = torch.randn(3, 4, 50).double()
    twin = logits.log_softmax(-1)[..., [7, 0, 49]]
    torch.testing.assert_close(log_probabilities(logits, [7, 0, 49]), twin, rtol=0, atol=1e-12)
