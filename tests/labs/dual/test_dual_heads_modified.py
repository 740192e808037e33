"""Modified attention in language models: the step of the modified dual, and nothing at strength zero."""

import pytest
import torch
from tiny_heads import PROMPTS, tiny

from iclgd.choices import parse_one
from iclgd.errors import Refusal
from iclgd.labs.dual.heads import analyse, label_tokens, layer_heads, owners
from iclgd.labs.dual.model import softmax_dual
from iclgd.labs.dual.modifications import MODIFICATIONS
from iclgd.labs.dual.modified import Modification
from iclgd.labs.dual.pretrained import ModifiedHeads, ModifiedInContext, with_adapters
from iclgd.learners.prompted import InContext
from iclgd.models.capture import Tape
from iclgd.models.subject import Subject
from iclgd.prompts import build_prompts
from iclgd.spec import EpisodeSpec, PromptSpec
from iclgd.tasks.episodes import load_episode
from tiny import tiny_subject


def made(text: str, subject: Subject) -> Modification:
    return with_adapters(parse_one(text, MODIFICATIONS).make(), subject)


AT_ZERO = ("regularised:alpha=0", "regularised-slide:alpha=0", "negative:beta=0", "centred:beta=0", "augmented:c=0")
MODIFIED = (
    "plain",
    "regularised",
    "regularised-slide",
    "negative:k=2:beta=0.5",
    "arbitrary:k=2:beta=0.5",
    "centred",
    "augmented:c=0.5",
)


AT_ZERO = (
    "regularised:alpha=0",
    "regularised-slide:alpha=0",
    "negative:beta=0",
    "arbitrary:beta=0",
    "centred:beta=0",
    "augmented:c=0",
)


@pytest.mark.parametrize("name", ["llama", "gemma2", "gpt-oss"])
@pytest.mark.parametrize("text", MODIFIED)
def test_a_modified_head_is_the_gradient_step_of_its_modified_dual(name: str, text: str) -> None:
    subject, query = tiny(name), PROMPTS.queries[0]
    modification = made(text, subject)
    ids = subject.tensor([PROMPTS.context + query])
    heads = ModifiedHeads(modification, owners(PROMPTS, ()))
    tape = Tape(torch.tensor([[ids.shape[1] - 1]]), heads={}, modification=heads)
    with torch.no_grad():
        subject.model(ids, use_cache=False, tape=tape)
    for heads in tape.heads.values():
        layer = layer_heads(heads, owners(PROMPTS, query), label_tokens(PROMPTS, query))
        plain = softmax_dual(layer.scores, layer.keys, layer.values, layer.demos, layer.sinks)
        dual = modification.dual(plain, layer.owner[layer.demos], layer.values[:, -1])
        assert (dual.predict(dual.step()) - layer.output).norm() <= 1e-12 * layer.output.norm()


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma2", "gpt-oss"])
def test_strength_zero_is_the_unmodified_model_bit_for_bit(name: str) -> None:
    subject = tiny(name)
    with InContext().learn(subject, PROMPTS) as predictor:
        plain = predictor.trace(PROMPTS)
    for text in ("plain", *AT_ZERO):
        with ModifiedInContext(made(text, subject)).learn(subject, PROMPTS) as predictor:
            changed = predictor.trace(PROMPTS)
        assert torch.equal(plain.scores, changed.scores), text
        assert torch.equal(plain.outputs, changed.outputs), text


@pytest.mark.parametrize("text", MODIFIED[1:])
def test_a_modification_of_some_strength_changes_the_model(text: str) -> None:
    subject = tiny("llama")
    with InContext().learn(subject, PROMPTS) as predictor:
        plain = predictor.trace(PROMPTS)
    with ModifiedInContext(made(text, subject)).learn(subject, PROMPTS) as predictor:
        assert not torch.equal(plain.scores, predictor.trace(PROMPTS).scores)


def test_a_model_that_ignores_the_registered_function_is_refused() -> None:
    subject, heads = tiny_subject("bloom"), ModifiedHeads(Modification(), torch.tensor([-1]))
    with pytest.raises(Refusal, match="use another model"):
        analyse(subject, PROMPTS, PROMPTS.queries[0])
    with pytest.raises(Refusal, match="not changed here"):
        subject.run(subject.tensor([[1, 2]]), torch.tensor([[1]]), None, heads)


@pytest.mark.slow
def test_strength_zero_is_the_embedded_model_bit_for_bit(smollm2: Subject) -> None:
    episode = load_episode("sentiment", EpisodeSpec(k=8, queries=4))
    prompts = build_prompts(smollm2.tokenizer, episode, PromptSpec(), smollm2.room)
    with InContext().learn(smollm2, prompts) as predictor:
        plain = predictor.trace(prompts)
    for text in AT_ZERO:
        with ModifiedInContext(made(text, smollm2)).learn(smollm2, prompts) as predictor:
            assert torch.equal(plain.scores, predictor.trace(prompts).scores), text
