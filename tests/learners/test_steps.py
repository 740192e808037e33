"""What a training is made of, on numbers written out by hand: batches, records, bounds that are just reached, parts."""

import math

import pytest
import torch
from plain import DEMOS, prompts, subject_of

from iclgd.learners import context_vector, together, vocabulary
from iclgd.learners.course import Batch, Step, on_device
from iclgd.learners.descent import GradientDescent
from iclgd.learners.function_vector import FunctionVector, largest
from iclgd.learners.layercausal import LayerCausal
from iclgd.learners.outcome import diverged, outcome
from iclgd.learners.task_vector import TaskVector
from iclgd.learners.together import Job, _places, train_together, trained_bytes
from iclgd.learners.vocabulary import plain_unembedding
from iclgd.models.patches import read

STEPS = [Step((1, 5, 6, 7), range(1, 4), 0), Step((1, 8), range(1, 2), 1)]


def test_a_batch_asks_each_target_of_the_token_before_it():
    found = Batch.of(STEPS)
    assert found.ids.tolist() == [[1, 5, 6, 7], [1, 8, 0, 0]]
    assert found.rows.tolist() == [0, 1, 2, 4]
    assert found.wanted.tolist() == [5, 6, 7, 8]
    assert found.replica.tolist() == [0, 0, 0, 1]
    assert found.place.tolist() == [0, 1, 2, 0]
    assert found.counts.tolist() == [3, 1]
    assert found.text.tolist() == [0, 1, 2, 3, 4, 5]
    states = torch.arange(16.0).view(2, 4, 2)
    assert found.pick(states).tolist() == [[0, 1], [2, 3], [4, 5], [8, 9]]
    assert found.means(torch.tensor([1.0, 2.0, 6.0, 5.0])).tolist() == [3, 5]


def test_batches_come_to_a_device_as_they_are():
    batches = [Batch.of(STEPS), Batch.of(STEPS[:1])]
    for ours, theirs in zip(on_device(batches, torch.device("cpu")), batches, strict=True):
        for name in ("ids", "rows", "wanted", "replica", "place", "counts", "text"):
            assert torch.equal(getattr(ours, name), getattr(theirs, name))
    assert on_device([], torch.device("cpu")) == []


def test_a_slot_has_a_row_for_its_layer_and_a_place_of_its_own_in_it():
    rows, columns = _places([0, 0, 1, -1, 2, -1, 0], 3)
    assert rows.tolist() == [0, 0, 1, 3, 2, 3, 0]  # outside of the layers: the row behind the last
    assert columns.tolist() == [0, 1, 0, 0, 0, 1, 2]


def test_the_weights_of_a_finetuning_take_their_bytes():
    subject = subject_of("llama")
    one = 8 * sum(slot.parameter.numel() for slot in subject.layout.slots("kv"))  # float64
    assert trained_bytes(subject, "kv") == one


# how it went

FINE = (0.0, 4.0, 1.0, 100.0)  # what `moves` adds up to: changed entries, all of them, squared update, squared weights


def met(*rows: tuple[float, ...]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def course(*demos: tuple[int, bool]) -> list[Step]:
    return [Step((1, 2), range(1, 2), demo, first) for demo, first in demos]


def test_norms_are_means_over_the_steps_on_a_demonstration_and_of_its_last_visit():
    steps = course((1, True), (1, False), (0, True), (1, True))
    numbers = met((3, 1, 10, 20), (2, 1, 30, 40), (2.5, 1, 5, 6), (2, 1, 7, 8))
    vectors = {1: torch.ones(2, 1, 1), 0: torch.zeros(2, 1, 1)}
    found = outcome(steps, numbers, vectors, (3.0, 4.0, 1.0, 100.0), 4.6)
    assert found.losses == (3, 2, 2.5, 2)
    assert found.gradient_norms.tolist() == [[5, 7], [6, 8]]  # layer demo
    assert [float(one.mean()) for one in found.vectors] == [0, 1]  # by demonstration
    assert found.moved == 0.75
    assert found.diverged is None
    first = outcome(steps[:3], numbers[:3], vectors, FINE, 4.6)
    assert first.gradient_norms.tolist() == [[5, 20], [6, 30]]


@pytest.mark.parametrize(
    "row, why", [((math.nan, 1, 0, 0), "the loss is not a finite number"), ((2, 0, 0, 0), "a trained weight is not")]
)
def test_a_record_ends_with_the_visit_on_which_a_number_was_not_finite(row, why):
    steps = course((0, True), (1, True), (1, False), (2, True))
    found = outcome(steps, met((3, 1, 9, 9), (2, 1, 9, 9), row, (1, 1, 9, 9)), {0: torch.ones(2, 1, 1)}, FINE, 4.6)
    assert len(found.losses) == 3
    assert found.diverged.startswith(why)
    assert found.vectors == ()
    assert found.gradient_norms[:, 2].tolist() == [0, 0]


def test_a_training_without_steps_has_no_losses():
    found = outcome([], torch.empty(0, 5), {}, FINE, 4.6)
    assert found.losses == ()
    assert found.gradient_norms.shape == (3, 0)
    assert found.diverged is None


@pytest.mark.parametrize(
    "losses, moves, why",
    [
        ([3.0], (0, 1, 100.0, 100.0), None),  # as long as the weights is not longer
        ([3.0], (0, 1, 400.0, 100.0), "the update is 2 times as long as the weights"),
        ([3.0], (0, 1, 1.0, 0.0), "the update is inf times as long as the weights"),
        ([3.0], (0, 1, math.nan, 100.0), "the update is nan times as long as the weights"),
        ([3.0, 10.0], FINE, None),  # twice the loss of guessing is not above it
        ([3.0, 10.1], FINE, "the loss rose from 3 to 10.1, and guessing evenly has 5"),
        ([6.0, 12.0], FINE, None),
        ([6.0, 11.0, 14.0], FINE, "the loss rose from 6 to 12.5, and guessing evenly has 5"),
    ],
)
def test_a_bound_that_is_just_reached_is_not_passed(losses, moves, why):
    assert diverged(losses, 5.0, moves) == why


# in parts


@pytest.mark.parametrize("architecture", ["llama", "gemma2"])
def test_rows_of_the_vocabulary_come_in_parts_and_give_what_they_give_at_once(architecture, monkeypatch):
    """Gemma 2 caps its logits, so that its unembedding is no plain product."""
    subject = subject_of(architecture)
    assert (plain_unembedding(subject.layout) is None) == (architecture == "gemma2")
    learner = LayerCausal(0.05)
    with learner.learn(subject, prompts()) as predictor:
        whole, losses = [slot.parameter.clone() for slot in predictor.slots], predictor.training.losses
    sizes = []
    own = vocabulary._products
    monkeypatch.setattr(vocabulary, "_products", lambda *given: sizes.append(len(given[-1])) or own(*given))
    monkeypatch.setattr(vocabulary, "LEAST_ROWS", 2)
    monkeypatch.setattr(vocabulary, "LOGITS", {"cpu": 5 * subject.layout.config.vocab_size})
    with learner.learn(subject, prompts()) as predictor:
        for ours, theirs in zip(predictor.slots, whole, strict=True):
            torch.testing.assert_close(ours.parameter, theirs, rtol=0, atol=1e-12)
        assert predictor.training.losses == pytest.approx(losses, abs=1e-12)
    assert set(sizes) == ({5} if architecture == "llama" else set())


def test_guessing_evenly_is_a_guess_for_every_layer_where_every_layer_predicts():
    subject = subject_of("llama")
    assert (GradientDescent().predictions(subject), LayerCausal().predictions(subject)) == (1, 3)


@pytest.mark.parametrize("kind, predictions", [(GradientDescent, 1), (LayerCausal, 3)])
def test_a_training_is_judged_beside_guessing_every_token_evenly(kind, predictions, monkeypatch):
    subject, seen = subject_of("llama"), []
    own = together.outcome
    monkeypatch.setattr(together, "outcome", lambda *given: seen.append(given[-1]) or own(*given))
    train_together(subject, [Job(kind(), prompts())])
    assert seen == pytest.approx([predictions * math.log(subject.layout.config.vocab_size)])


# what stands in for demonstrations


def scores(learner, subject):
    given = prompts(DEMOS)
    with learner.learn(subject, given) as predictor:
        return predictor.trace(given).scores


def test_unasked_a_task_vector_stands_in_the_middle_and_a_function_vector_a_third_of_the_way_up():
    subject = subject_of("llama")  # of three layers
    assert torch.equal(scores(TaskVector(), subject), scores(TaskVector(layer=1), subject))
    assert torch.equal(scores(FunctionVector(), subject), scores(FunctionVector(layer=1), subject))
    for other in (0, 2):
        assert not torch.allclose(scores(TaskVector(), subject), scores(TaskVector(layer=other), subject))
        assert not torch.allclose(scores(FunctionVector(), subject), scores(FunctionVector(layer=other), subject))


def test_an_in_context_vector_is_as_long_as_its_share_of_the_layers_mean_state(monkeypatch):
    subject, given, seen = subject_of("llama"), prompts(DEMOS), []
    own = context_vector.steered
    monkeypatch.setattr(context_vector, "steered", lambda *vectors: seen.append(vectors) or own(*vectors))
    with context_vector.ContextVector(strength=0.3).learn(subject, given):
        ((vectors, strength),) = seen
    asked, answered = ([given.bos + demo.ids[: end(demo)] for demo in given.demos] for end in (without_label, whole))
    before, after = (read(subject, texts, None).blocks for texts in (asked, answered))  # demo layer dim
    assert strength == 0.3
    torch.testing.assert_close(vectors.norm(dim=-1), before.norm(dim=-1).mean(0))
    direction = context_vector.main_direction(after - before)
    torch.testing.assert_close(vectors, direction * before.norm(dim=-1).mean(0)[:, None])


def without_label(demo) -> int:
    return len(demo.ids) - len(demo.label)


def whole(demo) -> int:
    return len(demo.ids)


def test_of_equal_heads_the_first_are_the_largest():
    effects = torch.tensor([[0.0, 2.0, 1.0], [1.0, 1.0, 3.0]])
    assert largest(effects, 3).tolist() == [[False, True, True], [False, False, True]]
    assert largest(effects, 9).all()
