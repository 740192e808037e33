"""Write down what the package computes today: `python tests/golden/make.py [--overwrite] [case ...]`.

One safetensors file for each case of cases.py, arrays as they were computed, with the machine they were computed on.
"""

import argparse
import os
import platform
import sys
from pathlib import Path

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")  # before torch, as the tests have it

import torch
from safetensors.torch import save_file

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent))  # tiny.py and little.py


def machine() -> dict[str, str]:
    """What the last bits depend on."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text().split("\n\n")[0].splitlines() if known.exists() else []
    said = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    parts = [said.get(name, "") for name in ("model name", "cpu family", "model")]
    cpu = " ".join(filter(None, parts)) or platform.processor()
    return {
        "cpu": f"{cpu} {torch.backends.cpu.get_cpu_capability()}",
        "torch": torch.__version__,
        "threads": str(torch.get_num_threads()),
        "onednn": os.environ.get("ONEDNN_MAX_CPU_ISA", ""),
    }


def main() -> None:
    from cases import CASES

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", nargs="*", help="all of them unless named")
    parser.add_argument("--overwrite", action="store_true", help="replace files that are there")
    given = parser.parse_args()
    names = given.case or list(CASES)
    unknown = [name for name in names if name not in CASES]
    if unknown:
        sys.exit(f"no case {', '.join(unknown)}; there are {', '.join(CASES)}.")
    there = [name for name in names if (FOLDER / f"{name}.safetensors").exists()]
    if there and not given.overwrite:
        sys.exit(f"golden files are there already: {', '.join(there)}; give --overwrite to replace them.")
    torch.set_num_threads(1)
    for name in names:
        arrays = {key: array.detach().cpu().clone().contiguous() for key, array in CASES[name]().items()}
        save_file(arrays, FOLDER / f"{name}.safetensors", machine())
        print(f"{name}: {len(arrays)} arrays")


if __name__ == "__main__":
    main()
