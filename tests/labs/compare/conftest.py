"""A tiny model and a little task, on which cells of a comparison are run."""

import pytest

from little import little_task
from tiny import tiny_subject


@pytest.fixture(scope="module")
def subject():
    return tiny_subject("llama")


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    return little_task(tmp_path_factory.mktemp("task"))
