"""Cells of `implicit` on a tiny model and two little tasks, run once for all tests of them."""

import pytest
import torch
from little_implicit import SEED, trained_alone

from iclgd.labs.implicit.ground import Ground
from iclgd.labs.implicit.run import TRAINED, run
from iclgd.labs.implicit.spec import ImplicitSpec
from iclgd.models.subject import Subject
from iclgd.results import Result
from iclgd.spec import PromptSpec
from iclgd.tools import Tools, silent
from little import little_task
from tiny import tiny_subject

ASKED = {"k": 3, "queries": 5, "calibration": (1, 4), "ranks": (1, 2), "rates": (0.3,), "tokens": 3, "seeds": (SEED,)}


@pytest.fixture(scope="package")
def subject() -> Subject:
    return tiny_subject("llama")


@pytest.fixture(scope="package")
def spec(tmp_path_factory: pytest.TempPathFactory) -> ImplicitSpec:
    folder = tmp_path_factory.mktemp("tasks")
    task, other = little_task(folder), little_task(folder, "theirs", ("Group", "Word"))
    given = {"model": "memory:tiny", "task": str(task), "other": str(other), "init": "trained", **ASKED}
    return ImplicitSpec.of(given)


@pytest.fixture(scope="package")
def results(subject: Subject, spec: ImplicitSpec) -> dict[str, Result]:
    tools = Tools(subjects={"memory:tiny": subject})
    before = subject.fingerprint()
    found = {}
    for cell in spec.cells():
        found[f"{cell.labels['part']} {cell.labels.get('precision', '')}".strip()] = run(cell, tools)
        assert subject.fingerprint() == before
    return found


@pytest.fixture(scope="package")
def ground(subject: Subject, spec: ImplicitSpec) -> Ground:
    tools, cell = Tools(), spec.cells()[0].spec
    episode, other = (tools.episode(task, cell.episode) for task in (cell.task, cell.other))
    return Ground(subject, episode, other, PromptSpec(), SEED, 4, silent)


@pytest.fixture(scope="package")
def second(subject: Subject, ground: Ground) -> dict[str, torch.Tensor]:
    """Training's change of the second layer, of every kind of demonstrations, one by one."""
    return {demos: trained_alone(subject, ground.prompts[demos], 1) for demos in TRAINED}
