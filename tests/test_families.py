"""One whole cell of a comparison on every supported family, in float32 and bfloat16."""

from pathlib import Path
from typing import Any

import pytest
import torch
from iclgd.run import run_cell

from iclgd.models.subject import Subject
from iclgd.spec import EpisodeSpec, LearnerSpec
from little import little_cell, little_task
from tiny import ARCHITECTURES, tiny_subject

GD, LCGD = LearnerSpec(kind="gd", rate=0.01), LearnerSpec(kind="lcgd", rate=0.01)


def whole_cell(subject: Subject, folder: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Both learners with every null and the noise floor on two demonstrations and two queries: arrays and facts."""
    cell = little_cell(
        folder / "unused",
        folder / "mine.yaml",
        GD,
        LCGD,
        episode=EpisodeSpec(k=2, queries=2),
        trained_nulls=True,
        floor=True,
        other_task=str(folder / "other.yaml"),
    )
    found = run_cell(subject, cell)
    return found.arrays, dict(found.facts)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("families")
    little_task(made)
    little_task(made, "other", ("red", "blue"))
    return made


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_whole_cell_runs_on_every_family(architecture, dtype, folder):
    subject = tiny_subject(architecture, dtype=dtype)
    before = subject.fingerprint()
    arrays, facts = whole_cell(subject, folder)
    assert subject.fingerprint() == before
    assert facts["diverged"] == []
    assert facts["nulls_left_out"] == {}
    for learner in ("gd 0.01", "lcgd 0.01"):
        for metric in ("SimAOU", "SimAM", "SimAM_Δ"):
            for what in ("", "|shuffled labels", "|other task", "|other batch", "|other precision"):
                found = arrays[f"{learner}/{metric}{what}"]
                assert found.shape[:2] == (2, 2), (learner, metric, what)
                assert bool(found[..., 1:].isfinite().all()), (learner, metric, what)
        if dtype == torch.float32:  # in float32 these updates are no noise
            assert float(arrays[f"{learner}/SimAOU|other precision"].min()) > 0.99
