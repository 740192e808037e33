"""What pages show of attention is what the model did, to the bits that are kept."""

import numpy as np
import pytest
import torch

from iclgd.learners.prompted import InContext, ZeroShot
from iclgd.models.looks import coded, how_many, look, own_attention, pieces, texts_of
from iclgd.prompts import Demo, Prompts
from tiny import tiny_subject, tiny_tokenizer

DEMOS = (Demo((5, 6, 7), (7,)), Demo((8, 9, 10, 11), (11,)))
PROMPTS = Prompts((1,), DEMOS, (3,), ((12, 13), (14, 15, 16, 17)), ((7,), (11,)), (0, 1))


def shares(codes: np.ndarray) -> np.ndarray:
    return (codes / 255.0) ** 2


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "gemma3"])
def test_weights_are_those_of_the_models_own_eager_attention(architecture):
    subject = tiny_subject(architecture)
    with InContext().learn(subject, PROMPTS) as predictor:
        found = look(predictor, PROMPTS, 2)
    for i, query in enumerate(PROMPTS.queries):
        whole = torch.tensor([PROMPTS.context + query])
        subject.model.set_attn_implementation("eager")
        eager = torch.stack(subject.model(whole, output_attentions=True).attentions)[:, 0, :, -1].detach().numpy()
        subject.model.set_attn_implementation("iclgd")
        assert np.abs(np.sqrt(shares(found.weights[i, ..., : whole.shape[1]])) - np.sqrt(eager)).max() <= 0.51 / 255
        assert not found.weights[i, ..., whole.shape[1] :].any()


def test_terms_are_what_each_token_adds_to_a_heads_output_by_length():
    subject = tiny_subject("llama")
    with InContext().learn(subject, PROMPTS) as predictor:
        found = look(predictor, PROMPTS, 1)
        values = predictor.prefix.layers[1][1][0].norm(dim=-1).numpy()  # keyhead token
    context = len(PROMPTS.context)
    weights, terms = shares(found.weights[0, 1, 2]), shares(found.terms[0, 1, 2])
    length = values[1]  # heads 2 and 3 share the second key head
    expected = weights[:context] * length / (weights[:context] * length).sum()
    assert np.abs(terms[:context] / terms[:context].sum() - expected).max() < 0.01
    assert shares(found.terms).sum(-1) == pytest.approx(1, abs=0.02)


def test_own_attention_is_a_softmax_over_the_querys_own_tokens_alone():
    subject = tiny_subject("llama")
    with ZeroShot().learn(subject, PROMPTS) as predictor:
        trace = predictor.trace(PROMPTS)
    found = shares(own_attention(trace, 2))
    assert found[0, ..., 2:].max() == 0
    assert found.sum(-1) == pytest.approx(1, abs=0.02)
    expected = trace.logits[1, 0, 0, 3, :4].softmax(-1).numpy()
    assert np.abs(found[1, 0, 3, :4] - expected).max() < 0.01


def test_small_shares_are_told_apart():
    assert coded(torch.tensor([0.0, 2e-5, 1.0, 1.2])).tolist() == [0, 1, 255, 255]


def test_an_architecture_that_shows_no_heads_is_not_looked_into():
    subject = tiny_subject("bloom")
    with InContext().learn(subject, PROMPTS) as predictor:
        assert look(predictor, PROMPTS, 1) is None


def test_fewer_queries_are_kept_of_a_large_model(monkeypatch):
    subject = tiny_subject("llama")
    assert how_many(subject, PROMPTS) == 2
    monkeypatch.setattr("iclgd.models.looks.ROOM", 10)
    assert how_many(subject, PROMPTS) == 1


def test_pieces_join_to_the_text_and_stand_where_the_tokens_do():
    tokenizer = tiny_tokenizer()
    ids = tuple(tokenizer("Sentence: good film Label: Positive", add_special_tokens=False)["input_ids"])
    assert "".join(pieces(tokenizer, ids)) == tokenizer.decode(list(ids))
    told = texts_of(tokenizer, PROMPTS, 1)
    assert [len(demo) for demo in told["demos"]] == [3, 4]
    assert len(told["start"]) == len(told["separator"]) == len(told["queries"]) == 1


def test_what_is_looked_at_is_copied_once_however_many_queries_and_layers_there_are(monkeypatch):
    copies, cpu = [], torch.Tensor.cpu
    subject = tiny_subject("llama")
    with InContext().learn(subject, PROMPTS) as predictor:
        monkeypatch.setattr(torch.Tensor, "cpu", lambda tensor: copies.append(tensor.shape) or cpu(tensor))
        look(predictor, PROMPTS, 2)
    assert len(copies) == 1
