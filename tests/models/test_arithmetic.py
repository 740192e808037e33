"""What passes cost, from shapes and tokens, against torch's own count of what runs."""

import pytest
import torch

from counting import Counter
from iclgd.learners.course import Batch, Step
from iclgd.learners.descent import GradientDescent
from iclgd.learners.layercausal import LayerCausal
from iclgd.learners.vocabulary import Desk
from iclgd.models.arithmetic import Arithmetic
from iclgd.models.replicas import Stacked
from tiny import tiny_subject

FAMILIES = ("llama", "gpt2", "gpt-neox", "gemma3", "qwen3", "olmo2")
LENGTH, ROWS = 11, 4


def counted(run) -> float:
    with Counter() as counter:
        run()
    return counter.flops


@pytest.mark.parametrize("family", FAMILIES)
def test_a_pass_behind_a_context_costs_what_torch_counts(family):
    subject = tiny_subject(family)
    cost = Arithmetic.of(subject.layout)
    ids = torch.arange(LENGTH)[None].repeat(3, 1)
    rows = torch.tensor([[LENGTH - 1]] * 3)
    with torch.no_grad():
        prefix = subject.encode(tuple(range(7)))
        found = counted(lambda: subject.run(ids, rows, prefix, predicted=rows))
    assert cost.read([LENGTH] * 3, context=7, rows=3) == pytest.approx(found, rel=0.15)


CASES = [(GradientDescent(), name) for name in FAMILIES]
CASES += [(LayerCausal(), name) for name in FAMILIES if name != "gpt-neox"]  # blocks in parallel take less
CASES += [(GradientDescent(trains="down"), "llama")]


@pytest.mark.parametrize("learner, family", CASES)
def test_a_step_costs_what_torch_counts(learner, family):
    subject = tiny_subject(family)
    cost = Arithmetic.of(subject.layout)
    batch = Batch.of([Step(tuple(range(LENGTH)), range(LENGTH - ROWS, LENGTH), 0)])
    stacked = Stacked.copies(subject, learner.trains, 1)
    with stacked.running():
        stacked.take(1)
        found = counted(lambda: learner.gradients(subject, batch, stacked.leaves, Desk()))
    said = cost.train(learner.trains, LENGTH, ROWS, learner.predictions(subject))
    assert said == pytest.approx(found, rel=0.25)
