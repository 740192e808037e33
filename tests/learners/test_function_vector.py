"""Function vectors: which heads are found, and what they write in place of the demonstrations."""

import pytest
import torch
from rival import asked, traced

from iclgd.learners.function_vector import FunctionVector, effects_of, largest, mediation, shuffled
from iclgd.learners.left_out import left_out
from iclgd.learners.prompted import ZeroShot
from iclgd.models.heads import written_by
from tiny import tiny_subject


def at_the_end(subject, text):
    """What every output projection reads at a text's last token, and p of the next token, in one plain pass."""
    seen, handles = [], []
    for out in subject.layout.outs:
        handles.append(out.register_forward_pre_hook(lambda _m, args: seen.append(args[0][0, -1])))
    logits = subject.own_logits(subject.tensor([text]))[0, -1]
    for handle in handles:
        handle.remove()
    return torch.stack(seen), logits.softmax(-1)


def with_one_head(subject, text, layer, head, value):
    """p of the next token when one head gives a value at the last token."""
    size = len(value)

    def replace_it(_module, args):
        given = args[0].clone()
        given[0, -1, head * size : (head + 1) * size] = value
        return (given,)

    handle = subject.layout.outs[layer].register_forward_pre_hook(replace_it)
    found = subject.own_logits(subject.tensor([text]))[0, -1].softmax(-1)
    handle.remove()
    return found


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "bloom"])
def test_the_effect_of_a_head_is_what_its_mean_output_does_to_the_right_answer_under_permuted_labels(architecture):
    subject, prompts = tiny_subject(architecture), asked()
    texts = [context + query for context, query in left_out(prompts)]
    means = torch.stack([at_the_end(subject, text)[0] for text in texts]).mean(0)
    found = mediation(subject, prompts, most=4)
    torch.testing.assert_close(found.mean, means, rtol=1e-4, atol=1e-5)
    for layer, head in ((0, 3), (2, 1)):
        own = means[layer].view(4, -1)[head]
        effects = []
        for place, demo in enumerate(prompts.demos):
            context, query = list(left_out(shuffled(prompts, place)))[place]
            before = at_the_end(subject, context + query)[1][demo.label[0]]
            effects.append(with_one_head(subject, context + query, layer, head, own)[demo.label[0]] - before)
        expected = torch.stack(effects).mean().double()
        assert abs(expected) > 1e-6
        torch.testing.assert_close(found.effects[layer, head], expected, rtol=2e-2, atol=1e-7)


def test_the_only_head_that_writes_anything_is_the_one_that_is_found():
    subject, prompts = tiny_subject("llama", seed=4), asked()  # one whose planted head helps
    with torch.no_grad():
        for layer, out in enumerate(subject.layout.outs):
            out.weight *= 5 * torch.arange(32).div(8, rounding_mode="floor").eq(2) * (layer == 1)
    effects = mediation(subject, prompts, most=4).effects
    planted = torch.zeros(3, 4, dtype=torch.bool)
    planted[1, 2] = True
    assert effects[~planted].abs().max() < 1e-8
    assert effects[1, 2] > 1e-5
    assert torch.equal(largest(effects, 1), planted)


@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
def test_a_function_vector_is_the_sum_of_what_its_heads_write_behind_demonstrations(architecture):
    subject, prompts = tiny_subject(architecture), asked()
    texts = [context + query for context, query in left_out(prompts)]
    means = torch.stack([at_the_end(subject, text)[0] for text in texts]).mean(0)
    written = torch.zeros(32)
    for layer, out in enumerate(subject.layout.outs):  # every head: all that attention gives but the biases
        given = out(means[layer][None])[0]
        written += given if out.bias is None else given - out.bias
    zero, found = traced(ZeroShot(), subject, prompts), traced(FunctionVector(heads=12, layer=1), subject, prompts)
    moved = (found.blocks - zero.blocks)[:, :, 0]  # at the prompt's last token
    torch.testing.assert_close(moved[:, 1], written.expand(5, -1).detach(), rtol=1e-3, atol=1e-4)
    assert not moved[:, 0].any()
    at_label = (found.blocks - zero.blocks)[:, 1, 1]
    assert not at_label.any()
    few = traced(FunctionVector(heads=1, layer=1), subject, prompts)
    best = largest(mediation(subject, prompts, 4).effects, 1)
    torch.testing.assert_close(
        (few.blocks - zero.blocks)[:, 1, 0], written_by(subject, means, best).expand(5, -1), rtol=1e-3, atol=1e-4
    )


def test_the_largest_are_those_with_the_largest_value_and_not_the_largest_size():
    scores = torch.tensor([[-5.0, 1.0], [2.0, 1.0], [0.0, -7.0]])
    assert largest(scores, 1).tolist() == [[False, False], [True, False], [False, False]]
    assert largest(scores, 2).tolist() == [[False, True], [True, False], [False, False]]  # of equal ones the first
    assert largest(torch.zeros(6, 8), 5).flatten().nonzero()[:, 0].tolist() == [0, 1, 2, 3, 4]  # of many, too


def test_permuted_labels_are_the_same_labels_on_the_same_texts():
    prompts = asked(6)
    seen = [shuffled(prompts, seed) for seed in range(8)]
    for one in seen:
        assert sorted(demo.label for demo in one.demos) == sorted(demo.label for demo in prompts.demos)
        for demo, own, text in zip(one.demos, prompts.demos, range(5, 11), strict=True):
            assert demo.ids == own.ids[:text] + demo.label
    assert len({tuple(demo.label for demo in one.demos) for one in seen}) > 2


def test_only_the_prompts_asked_for_are_read():
    subject, prompts = tiny_subject("llama"), asked()
    found, one = mediation(subject, prompts, most=1), next(left_out(prompts))
    torch.testing.assert_close(found.mean, at_the_end(subject, sum(one, ()))[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.effects, effects_of(subject, prompts, 0, found.mean))


def test_a_function_vector_is_made_of_as_many_demonstrations_as_are_asked_for():
    subject, prompts = tiny_subject("llama"), asked()
    first = sum(next(left_out(prompts)), ())
    every = torch.ones(3, 4, dtype=torch.bool)
    written = written_by(subject, at_the_end(subject, first)[0], every)
    zero = traced(ZeroShot(), subject, prompts)
    found = traced(FunctionVector(heads=12, layer=1, prompts=1), subject, prompts)
    moved = (found.blocks - zero.blocks)[:, 1, 0]
    torch.testing.assert_close(moved, written.expand(5, -1), rtol=1e-3, atol=1e-4)
    assert not torch.allclose(
        traced(FunctionVector(heads=12, layer=1), subject, prompts).blocks, found.blocks, atol=1e-2
    )
