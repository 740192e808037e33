"""Cross-entropy in closed form: for the models that it is right for, in one place for all steps."""

import pytest
import torch
from plain import assert_same, copy_of, installed, plain_loss, plain_step, prompts, subject_of, weights_of
from torch import nn

from iclgd.learners import vocabulary
from iclgd.learners.descent import GradientDescent
from iclgd.learners.layercausal import LayerCausal
from iclgd.learners.together import Job, train_together
from iclgd.learners.vocabulary import Desk, answers_plainly, cross_entropies, of_unembedding, plain_unembedding

RATE = 0.05


def doubled(subject):
    """The model's own logits are twice U's product, which nothing in its configuration says."""
    subject.layout.unembedding.register_forward_hook(lambda _module, _given, logits: 2 * logits)
    return subject


@pytest.mark.parametrize(
    "architecture, plainly", [("llama", True), ("gpt2", True), ("gemma2", False), ("cohere", False), ("granite", False)]
)
def test_logits_that_are_more_than_a_product_are_seen(architecture, plainly):
    assert answers_plainly(subject_of(architecture)) == plainly


def test_logits_are_looked_at_and_not_the_configuration_alone():
    subject = doubled(subject_of("llama"))
    assert plain_unembedding(subject.layout) is not None
    assert not answers_plainly(subject)


@pytest.mark.parametrize(
    "last, plain",
    [
        (nn.Linear(8, 50, bias=False), True),
        (nn.Linear(8, 50), False),
        (nn.Bilinear(8, 8, 50, bias=False), False),  # a weight and no bias, and not a product
    ],
)
def test_a_bias_or_a_layer_of_another_kind_is_more_than_a_product(last, plain):
    layout = subject_of("llama").layout
    layout.unembedding = last
    assert (plain_unembedding(layout) is not None) == plain


def test_no_graph_is_made_over_a_vocabulary():
    subject = subject_of("llama")
    size = subject.layout.config.hidden_size
    normed = torch.randn(3, size, dtype=torch.float64, requires_grad=True)
    wanted, shares = torch.tensor([1, 2, 3]), torch.full((3,), 1 / 3, dtype=torch.float64)
    leaves = list(subject.layout.unembedding.parameters())
    for outside in ([], [leaf.requires_grad_() for leaf in leaves]):  # in closed form, and by autograd a part at a time
        losses, slopes, more = cross_entropies(subject, normed, wanted, shares, outside, Desk())
        assert not any(made.requires_grad for made in (losses, slopes, *more))
    subject.model.requires_grad_(True)
    (kept,) = asked_with(subject)
    assert not kept.requires_grad


def asked_with(subject):
    """What comes into the unembedding while a model is asked how it answers."""
    states = []
    handle = subject.layout.unembedding.register_forward_pre_hook(lambda _module, given: states.append(given[0]))
    vocabulary._answers_plainly(subject, plain_unembedding(subject.layout))
    handle.remove()
    return states


def test_a_coarse_model_answers_by_autograd():
    subject = subject_of("llama")
    for dtype, plainly in ((torch.bfloat16, False), (torch.float64, True), (torch.bfloat16, False)):
        subject.model.to(dtype)
        assert answers_plainly(subject) == plainly


def test_a_model_is_asked_once(monkeypatch):
    subject, asked = subject_of("llama"), []
    own = vocabulary._answers_plainly
    monkeypatch.setattr(vocabulary, "_answers_plainly", lambda one, matrix: asked.append(one) or own(one, matrix))
    for _ in range(2):
        train_together(subject, [Job(GradientDescent(RATE), prompts())] * 2)
    assert asked == [subject]


@pytest.mark.parametrize("changed", [lambda subject: subject, doubled])
def test_descent_is_on_the_models_own_loss_whatever_it_does_to_its_logits(changed):
    subject = changed(subject_of("llama"))
    model = copy_of(subject)
    if changed is doubled:
        doubled_copy = model.get_output_embeddings()
        doubled_copy._forward_hooks.clear()
        doubled_copy.register_forward_hook(lambda _module, _given, logits: 2 * logits)
    losses = []
    for demo in prompts().demos:
        ids = prompts().bos + demo.ids
        loss = plain_loss(model, ids, list(range(1, len(ids))))
        losses.append(float(loss.detach()))
        plain_step(model, loss, "llama", "kv", RATE)
    wanted = weights_of(model)
    for trained in train_together(subject, [Job(GradientDescent(RATE), prompts())] * 2):
        assert trained.training.losses == pytest.approx(losses, abs=1e-12)
        assert_same(installed(subject, trained.slots), wanted, 1e-12)


def test_leaves_of_the_unembedding_are_named_by_their_place():
    subject = subject_of("llama")
    last, other = subject.layout.unembedding.weight, nn.Parameter(torch.zeros(2))
    assert of_unembedding(subject, [other, last, other]) == [1]
    assert of_unembedding(subject, [other]) == []


def test_logits_of_all_steps_stand_in_one_place_which_grows_where_it_is_too_small():
    desk, like = Desk(), torch.zeros(1, dtype=torch.float64)
    first = desk.logits(like, 4, 5)
    assert (first.shape, first.dtype) == ((4, 5), torch.float64)
    assert desk.logits(like, 2, 5).data_ptr() == first.data_ptr()
    assert desk.logits(like, 5, 5).shape == (5, 5)


@pytest.mark.parametrize("kind", [GradientDescent, LayerCausal])
def test_steps_of_a_training_share_their_place_for_logits(kind, monkeypatch):
    places = []
    own = vocabulary._products
    monkeypatch.setattr(vocabulary, "_products", lambda *given: places.append(given[-1]) or own(*given))
    demos = tuple(sorted(prompts().demos, key=lambda demo: -len(demo.ids)))
    train_together(subject_of("llama"), [Job(kind(RATE), prompts(demos))])
    assert len(places) == len(demos) > 1
    assert len({place.data_ptr() for place in places}) == 1
