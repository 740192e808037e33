"""An empty folder to work in, with a study file."""

import pytest
from little_grid import TEXT

import toy


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ICLGD_STORE", raising=False)
    (tmp_path / "mine.yaml").write_text(TEXT)
    toy.RAN.clear()
    return tmp_path


@pytest.fixture
def done(place, capsys):
    """The same after the study was run."""
    from said import run

    assert run(capsys, "study", "run", "mine.yaml")[0] == 0
    toy.RAN.clear()
    return place
