"""What tests of hard times share: a folder to be in, and commands as processes that know the toy lab."""

import os
import sys
from pathlib import Path

import pytest

import iclgd
import toy

SOURCE = Path(iclgd.__file__).parents[1]
GRID = "parts: {a: {lab: toy, seeds: 2}, b: {lab: toy, seeds: 2, k: 2}}\n"


def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, where this process is from here on, with a file of a grid."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ICLGD_STORE", raising=False)
    (tmp_path / "g.yaml").write_text(GRID)
    toy.RAN.clear()
    return tmp_path


def command(*args) -> list[str]:
    return [sys.executable, "-c", "import toy; from iclgd.cli import main; main()", *map(str, args)]


def surroundings(**more) -> dict[str, str]:
    path = os.pathsep.join([str(SOURCE), str(Path(toy.__file__).parent), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, **more}
