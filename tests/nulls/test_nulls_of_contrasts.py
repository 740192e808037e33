"""Contrasts on a bench and their nulls: what labels change, set against what they cannot."""

import pytest
import torch

from iclgd.bench import Run
from iclgd.errors import Refusal
from iclgd.learners.descent import GradientDescent
from iclgd.metrics.compared import contrast_aou, contrast_aou_centred, label_share
from iclgd.nulls.trained import OtherDemos, TwoWrongs
from iclgd.nulls.untrained import OtherQuery, RandomDirections
from iclgd.spec import EpisodeSpec
from iclgd.tasks.episodes import load_episode

LEARNER = GradientDescent(rate=0.05)


def test_two_wrong_labelings_need_three_classes_and_differ_everywhere(bench, tmp_path):
    with pytest.raises(Refusal, match="three classes"):
        TwoWrongs().labelings(bench.episode)
    episode = load_episode("kinds", EpisodeSpec(k=6, queries=2))
    one, two = TwoWrongs().labelings(episode)
    for right, a, b in zip(episode.demos, one.demos, two.demos, strict=True):
        assert len({right.label, a.label, b.label}) == 3


@pytest.fixture
def two_labelings(bench, monkeypatch):
    """Two classes have only one wrong labeling, so the right one stands in for the second."""
    labelings = (bench.episode.with_wrong_labels(bench.seed), bench.episode)
    monkeypatch.setattr(TwoWrongs, "labelings", lambda _self, _episode: labelings)


@pytest.mark.usefixtures("two_labelings")
def test_two_wrong_labelings_are_read_and_trained_on_and_set_against_each_other(bench):
    assert list(TwoWrongs().trained_on(bench, True)) == ["wrong labels 1", "wrong labels 2"]
    seen = TwoWrongs().contrast(bench, "two", LEARNER, bench.zero, bench.zero)
    assert seen.zero is bench.zero
    assert torch.equal(seen.icl.outputs, bench.icl_wrong.outputs)
    assert torch.equal(seen.icl_wrong.outputs, bench.icl.outputs)
    assert torch.equal(seen.tuned.outputs, bench.learned_wrong("gd", LEARNER).trace.outputs)
    assert torch.equal(seen.tuned_wrong.outputs, bench.learned("gd", LEARNER).trace.outputs)


@pytest.mark.usefixtures("two_labelings")
@pytest.mark.parametrize("null", [TwoWrongs(), OtherDemos()], ids=lambda null: type(null).__name__)
@pytest.mark.parametrize("diverged", [(True, False), (False, True), (True, True), (False, False)])
def test_a_contrast_needs_both_of_its_trainings(bench, null, diverged, monkeypatch):
    traces = [None if gone else trace for gone, trace in zip(diverged, (bench.icl, bench.icl_wrong), strict=True)]
    runs = iter([Run(trace) for trace in traces])
    monkeypatch.setattr(bench, "learned", lambda *_: next(runs))
    seen = null.contrast(bench, "gd", LEARNER, bench.zero, bench.zero)
    assert (seen is None) is any(diverged)
    if seen is not None:
        assert (seen.tuned, seen.tuned_wrong) == (bench.icl, bench.icl_wrong)


def test_the_contrast_of_another_query_is_that_querys_contrast(bench):
    right, wrong = bench.learned("gd", LEARNER).trace, bench.learned_wrong("gd", LEARNER).trace
    seen = OtherQuery().contrast(bench, "gd", LEARNER, right, wrong)
    made = (seen.tuned.outputs - seen.tuned_wrong.outputs)[:, 1, 0]
    true = (right.outputs - wrong.outputs).double()[:, 1, 0]
    order = [int((true - row).norm(dim=-1).argmin()) for row in made]
    assert sorted(order) == list(range(len(true)))
    assert all(place != other for place, other in enumerate(order))


def test_a_random_contrast_has_the_length_of_the_true_one(bench):
    right, wrong = bench.learned("gd", LEARNER).trace, bench.learned_wrong("gd", LEARNER).trace
    seen = RandomDirections().contrast(bench, "gd", LEARNER, right, wrong)
    made, true = (a.outputs.double() - b.outputs.double() for a, b in ((seen.tuned, seen.tuned_wrong), (right, wrong)))
    torch.testing.assert_close(made.norm(dim=-1), true.norm(dim=-1), rtol=1e-5, atol=1e-9)


def test_a_contrast_is_1_where_training_changes_what_reading_changes(bench):
    seen = bench.compared(bench.icl, wrong=bench.icl_wrong)
    assert torch.allclose(contrast_aou(seen), torch.ones(8, 3, dtype=torch.float64))
    flipped = bench.compared(bench.icl_wrong, wrong=bench.icl)
    assert torch.allclose(contrast_aou(flipped), -torch.ones(8, 3, dtype=torch.float64))
    assert torch.allclose(contrast_aou_centred(seen), torch.ones(8, 3, dtype=torch.float64))


def test_the_labels_share_is_the_contrasts_length_over_the_updates(bench):
    share = label_share(bench.compared(bench.icl, wrong=bench.icl_wrong))
    icl, wrong, zero = (t.outputs[4, 1, 0].double() for t in (bench.icl, bench.icl_wrong, bench.zero))
    assert share[4, 1] == pytest.approx(float((icl - wrong).norm() / (icl - zero).norm()))
