"""What words alone say of devices is told without torch."""

import subprocess
import sys

import pytest

from iclgd.errors import Refusal
from iclgd.models.places import check_where, devices, places
from iclgd.spec import ModelSpec


def spec(**given: str) -> ModelSpec:
    return ModelSpec(name="smollm2-135m", **given)


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda", "cuda:1", "mps", "meta"])
def test_what_may_be_a_device_somewhere_is_left_to_torch(device):
    check_where(spec(device=device))


@pytest.mark.parametrize("device", ["toaster", "", "cuda:", "cuda:x", "cpu ", "CPU"])
def test_what_is_no_device_anywhere_is_refused(device):
    with pytest.raises(Refusal, match="is not available here: set `device` to cpu"):
        check_where(spec(device=device))


def test_a_map_names_devices_that_compute():
    found = places(spec(device_map='{"model": "cuda:0", "head": 1, "tail": "cpu"}'))
    assert found == {"model": "cuda:0", "head": 1, "tail": "cpu"}
    assert devices(found) == {"cuda:0", "cpu"}
    assert (places(spec(device_map="balanced")), devices("balanced")) == ("balanced", set())
    assert devices(places(spec(device_map="cpu"))) == {"cpu"}
    for wrong, told in (
        ("{", "is not valid JSON"),
        ('{"": "disk"}', "puts a part on the disk"),
        ('{"": "toaster"}', '"toaster" is not available here: set `device_map`'),
        ("nonsense", '"nonsense" is not available here: set `device_map`'),
    ):
        with pytest.raises(Refusal, match=told):
            check_where(spec(device_map=wrong))


def test_a_processor_has_no_tf32():
    with pytest.raises(Refusal, match="tf32 is the arithmetic of a GPU"):
        check_where(spec(dtype="tf32", device="cpu"))
    check_where(spec(dtype="tf32", device="auto"))  # there may be a GPU


def test_it_is_told_without_torch():
    code = "import sys, iclgd.models.places; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
