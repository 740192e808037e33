"""A bench of a tiny model and a little task."""

import pytest

from iclgd.bench import Bench
from iclgd.spec import EpisodeSpec, PromptSpec
from iclgd.tasks.episodes import load_episode
from little import little_task
from tiny import tiny_subject


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    task = little_task(tmp_path_factory.mktemp("task"))
    subject, episode = tiny_subject("llama"), load_episode(str(task), EpisodeSpec(k=6, queries=8))

    def draw(name, spec):
        return load_episode(str(task), spec)

    return Bench(subject, episode, PromptSpec(), 3, draw, lambda what, done: None)
