"""Episodes: a seed always gives the same one, and a file carries it to any other program."""

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iclgd.errors import Refusal
from iclgd.spec import EpisodeSpec
from iclgd.tasks.episodes import Episode, draw, episode_text, load_episode, read_episode
from iclgd.tasks.sources import Examples
from iclgd.tasks.text import Example, TextTask

TASK = TextTask(
    name="mine", version=3, title="t", source="s", template="Sentence: {text} Label:", labels=("no", "yes", "maybe")
)


def examples(train: int = 90, queries: int = 40) -> Examples:
    made = [Example({"text": f"sentence {i}"}, i % 3) for i in range(train + queries)]
    return Examples(tuple(made[:train]), tuple(made[train:]), "here", "0")


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch):
    monkeypatch.delenv("ICLGD_DATA", raising=False)


def test_a_seed_gives_the_same_episode_in_every_version():
    """Golden: if this changes, every stored number means something else. Raise the task's version instead."""
    spec = EpisodeSpec(k=8, seed=3, queries=5, query_seed=1)
    plain, balanced = (draw(TASK, examples(), spec.model_copy(update={"balanced": b})) for b in (False, True))
    assert plain.sha256() == "87f1d58151c6c1763a745d7dfe9ec5ec267e6d3943bd16fe2a385769df50b403"
    assert balanced.sha256() == "25638bd5a0328f7aa29fd9dff0f58770704c9c779d45b2e2b4a78cdce5ce05bf"


def test_embedded_episodes_are_the_same_in_every_version():
    found = {name: load_episode(name, EpisodeSpec()).sha256()[:16] for name in ("sentiment", "kinds", "continents")}
    assert found == {"sentiment": "95e973730603c924", "kinds": "bdc5b0cc4fd92989", "continents": "32d89a3c560f6eab"}


def test_demonstrations_and_queries_have_seeds_of_their_own():
    one, other = (draw(TASK, examples(), EpisodeSpec(k=6, queries=6, seed=seed)) for seed in (0, 1))
    assert one.demos != other.demos
    assert one.queries == other.queries
    third = draw(TASK, examples(), EpisodeSpec(k=6, queries=6, seed=0, query_seed=2))
    assert third.demos == one.demos
    assert third.queries != one.queries


def test_fewer_demonstrations_of_a_seed_are_the_first_ones():
    few, many = (draw(TASK, examples(), EpisodeSpec(k=k, queries=1)) for k in (4, 12))
    assert many.demos[:4] == few.demos


@given(st.integers(0, 60), st.integers(0, 2**32 - 1))
@settings(max_examples=50)
def test_a_balanced_draw_has_classes_that_differ_by_at_most_one(k, seed):
    demos = draw(TASK, examples(), EpisodeSpec(k=k, seed=seed, queries=1, balanced=True)).demos
    counts = [Counter(demo.label for demo in demos)[label] for label in range(3)]
    assert sum(counts) == k == len({demo.fields["text"] for demo in demos})
    assert max(counts) - min(counts) <= 1


def test_a_balanced_draw_is_not_sorted_by_class():
    labels = [d.label for d in draw(TASK, examples(), EpisodeSpec(k=30, queries=1, balanced=True)).demos]
    assert labels != sorted(labels)


def test_more_demonstrations_than_there_are_are_refused():
    with pytest.raises(Refusal, match="91 demonstrations were asked for, but the training split of mine has 90"):
        draw(TASK, examples(), EpisodeSpec(k=91, queries=1))


def test_a_task_with_fewer_queries_than_asked_for_gives_all_it_has():
    asked = draw(TASK, examples(), EpisodeSpec(k=1, queries=100)).queries
    assert {e.fields["text"] for e in asked} == {e.fields["text"] for e in examples().queries}


def test_a_balanced_draw_from_a_rare_class_is_refused_by_its_word():
    rare = tuple(e for e in examples().train if e.label != 2 or e.fields["text"] == "sentence 2")
    with pytest.raises(Refusal, match='needs 4 examples of "maybe", but mine has 1'):
        draw(TASK, Examples(rare, examples().queries, "here", "0"), EpisodeSpec(k=12, queries=1, balanced=True))


@given(st.lists(st.tuples(st.text(), st.integers(0, 2)), min_size=1, max_size=6))
@settings(max_examples=30)
def test_an_episode_file_gives_back_the_episode(tmp_path_factory, pairs):
    made = tuple(Example({"text": text}, label) for text, label in pairs)
    episode = Episode(TASK, made, made[:1], "here")
    path = tmp_path_factory.mktemp("episode") / "episode.json"
    path.write_text(episode_text(episode), encoding="utf-8")
    found = read_episode(path)
    assert (found.demos, found.queries) == (episode.demos, episode.queries)
    assert found.sha256() == episode.sha256()
    assert found.task.prompt(made[0].fields) == TASK.prompt(made[0].fields)


def test_an_episode_file_is_an_episode_whatever_is_asked_for(tmp_path):
    episode = draw(TASK, examples(), EpisodeSpec(k=5, queries=3))
    (tmp_path / "e.json").write_text(episode_text(episode), encoding="utf-8")
    assert load_episode(str(tmp_path / "e.json"), EpisodeSpec()).demos == episode.demos


def test_the_hash_names_order_labels_wording_and_queries():
    episode = draw(TASK, examples(), EpisodeSpec(k=6, queries=3))
    reworded = Episode(TASK.model_copy(update={"template": "{text}"}), episode.demos, episode.queries, "here")
    others = [
        episode.permuted(1),
        episode.with_shuffled_labels(1),
        reworded,
        Episode(TASK, episode.demos, episode.queries[::-1], "here"),
    ]
    assert len({episode.sha256(), *(other.sha256() for other in others)}) == 5


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_permuting_and_shuffling_labels_keep_what_they_should(seed):
    episode = draw(TASK, examples(), EpisodeSpec(k=9, queries=1))
    permuted, shuffled = episode.permuted(seed), episode.with_shuffled_labels(seed)
    assert sorted(d.fields["text"] for d in permuted.demos) == sorted(d.fields["text"] for d in episode.demos)
    assert {(d.fields["text"], d.label) for d in permuted.demos} == {(d.fields["text"], d.label) for d in episode.demos}
    assert [d.fields for d in shuffled.demos] == [d.fields for d in episode.demos]
    assert Counter(d.label for d in shuffled.demos) == Counter(d.label for d in episode.demos)


def good_file() -> dict:
    example = {"fields": {"text": "a"}, "label": 0}
    return {
        "format": "iclgd-episode-1",
        "task": "mine",
        "version": 1,
        "template": "{text}:",
        "join": " ",
        "labels": ["no", "yes"],
        "demonstrations": [example],
        "queries": [example],
    }


@pytest.mark.parametrize(
    "changes, complaint",
    [
        ({"format": "iclgd-episode-9"}, "format"),
        ({"queries": []}, "queries"),
        ({"labels": ["only"]}, "labels"),
        ({"labels": None}, "labels"),
        ({"more": 1}, "more"),
        ({"queries": [{"fields": {"text": "a"}, "label": 2}]}, "a label must be below 2, which 2 is not"),
        ({"demonstrations": [{"fields": {"txt": "a"}, "label": 0}]}, 'an example needs the field "text"'),
    ],
)
def test_a_bad_episode_file_is_refused_with_what_is_wrong(tmp_path, changes, complaint):
    path = tmp_path / "e.json"
    path.write_text(json.dumps({**good_file(), **changes}))
    with pytest.raises(Refusal, match="is not an episode file") as refused:
        read_episode(path)
    assert complaint in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff"])
def test_a_file_that_is_no_json_object_is_refused(tmp_path, content):
    path = tmp_path / "e.json"
    path.write_bytes(content)
    with pytest.raises(Refusal, match="is not an episode file"):
        read_episode(path)


def test_a_missing_episode_file_is_refused(tmp_path):
    with pytest.raises(Refusal, match="cannot read .*none.json: No such file"):
        read_episode(tmp_path / "none.json")
