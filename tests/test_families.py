"""One whole cell of a comparison on every supported family, in float32 and bfloat16."""

from pathlib import Path
from typing import Any

import pytest
import torch

from iclgd.labs.compare.run import run
from iclgd.models.subject import Subject
from iclgd.results import Result
from iclgd.spec import EpisodeSpec
from little import little_cell, little_task, little_tools
from tiny import ARCHITECTURES, tiny_subject

LEARNERS = ("gd:rate=0.01", "lcgd:rate=0.01")
METRICS = ("SimAOU", "SimAM", "SimAM_delta", "contrast-AOU")


def whole_cell(subject: Subject, folder: Path) -> dict[str, Result]:
    """Zero-shot and icl, then both learners with every kind of null, contrast and noise floor."""
    asked: dict[str, Any] = {"task": folder / "mine.yaml", "episode": EpisodeSpec(k=2, queries=2), "floor": True}
    nulls = ("other-query", "weight-noise", "filler", "wrong-labels", f"other-task:task={folder / 'other.yaml'}")
    tools = little_tools(subject)
    found = {"icl": run(little_cell(contrast=True, **asked), tools)}
    for learner in LEARNERS:
        found[learner] = run(little_cell(learner=learner, nulls=nulls, contrast=True, **asked), tools)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("families")
    little_task(made)
    little_task(made, "other", ("red", "blue"))
    return made


FEW = ("llama", "gpt2", "gpt-neo", "falcon-alibi", "gpt-oss")  # registered and intercepted, K and V apart and fused
CASES = [
    *((architecture, torch.float32) for architecture in ARCHITECTURES),
    *((architecture, torch.bfloat16) for architecture in FEW),
    *(pytest.param(one, torch.bfloat16, marks=pytest.mark.slow) for one in ARCHITECTURES if one not in FEW),
]


@pytest.mark.parametrize("architecture, dtype", CASES)
def test_a_whole_cell_runs_on_every_family(architecture, dtype, folder):
    subject = tiny_subject(architecture, dtype=dtype)
    before = subject.fingerprint()
    results = whole_cell(subject, folder)
    assert subject.fingerprint() == before
    for learner in LEARNERS:
        facts = results[learner].facts
        assert facts["diverged"] is None
        assert facts["nulls_left_out"] == {}
        for metric in METRICS:
            (own,) = results[learner].select(metric=metric, null=None, floor=None)
            nulls = [
                one for one in results[learner].arrays if one.labels.get("metric") == metric and "null" in one.labels
            ]
            for one in (own, *nulls):
                assert one.values.shape[:2] == (2, 2), one.labels
                assert bool(torch.from_numpy(one.values[..., 1:]).isfinite().all()), one.labels
        if dtype == torch.float32:  # in float32 these updates are no noise
            (again,) = results[learner].select(metric="SimAOU", floor="other precision")
            assert float(again.values.min()) > 0.99
