"""One whole cell of a comparison on every supported family, in float32 and bfloat16."""

import numpy as np
import pytest
import torch

from iclgd.spec import EpisodeSpec
from little import little_cell, little_result, little_task
from tiny import ARCHITECTURES, tiny_subject


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
    nulls = ("wrong-labels", "shuffled-labels", f"other-task:task={folder / 'other.yaml'}")
    for learner in ("gd:rate=0.01", "lcgd:rate=0.01"):
        episode = EpisodeSpec(k=2, queries=2)
        cell = little_cell(folder / "mine.yaml", learner, episode=episode, nulls=nulls, floor=True)
        found = little_result(subject, cell)
        assert subject.fingerprint() == before
        assert found.facts["diverged"] is None
        assert found.facts["nulls_left_out"] == {}
        labels = [choice.label for choice in cell.spec.nulls]
        places = [{"null": None, "floor": None}, *({"null": label} for label in labels)]
        places += [{"floor": floor} for floor in ("other batch", "other precision")]
        for metric in ("SimAOU", "SimAM", "SimAM_delta"):
            for place in places:
                (one,) = found.select(metric=metric, **place)
                assert one.values.shape[:2] == (2, 2), (learner, metric, place)
                assert np.isfinite(one.values[..., 1:]).all(), (learner, metric, place)
        if dtype == torch.float32:  # in float32 these updates are no noise
            assert found.select(metric="SimAOU", floor="other precision")[0].values.min() > 0.99
