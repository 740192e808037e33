"""Nulls on a bench: what each puts in the learner's place, or in reading's, and that weights come back."""

from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from iclgd.ahead import Wanted, train_ahead
from iclgd.bench import WRONG, Bench, Run
from iclgd.errors import Refusal
from iclgd.learners.descent import GradientDescent
from iclgd.learners.layercausal import LayerCausal
from iclgd.learners.prompted import InContext
from iclgd.models.changes import change_cosines, change_norms, changes
from iclgd.models.traces import Predictor
from iclgd.nulls import untrained
from iclgd.nulls.reading import Filler, ReadWrongLabels
from iclgd.nulls.trained import OtherDemos, OtherTask, ShuffledLabels, TwoWrongs, WrongLabels
from iclgd.nulls.untrained import OtherQuery, RandomDirections, Uniform, WeightNoise
from iclgd.spec import PromptSpec
from tiny import tiny_subject

LEARNER = GradientDescent(rate=0.05)


def test_wrong_labels_are_wrong_everywhere_and_nothing_else_changes(bench):
    wrong = bench.episode.with_wrong_labels(3)
    assert all(
        a.label != b.label and a.fields == b.fields for a, b in zip(wrong.demos, bench.episode.demos, strict=True)
    )
    assert wrong.queries == bench.episode.queries


def test_training_on_wrong_labels_is_training_on_those_demonstrations(bench):
    run = bench.learned("gd", LEARNER)
    found = WrongLabels().trace(bench, "gd", LEARNER, run)
    with LEARNER.learn(bench.subject, bench.wrong) as predictor:
        again = predictor.trace(bench.prompts)
    assert torch.equal(found.outputs, again.outputs)
    assert not torch.equal(found.outputs, run.trace.outputs)


TRAINED = (WrongLabels(), ShuffledLabels(), OtherDemos(), OtherTask(), TwoWrongs())


@pytest.mark.parametrize("null", TRAINED, ids=lambda null: type(null).__name__)
def test_a_null_trains_on_what_it_says_that_it_trains_on(bench, null, monkeypatch):
    asked = []
    monkeypatch.setattr(
        bench, "learned", lambda label, learner, demos=None, what="": asked.append((what, demos)) or Run(None)
    )
    if isinstance(null, TwoWrongs):
        monkeypatch.setattr(null.__class__, "labelings", lambda _self, episode: (episode, episode))
    null.trace(bench, "gd", LEARNER, Run(None))
    assert asked == [(what, demos) for what, demos in null.trained_on(bench, False).items()]
    if hasattr(null, "contrast"):
        asked.clear()
        assert null.contrast(bench, "gd", LEARNER, bench.zero, bench.icl) is None
        assert asked == [(what, demos) for what, demos in null.trained_on(bench, True).items()]


def test_what_is_trained_ahead_is_what_learners_do_one_by_one(bench):
    def fresh():
        return Bench(bench.subject, bench.episode, PromptSpec(), 3, bench.draw, lambda what, done: None)

    one, two, other = fresh(), fresh(), fresh()
    learners = {"gd": LEARNER, "gd slow": GradientDescent(rate=0.01), "lcgd": LayerCausal(rate=0.01)}
    wanted = [Wanted(one, label, learner, one.prompts) for label, learner in learners.items()]
    wanted += [Wanted(one, label, learner, one.wrong, WRONG) for label, learner in learners.items()]
    wanted += [Wanted(other, "gd", LEARNER, other.prompts)]  # another episode, say: its own bench, the same subject
    train_ahead([*wanted, wanted[0]])
    for label, learner in learners.items():
        for what, demos in (("", None), (WRONG, one.wrong)):
            ahead, alone = one.learned(label, learner, demos, what), two.learned(label, learner, demos, what)
            largest = float(alone.trace.outputs.abs().max())
            torch.testing.assert_close(ahead.trace.outputs, alone.trace.outputs, rtol=0, atol=2e-5 * largest)
            assert ahead.training.losses == pytest.approx(alone.training.losses, rel=1e-5)
            assert bool(ahead.training.vectors) is (what == "")
            assert len(ahead.change) == len(alone.change) > 0
    assert torch.allclose(other.learned("gd", LEARNER).trace.outputs, one.learned("gd", LEARNER).trace.outputs)


def test_what_was_trained_ahead_is_not_trained_again(bench, monkeypatch):
    fresh = Bench(bench.subject, bench.episode, PromptSpec(), 3, bench.draw, lambda what, done: None)
    train_ahead([Wanted(fresh, "gd", LEARNER, fresh.prompts), Wanted(fresh, "gd", LEARNER, fresh.wrong, WRONG)])
    monkeypatch.setattr(GradientDescent, "learn", lambda *_: pytest.fail("it was trained already"))
    run = fresh.learned("gd", LEARNER)
    fresh.learned_wrong("gd", LEARNER)
    again = fresh.run("gd", LEARNER, tokens=64, trained=fresh._trained["gd", ""]).trace
    torch.testing.assert_close(again.outputs, run.trace.outputs, rtol=1e-5, atol=1e-6)


def test_a_learner_with_its_own_way_to_learn_is_left_to_it(bench):
    @dataclass(frozen=True)
    class Mine(GradientDescent):
        @contextmanager
        def learn(self, subject, prompts):
            with InContext().learn(subject, prompts) as predictor:
                yield predictor

    fresh = Bench(bench.subject, bench.episode, PromptSpec(), 3, bench.draw, lambda what, done: None)
    train_ahead([Wanted(fresh, "mine", Mine(), fresh.prompts), Wanted(fresh, "icl", InContext(), fresh.prompts)])
    assert fresh._trained == {}
    assert torch.equal(fresh.learned("mine", Mine()).trace.outputs, bench.icl.outputs)


@pytest.mark.parametrize(("dtype", "rate"), [(torch.float32, 0.05), (torch.bfloat16, 2e-5)])
def test_weight_noise_is_as_long_as_the_learners_change_in_every_parameter_and_is_taken_back(bench, dtype, rate):
    """In bfloat16 too, where a change as small as this one would be rounded away if it were put into the model."""
    learner, subject = GradientDescent(rate), tiny_subject("llama", dtype=dtype)
    bench = Bench(subject, bench.episode, PromptSpec(), 3, bench.draw, bench.progress)
    run = bench.learned("gd", learner)
    before = {name: value.clone() for name, value in subject.model.named_parameters()}
    installed, trace = [], Predictor.trace
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Predictor, "trace", lambda self, *a: installed.append(changes(self.slots)) or trace(self, *a))
        noisy = WeightNoise().trace(bench, "gd", learner, run)
    (found,) = installed
    assert [added.norm().item() for _, added in found] == pytest.approx(
        [a.norm().item() for _, a in run.change], rel=1e-3
    )
    assert all(torch.equal(before[name], value) for name, value in subject.model.named_parameters())
    moved = [(one.outputs.float() - bench.zero.outputs.float())[:, 0, 0] for one in (noisy, run.trace)]
    assert moved[0].norm() > 0
    assert torch.cosine_similarity(*moved, dim=-1).abs().mean() < 0.9


def test_filler_has_the_demonstrations_tokens_and_lengths_in_another_order(bench):
    made = Filler().demos(bench)
    assert [len(demo.ids) for demo in made] == [len(demo.ids) for demo in bench.prompts.demos]
    tokens = [sorted(token for demo in demos for token in demo.ids) for demos in (made, bench.prompts.demos)]
    assert tokens[0] == tokens[1]
    assert [demo.ids for demo in made] != [demo.ids for demo in bench.prompts.demos]


def test_reading_wrong_labels_stands_on_readings_side(bench):
    assert ReadWrongLabels.side == Filler.side == "reading"
    assert ReadWrongLabels().trace(bench, "gd", LEARNER, bench.learned("gd", LEARNER)) is bench.icl_wrong
    assert not torch.equal(bench.icl_wrong.outputs, bench.icl.outputs)


def test_other_demonstrations_are_others_of_the_same_task(bench):
    others = OtherDemos().demos(bench)
    assert others.task == bench.episode.task
    assert others.demos != bench.episode.demos
    assert OtherDemos().demos(bench).demos == others.demos


def test_a_task_never_stands_in_for_itself():
    for task in ("continents", "kinds", "sentiment", "sst2"):
        for stand_in in ("continents", "kinds"):
            name, drawn = OtherTask(stand_in).source(task, 100, 5)
            assert name != task
            assert (drawn.k, drawn.seed) == (64, 5)
    assert OtherTask("kinds").source("sst2", 4, 0)[0] == "kinds"


def test_weight_noise_is_another_one_for_every_parameter_and_every_seed(bench, monkeypatch):
    run, zero, drawn = bench.learned("gd", LEARNER), bench.zero, []
    original = untrained.normal
    monkeypatch.setattr(
        untrained, "normal", lambda shape, seed, device: drawn.append(seed) or original(shape, seed, device)
    )
    monkeypatch.setattr(Predictor, "trace", lambda *_: zero)
    slots = len(run.change)
    for seed in (0, 1, 2, slots, slots + 1):
        monkeypatch.setattr(bench, "seed", seed)
        WeightNoise().trace(bench, "gd", LEARNER, run)
    assert len(drawn) == len(set(drawn)) == 5 * slots


def test_weight_changes_are_measured_layer_by_layer():
    a = [(0, torch.tensor([3.0, 4.0])), (1, torch.tensor([1.0, 0.0])), (-1, torch.tensor([9.0, 9.0]))]
    b = [(0, torch.tensor([4.0, 3.0])), (1, torch.tensor([0.0, 1.0])), (-1, torch.tensor([9.0, 9.0]))]
    np.testing.assert_allclose(change_norms(a, 2), [5.0, 1.0])
    np.testing.assert_allclose(change_cosines(a, b, 2), [0.96, 0.0])


def test_weight_changes_come_to_the_host_in_one_copy_whatever_the_layers(monkeypatch):
    change = [(i // 2, torch.full((3,), 1.0 + i)) for i in range(20)]
    copies, cpu = [], torch.Tensor.cpu
    monkeypatch.setattr(torch.Tensor, "cpu", lambda tensor: copies.append(tensor.shape) or cpu(tensor))
    norms = change_norms(change, 10)
    assert len(copies) == 1
    np.testing.assert_allclose(norms, [(3 * ((1 + i) ** 2 + (2 + i) ** 2)) ** 0.5 for i in range(0, 20, 2)])
    assert change_norms([], 2).tolist() == [0, 0]


def test_random_directions_are_as_long_as_the_update_in_every_part_and_at_every_position(bench):
    tuned = bench.learned("gd", LEARNER).trace
    made = RandomDirections().trace(bench, "gd", LEARNER, bench.learned("gd", LEARNER))
    for name in ("outputs", "blocks", "logits"):
        start = getattr(bench.zero, name).double()
        one, two = (getattr(trace, name).double() - start for trace in (made, tuned))
        torch.testing.assert_close(one.norm(dim=-1), two.norm(dim=-1), rtol=1e-5, atol=1e-9)
    hidden = ~bench.zero.keys[:, None, :, None].expand_as(bench.zero.logits)
    assert torch.equal(made.logits[hidden], bench.zero.logits.double()[hidden])  # where there is no key


def test_another_querys_update_is_that_of_one_and_the_same_query_in_every_part(bench):
    tuned = bench.learned("gd", LEARNER).trace
    made = OtherQuery().trace(bench, "gd", LEARNER, bench.learned("gd", LEARNER))
    found = {}
    for name in ("outputs", "blocks"):
        start = getattr(bench.zero, name).double()
        one, two = (getattr(trace, name).double() - start for trace in (made, tuned))
        found[name] = [int((two - row).flatten(1).norm(dim=-1).argmin()) for row in one]
    assert found["outputs"] == found["blocks"]
    assert sorted(found["outputs"]) == list(range(8))
    assert made.logits.shape == tuned.logits.shape


def test_the_papers_uniform_numbers_are_an_update_between_0_and_1(bench):
    made = Uniform().trace(bench, "gd", LEARNER, bench.learned("gd", LEARNER))
    update = made.outputs - bench.zero.outputs.double()
    assert (update.min() >= -1e-6) & (update.max() <= 1)
    assert float(update.mean()) == pytest.approx(0.5, abs=0.02)


def test_filler_has_no_labels_and_needs_demonstrations(bench):
    assert all(demo.label == () for demo in Filler().demos(bench))
    empty = Bench(bench.subject, replace(bench.episode, demos=()), PromptSpec(), 3, bench.draw, lambda what, done: None)
    with pytest.raises(Refusal, match="no demonstrations to replace"):
        Filler().demos(empty)


@pytest.mark.parametrize("null", [RandomDirections(), Uniform(), OtherQuery()])
def test_a_learner_that_diverged_has_no_null_either(bench, null):
    assert null.trace(bench, "gd", LEARNER, replace(bench.learned("gd", LEARNER), trace=None)) is None


def test_weight_noise_needs_to_know_which_weights_a_learner_changed(bench):
    run = bench.learned("gd", LEARNER)
    for learner, ran in ((LEARNER, replace(run, change=[])), (InContext(), run)):
        with pytest.raises(Refusal, match="does not say which weights"):
            WeightNoise().trace(bench, "gd", learner, ran)


@pytest.mark.parametrize("null", [RandomDirections(), OtherQuery()], ids=["random", "other query"])
def test_a_null_moves_attention_to_the_keys_that_a_position_has_and_to_no_other(bench, null):
    """The label word is a key at its own position, and none at the prompt's last token."""
    found = null.trace(bench, "gd", LEARNER, bench.learned("gd", LEARNER)).logits
    moved = (found != bench.zero.logits.double()).any(1).any(2)  # query position key
    keys = bench.zero.keys
    assert (keys[:, 1].sum(-1) > keys[:, 0].sum(-1)).all()
    assert not moved[~keys].any()
    assert moved[:, 1][keys[:, 1] & ~keys[:, 0]].any()
