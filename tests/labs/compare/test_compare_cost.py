"""The arithmetic of a cell, guessed before it is run, beside what the run multiplied."""

import pytest
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from iclgd.lab import LABS
from iclgd.labs.compare.spec import CompareSpec
from iclgd.tools import Tools
from little import little_task
from tiny import tiny_model, tiny_tokenizer


class Counter(TorchDispatchMode):
    """Operations of everything that runs, backward passes included."""

    flops = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        if (count := flop_registry.get(func._overloadpacket)) is not None:
            self.flops += count(*args, **(kwargs or {}), out_val=found)
        return found


@pytest.fixture
def folder(tmp_path):
    tiny_model("llama").save_pretrained(tmp_path / "model")
    tiny_tokenizer().save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_a_guess_is_within_a_factor_of_a_few_of_what_is_multiplied(folder, tmp_path):
    asked = {"k": 6, "queries": 6, "task": str(little_task(tmp_path)), "model": str(folder), "device": "cpu"}
    spec = CompareSpec.of({**asked, "init": "trained", "floor": False})
    lab, tools = LABS["compare"], Tools()
    assert lab.flops is not None
    assert lab.run is not None
    for cell in spec.cells():
        guess = lab.flops(cell, tools)
        if "versus" in cell.labels:
            assert guess == 0
            continue
        tools.forget()
        with Counter() as counter:
            lab.run(cell, tools)
        assert 1 / 4 < guess / counter.flops < 4, cell.labels


def test_more_demonstrations_nulls_and_the_contrast_cost_more(folder, tmp_path):
    def cost(**more):
        asked = {"k": 2, "queries": 4, "task": str(little_task(tmp_path)), "model": str(folder), "learners": "gd"}
        cell = CompareSpec.of({"nulls": "none", "contrast": False, "floor": False, **asked, **more}).cells()[1]
        return LABS["compare"].flops(cell, Tools())

    plain = cost()
    assert cost(k=6) > plain
    assert cost(queries=6) > plain
    assert cost(contrast=True) == 2 * plain
    assert cost(nulls="wrong-labels,random") == 2 * plain  # random directions are not trained
    assert cost(floor=True) > plain
    assert cost(learners="lcgd") > plain
