"""Gradients of all steps stand in one room, and in one of their own where a step has two."""

import pytest
import torch
from plain import BOS, DEMOS, subject_of

from iclgd.learners.course import Batch
from iclgd.learners.descent import GradientDescent
from iclgd.learners.vocabulary import Desk, answers_plainly
from iclgd.models.replicas import Stacked


@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
def test_a_map_that_runs_twice_in_a_step_has_the_gradient_of_both(architecture):
    """There is one room for the gradient of each map; what runs again finds it taken."""
    subject = subject_of(architecture)
    stacked = Stacked.copies(subject, "kv", 3)
    module, place, _ = stacked._owners[0]
    generator = torch.Generator().manual_seed(0)
    wide = module.weight.shape[0 if architecture == "gpt2" else 1]
    one, two = (torch.randn(3, 5, wide, generator=generator, dtype=torch.float64) for _ in range(2))
    with stacked.running():
        for _ in range(2):
            stacked.take(2)
            made = module(one[:2]).square().sum() + module(two[:2]).sin().sum()
            (found,) = torch.autograd.grad(made, [stacked.leaves[place]])
        own = module.weight
    leaf = own.detach().clone().requires_grad_()
    for r in range(2):
        maps = [x[r] @ (leaf if architecture == "gpt2" else leaf.T) for x in (one, two)]
        bias = 0 if module.bias is None else module.bias.detach()
        (wanted,) = torch.autograd.grad((maps[0] + bias).square().sum() + (maps[1] + bias).sin().sum(), leaf)
        torch.testing.assert_close(found[r], wanted, rtol=0, atol=1e-11)


def test_gradients_of_all_steps_stand_in_one_room():
    subject = subject_of("llama")
    stacked = Stacked.copies(subject, "kv", 2)
    learner, places = GradientDescent(0.05), []
    assert answers_plainly(subject)
    with stacked.running():
        for demo in DEMOS[:2]:
            steps = learner.steps(BOS, demo, 0) * 2
            stacked.take(2)
            _, gradients = learner.gradients(subject, Batch.of(steps), stacked.leaves, Desk())
            places.append([gradient.data_ptr() for gradient in gradients])
    assert places[0] == places[1]
