"""A model that lies on two devices gives the numbers of one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from iclgd.labs.compare.spec import CompareSpec
from iclgd.running import Where, run_study
from little import little_model, little_task

PLACES = {"model.embed_tokens": 0, "model.layers.0": 0, "model.layers.1": 1, "model.layers.2": 0}
PLACES |= {"model.norm": 1, "model.rotary_emb": 0, "lm_head": 1}


@pytest.mark.parametrize(
    "devices",
    [
        ("cpu", "cpu"),  # all that moves tensors between devices is at work, with nothing to do
        pytest.param(("cuda:0", "cpu"), marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")),
        pytest.param(("cpu", "cuda:0"), marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")),
        pytest.param(("cuda:0", "cuda:1"), marks=pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")),
    ],
    ids="-".join,
)
def test_a_whole_comparison_on_a_model_over_two_devices_is_that_on_one(tmp_path, devices):
    """Reading, training, nulls, contrast and floor; a GPU rounds otherwise than a CPU, so not to the last bit."""
    where = json.dumps({part: devices[index] for part, index in PLACES.items()})
    task = little_task(tmp_path)
    spec = {
        "k": 3,
        "queries": 5,
        "task": str(task),
        "model": str(little_model(tmp_path / "model")),
        "dtype": "float64",
        "device": "cpu",
    }
    plain = run_study("compare", CompareSpec.of(spec), Where(tmp_path / "one"))
    spread = run_study("compare", CompareSpec.of({**spec, "device_map": where}), Where(tmp_path / "two"))
    assert spread.keys == plain.keys
    assert spread.fresh == len(set(plain.keys))
    for one, two in zip(plain.results.values(), spread.results.values(), strict=True):
        assert [a.labels for a in one.arrays] == [a.labels for a in two.arrays]
        for a, b in zip(one.arrays, two.arrays, strict=True):
            if devices == ("cpu", "cpu"):
                np.testing.assert_array_equal(a.values, b.values, err_msg=str(a.labels))
            elif "floor" not in a.labels:  # which is made of rounding
                np.testing.assert_allclose(a.values, b.values, rtol=1e-4, atol=1e-5, err_msg=str(a.labels))


def test_labs_on_a_model_over_two_devices_are_those_on_one(tmp_path):
    """Two kinds of device between which torch refuses to compute, on a machine with one (see elsewhere.py)."""
    script = Path(__file__).with_name("two_devices.py")
    alone = os.environ | {"OMP_NUM_THREADS": "1"}  # with one thread texts are packed, where a model is on a CPU alone
    done = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True, timeout=540, env=alone)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("is equal to one device") == 4
