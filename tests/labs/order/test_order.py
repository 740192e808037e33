"""Orders: full batches and attention without positions do not see them, reading and single steps do."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from iclgd.errors import Refusal
from iclgd.labs.order.anchors import anchors
from iclgd.labs.order.full_batch import FullBatch
from iclgd.labs.order.measures import overlap, spread
from iclgd.labs.order.run import permutations
from iclgd.labs.order.spec import OrderSpec
from iclgd.learners.descent import GradientDescent
from iclgd.learners.prompted import InContext, ZeroShot
from iclgd.models.load import load_subject
from iclgd.prompts import build_prompts
from iclgd.running import Where, run_study
from iclgd.spec import ModelSpec
from iclgd.tools import Tools
from little import little_model, little_task
from tiny import tiny_subject

FEW = {"k": 3, "queries": 5, "orders": 4, "top": 3, "device": "cpu", "seeds": 2, "rates": (0.1,)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("order")
    little_model(made / "tiny")
    little_task(made)
    return made


@pytest.fixture(scope="module")
def study(folder):
    given = FEW | {"model": str(folder / "tiny"), "task": str(folder / "mine.yaml"), "init": "trained,random"}
    return run_study("order", OrderSpec.of(given | {"learners": "gd,lcgd"}), Where(folder / "cells", folder / "page"))


def values(study, quantity, learner, init="trained"):
    return np.stack([one.values for one in study.arrays(quantity=quantity, learner=learner, init=init)])


def test_reading_and_single_steps_see_the_order_and_a_full_batch_does_not(study):
    for learner in ("icl", "gd 0.1", "lcgd 0.1"):
        assert np.nanmean(values(study, "spread", learner)) > 1e-2, learner
        assert values(study, "p", learner).std(1).max() > 1e-5, learner
    assert np.nanmax(values(study, "spread", "gd 0.1, all at once")) < 1e-3
    assert values(study, "p", "gd 0.1, all at once").std(1).max() < 1e-5
    assert (values(study, "overlap", "gd 0.1, all at once") == 1).all()


def test_numbers_of_an_order_are_those_of_training_in_it(study, folder):
    """The second order of the first draw, trained by itself and asked by hand."""
    cell = study.cells[0]
    subject = load_subject(ModelSpec(name=cell.spec.model.name, device="cpu"))
    prompts = build_prompts(
        subject.tokenizer, Tools().episode(cell.spec.task, cell.spec.episode), cell.spec.prompt, None
    )
    order = permutations(3, 4, cell.spec.episode.seed)[1]
    mixed = replace(prompts, demos=tuple(prompts.demos[i] for i in order))
    with GradientDescent(0.1).learn(subject, mixed) as predictor:
        scores = predictor.trace(prompts).scores.softmax(-1)
    wanted = scores[torch.arange(5), torch.tensor(prompts.answers)]
    np.testing.assert_allclose(values(study, "p", "gd 0.1")[0, 1], wanted, atol=1e-5)


def test_next_tokens_are_compared_with_those_of_reading_in_the_same_order(study):
    cell = study.cells[0]
    subject = load_subject(ModelSpec(name=cell.spec.model.name, device="cpu"))
    episode = Tools().episode(cell.spec.task, cell.spec.episode)
    prompts = build_prompts(subject.tokenizer, episode, cell.spec.prompt, None)

    def likeliest(learner, demos) -> list[set[int]]:
        with learner.learn(subject, replace(prompts, demos=demos)) as predictor:
            blocks = predictor.trace(prompts).blocks[:, -1, 0]
        return [set(row) for row in subject.unembed(blocks).topk(3).indices.tolist()]

    shared = {"gd 0.1": [], "zero-shot": []}
    for order in permutations(3, 4, cell.spec.episode.seed):
        demos = tuple(prompts.demos[i] for i in order)
        read = likeliest(InContext(), demos)
        for name, learner in (("gd 0.1", GradientDescent(0.1)), ("zero-shot", ZeroShot())):
            pairs = zip(likeliest(learner, demos), read, strict=True)
            shared[name].append([len(one & two) / 3 for one, two in pairs])
    for name, expected in shared.items():
        found = values(study, "overlap with icl", name)[0]
        np.testing.assert_allclose(found, np.mean(expected, axis=0), atol=1e-9)
        assert found.mean() < 1  # reading's own would be


def test_a_full_batch_takes_one_step_along_the_sum_of_all_gradients(folder):
    subject = load_subject(ModelSpec(name=str(folder / "tiny"), device="cpu"))
    spec = OrderSpec.of(FEW | {"model": str(folder / "tiny"), "task": str(folder / "mine.yaml")}).cells()[0].spec
    prompts = build_prompts(subject.tokenizer, Tools().episode(spec.task, spec.episode), spec.prompt, None)
    before = subject.fingerprint()

    def change(learner, demos):
        with learner.learn(subject, replace(prompts, demos=demos)) as predictor:
            return [(slot.parameter.detach() - slot.before).clone() for slot in predictor.slots]

    single = GradientDescent(0.5)
    alone = [change(single, (demo,)) for demo in prompts.demos]
    at_once = change(FullBatch(single), prompts.demos)
    for i, found in enumerate(at_once):
        torch.testing.assert_close(found, sum(one[i] for one in alone), atol=1e-6, rtol=1e-4)
    one_by_one = change(single, prompts.demos)
    assert any((a - b).abs().max() > 1e-4 for a, b in zip(at_once, one_by_one, strict=True))
    assert subject.fingerprint() == before


def test_a_full_batch_trains_nothing_but_what_is_to_be_trained_where_projections_share_a_matrix(folder):
    """GPT-2 keeps queries, keys and values side by side: the queries' third stays."""
    subject = tiny_subject("gpt2")
    spec = OrderSpec.of(FEW | {"model": "memory:tiny", "task": str(folder / "mine.yaml")}).cells()[0].spec
    prompts = build_prompts(subject.tokenizer, Tools().episode(spec.task, spec.episode), spec.prompt, None)
    with FullBatch(GradientDescent(0.1)).learn(subject, prompts) as predictor:
        for slot in predictor.slots:
            change = (slot.parameter.detach() - slot.before).abs()
            moved = change.amax(0) if change.ndim == 2 else change
            assert moved.shape == (96,)
            assert moved[:32].max() == 0 < moved[32:].max()


def test_twice_as_many_epochs_are_two_steps(folder):
    subject = load_subject(ModelSpec(name=str(folder / "tiny"), device="cpu"))
    spec = OrderSpec.of(FEW | {"model": str(folder / "tiny"), "task": str(folder / "mine.yaml")}).cells()[0].spec
    prompts = build_prompts(subject.tokenizer, Tools().episode(spec.task, spec.episode), spec.prompt, None)
    moved = []
    for epochs in (1, 2):
        with FullBatch(GradientDescent(0.002, epochs=epochs)).learn(subject, prompts) as predictor:
            moved.append(sum(float((s.parameter - s.before).norm()) for s in predictor.slots))
    assert 1.7 < moved[1] / moved[0] < 2.1


def test_anchors_are_nothing_nothing_and_something():
    found = anchors(20, 3)
    assert list(found) == ["linear attention", "softmax attention", "delta rule"]
    assert max(found["linear attention"], found["softmax attention"]) < 1e-12
    assert found["delta rule"] > 0.1


def test_spread_is_zero_for_one_update_and_near_one_for_unrelated_ones():
    g = torch.Generator().manual_seed(0)
    one = torch.randn(3, 8, generator=g).expand(20, 3, 8)
    assert spread(one).max() < 1e-6
    apart = spread(torch.randn(20, 3, 2000, generator=g))
    assert (apart > 0.95).all()
    assert (apart < 1).all()
    half = spread(torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=torch.float64)[:, None])
    assert float(half) == pytest.approx(0.5**0.5)
    assert spread(torch.zeros(4, 2, 3)).isnan().all()


def test_overlap_counts_shared_tokens_whatever_their_rank():
    a, b = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]]), torch.tensor([[4, 9, 1, 10], [1, 2, 3, 4]])
    assert overlap(a, b).tolist() == [0.5, 0.0]
    assert overlap(a[None].expand(3, -1, -1), b[None]).shape == (3, 2)


def test_orders_are_different_begin_with_the_drawn_one_and_cannot_be_too_many():
    found = permutations(4, 24, 7)
    assert found[0] == (0, 1, 2, 3)
    assert len(set(found)) == 24
    assert permutations(5, 6, 0) == permutations(5, 6, 0) != permutations(5, 6, 1)
    with pytest.raises(Refusal, match="3 demonstrations have 6 orders, not 7: raise `k` or lower `orders`"):
        permutations(3, 7, 0)


def test_the_page_has_every_learner_its_nulls_and_anchors(study, folder):
    text = study.page.text(full=True)
    for part in ("icl", "gd 0.1, all at once", "lcgd 0.1", "null: icl, random weights", "zero-shot", "delta rule"):
        assert part in text
    assert "4 orders · 2 seeds × 5 queries" in text
    assert (folder / "page" / "index.html").exists()


def test_what_cannot_be_asked_is_refused():
    for given, said in (
        ({"k": 1}, "`k` must be at least 2"),
        ({"orders": 1}, "`orders` must be at least 2"),
        ({"k": 3}, "3 demonstrations have 6 orders, not 20"),
        ({"learners": "gdd"}, "gdd"),
        ({"learners": "none"}, "needs at least one|none"),
    ):
        with pytest.raises(Refusal, match=said):
            OrderSpec.of(given)


def test_a_training_that_diverges_is_refused_with_the_reason(folder):
    given = FEW | {"model": str(folder / "tiny"), "task": str(folder / "mine.yaml"), "rates": (1e6,), "seeds": 1}
    with pytest.raises(Refusal, match="diverged"):
        run_study("order", OrderSpec.of(given | {"learners": "gd"}), Where(folder / "other"))
