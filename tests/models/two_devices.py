"""Labs on a tiny model over two devices, beside the same on one; test_two_devices.py runs it in a process of its own.

python tests/models/two_devices.py FOLDER
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
import iclgd
from elsewhere import second_device
from iclgd.study import Study
from little import little_model, little_task

PARTS = "model.embed_tokens", "model.layers.0", "model.layers.1", "model.layers.2", "model.norm", "lm_head"
APART = {"float32": 1e-3, "float64": 1e-6}  # updates are small differences
TIES = 0.05  # tokens that stand twice have equal scores at the first layer, and rounding puts them in order
EVERYTHING = {"dtype": "float32", "queries": 5, "k": 3, "init": ["trained"]}
RIVALS: dict[str, Any] = {
    "learners": ["gd:trains=all", "task-vector", "static-patch", "in-context-vector", "function-vector"],
    "dtype": "float64",
    "init": ["random"],
    "nulls": ["random"],
    "contrast": False,
}
# lab, which parts are on the second device, options
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("compare", "001011", {}),
    ("compare", "110100", {"dtype": "float64", "nulls": ["weight-noise"], "contrast": False}),
    ("compare", "010101", RIVALS),
    ("implicit", "010101", {"queries": 6, "calibration": [4], "precisions": ["float64"], "tokens": 1}),
]


def studies(folder: Path, other: str) -> Iterator[tuple[str, Study, Study]]:
    model, task = little_model(folder / "model"), little_task(folder)
    for lab, spread, options in CASES:
        given = {**EVERYTHING, **options, "task": str(task), "model": str(model), "device": "cpu"}
        places = {part: ("cpu", other)[int(there)] for part, there in zip(PARTS, spread, strict=True)}
        places["model.rotary_emb"] = places["model.embed_tokens"]
        one, two = (
            getattr(iclgd, lab)(**given, device_map=where, store=folder / f"{lab} {spread} {number}")
            for number, where in enumerate((None, json.dumps(places)))
        )
        yield f"{lab} {spread}", one, two


def refuses_to_be_mixed(other: str) -> bool:
    try:
        torch.ones(2, device=other) + torch.ones(2)
    except RuntimeError as error:
        return f"tensors on cpu and {other}" in str(error)
    return False


def main(folder: Path) -> None:
    with second_device() as other:
        assert refuses_to_be_mixed(other)
        for name, one, two in studies(folder, other):
            assert two.keys == one.keys
            assert two.fresh == len(set(one.keys))
            for a, b in zip(one.results.values(), two.results.values(), strict=True):
                for x, y in zip(a.arrays, b.arrays, strict=True):
                    if "floor" not in x.labels:  # which is made of rounding
                        apart = TIES if x.labels.get("metric") == "tau" else APART[one.spec.dtype]
                        said = f"{name} {x.labels}"
                        np.testing.assert_allclose(x.values, y.values, rtol=apart, atol=apart, err_msg=said)
            print(name, "is equal to one device", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
