"""What nulls say of themselves, and what they take for the learner, on small planted things."""

from dataclasses import FrozenInstanceError, replace

import pytest

from iclgd.errors import Refusal
from iclgd.labs.compare.spec import USUAL_NULLS
from iclgd.nulls import NULLS, Null
from iclgd.nulls.trained import OtherDemos, OtherTask, TwoWrongs
from iclgd.spec import EpisodeSpec
from iclgd.tasks.episodes import load_episode

# title, trains, side, only, drawn, control, version (cells that are kept count for it)
DECLARED = {
    "random": ("random directions", False, "learner", (), True, False, 2),
    "uniform": ("uniform [0,1), as the papers' code", False, "learner", ("SimAOU",), False, False, 2),
    "other-query": ("another query's update", False, "learner", (), True, False, 1),
    "weight-noise": ("weight noise of the same size", True, "learner", (), False, False, 2),
    "filler": ("reading filler of the same length", True, "reading", (), False, False, 1),
    "read-wrong-labels": ("reading wrong labels", True, "reading", (), False, False, 1),
    "wrong-labels": ("trained on wrong labels", True, "learner", (), False, False, 1),
    "shuffled-labels": ("trained on shuffled labels", True, "learner", (), False, False, 1),
    "two-wrongs": ("two wrong labelings (a control)", True, "learner", ("no update",), False, True, 1),
    "other-demos": ("trained on other demonstrations", True, "learner", (), False, False, 1),
    "other-task": ("trained on another task", True, "learner", (), False, False, 1),
}


@pytest.mark.parametrize("name", DECLARED)
def test_every_null_says_what_it_is(name):
    null = NULLS[name]
    said = (null.title, null.trains, null.side, tuple(null.only), null.drawn, null.control, null.version)
    assert said == DECLARED[name]


@pytest.mark.parametrize("name", DECLARED)
def test_a_null_is_what_its_options_say_and_cannot_be_changed(name):
    one, two = NULLS[name](), NULLS[name]()
    assert one == two
    assert hash(one) == hash(two)
    with pytest.raises((FrozenInstanceError, AttributeError)):
        one.task = "x"


def test_a_null_of_ones_own_replaces_the_learner_and_is_drawn_unless_it_says_otherwise():
    class Mine(Null):
        pass

    assert (Mine.title, Mine.trains, Mine.side, Mine.only, Mine.drawn, Mine.control) == (
        *("", False, "learner", ()),
        *(True, False),
    )
    assert Mine.version == 1


def test_which_task_stands_in_for_which():
    def stands_in(task, given="continents"):
        return OtherTask(given).source(task, 5, 7)[0]

    assert [stands_in(task) for task in ("sst2", "continents", "kinds")] == ["continents", "sentiment", "continents"]
    assert [stands_in("kinds", "kinds"), stands_in("sentiment", "sentiment")] == ["sentiment", "continents"]
    assert stands_in("sst2", "sst2") == "sentiment"
    usual = [choice.partition("task=")[2] or "continents" for choice in USUAL_NULLS if choice.startswith("other-task")]
    for task in ("sentiment", "kinds", "continents", "sst2"):
        assert len({task, *(stands_in(task, given) for given in usual)}) == 1 + len(usual) == 3
    assert [stands_in("continents", "sentiment"), stands_in("sst2", "sentiment")] == ["sentiment"] * 2
    drawn = [OtherTask().source("sst2", k, 7)[1] for k in (5, 64, 65)]
    assert [(spec.k, spec.seed, spec.queries) for spec in drawn] == [(5, 7, 1), (64, 7, 1), (64, 7, 1)]


def test_two_wrong_labelings_take_the_next_class_and_the_one_after():
    episode = load_episode("kinds", EpisodeSpec(k=6, queries=2))
    classes = len(episode.task.labels)
    for by, made in enumerate(TwoWrongs().labelings(episode), 1):
        assert [demo.label for demo in made.demos] == [(demo.label + by) % classes for demo in episode.demos]
        assert [demo.fields for demo in made.demos] == [demo.fields for demo in episode.demos]
        assert made.queries == episode.queries


def test_other_demonstrations_are_drawn_by_a_seed_that_no_study_takes():
    asked = []
    plain = load_episode("kinds", EpisodeSpec(k=2, queries=1))
    episode = replace(plain, redraw=lambda seed: asked.append(seed) or plain)
    OtherDemos().others(episode, 5)
    OtherDemos().others(episode, 2**32 - 1)
    assert asked == [2**31 + 5, 2**31 - 1]
    with pytest.raises(Refusal, match="no other demonstrations"):
        OtherDemos().others(replace(episode, redraw=None), 5)
