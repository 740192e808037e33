"""The package computes what it computed when the golden files were made (make.py says how).

To the last bit where processor, torch and threads are those of the file, else to a tolerance. There the first layer
of a comparison of updates is only asked to be there: where positions are relative, or a window hides the
demonstrations, reading changes a first layer by rounding alone, and the direction of rounding is another one on
another machine. Kendall's τ has ties there, which rounding breaks.
"""

import pytest
import torch
from cases import CASES
from make import FOLDER, machine
from safetensors import safe_open

OTHER_MACHINE = 1e-3  # of an array's largest entry: updates are small differences of large numbers
OF_UPDATES = {"SimAOU", "SimAOU_norm", "SimAM_Δ", "τ", "α"}  # by position, query and layer
FITTED, ANOTHER_FIT = "preconditioned gd", 2e-2  # two steps fitted together: a search, which ends elsewhere elsewhere
SAME_MACHINE = 1e-5  # for "after layer" alone: one of its entries was seen to change its last bits with what ran before
ZERO = 1e-12  # below it a number is rounding alone


def stored(name: str) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    with safe_open(FOLDER / f"{name}.safetensors", "pt") as file:
        return {key: file.get_tensor(key) for key in file.keys()}, file.metadata()  # noqa: SIM118  the file itself is no mapping


def same_bits(found: torch.Tensor, golden: torch.Tensor) -> bool:
    """nan has many bit patterns and is the same as nan."""
    if found.dtype != golden.dtype or found.shape != golden.shape:
        return False
    if found.is_floating_point():
        found, golden = (torch.where(part.isnan(), torch.nan, part) for part in (found, golden))
    return torch.equal(bits(found), bits(golden))


def bits(array: torch.Tensor) -> torch.Tensor:
    return array.contiguous().flatten().view(torch.uint8)


def near(found: torch.Tensor, golden: torch.Tensor, share: float = OTHER_MACHINE) -> bool:
    if found.shape != golden.shape:
        return False
    found, golden = found.double(), golden.double()
    largest = golden.nan_to_num(0, 0, 0).abs().max()
    return torch.allclose(found, golden, rtol=0, atol=max(share * float(largest), ZERO), equal_nan=True)


def on_the_same_machine(key: str, found: torch.Tensor, golden: torch.Tensor) -> bool:
    return near(found, golden, SAME_MACHINE) if key.startswith("after layer") else same_bits(found, golden)


def on_another_machine(key: str, found: torch.Tensor, golden: torch.Tensor) -> bool:
    if OF_UPDATES.isdisjoint(key.split("/")):
        return near(found, golden, ANOTHER_FIT if FITTED in key else OTHER_MACHINE)
    return found.shape == golden.shape and near(found[..., 1:], golden[..., 1:])


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("name", CASES)
def test_numbers_are_those_of_the_golden_file(name: str) -> None:
    torch.set_num_threads(1)
    golden, where = stored(name)
    found = CASES[name]()
    assert set(found) == set(golden)
    here = where == machine()
    wrong = [
        key
        for key, array in golden.items()
        if not (on_the_same_machine if here else on_another_machine)(key, found[key], array)
    ]
    assert not wrong, f"{len(wrong)} of {len(golden)} arrays differ: {wrong[:8]}"


def test_every_golden_file_has_its_case() -> None:
    assert {path.stem for path in FOLDER.glob("*.safetensors")} == set(CASES)
