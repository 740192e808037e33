"""Conversions of GGUF files are kept: made once, and again where one is not what was written."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from iclgd.models import gguf
from iclgd.models.gguf import converted, is_whole
from iclgd.models.load import recheck
from iclgd.spec import ModelSpec


@pytest.fixture
def conversions(tmp_path, monkeypatch) -> list[str]:
    """A GGUF file that converts to two small files; how often it was converted."""
    monkeypatch.setenv("ICLGD_CACHE", str(tmp_path / "cache"))
    (tmp_path / "model.gguf").write_bytes(b"GGUF and weights")
    made: list[str] = []

    def convert(path, folder):
        made.append(path.name)
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(b"weights")
        (folder / "config.json").write_text("{}")

    monkeypatch.setattr(gguf, "_convert", convert)
    return made


def damage_missing(folder):
    (folder / "model.safetensors").unlink()


def damage_changed(folder):
    (folder / "model.safetensors").write_bytes(b"Weights")


def damage_short(folder):
    (folder / "config.json").write_text("")


def damage_origin(folder):
    (folder / "origin.json").write_text("{")


def damage_no_origin(folder):
    (folder / "origin.json").unlink()


def test_a_whole_conversion_is_not_made_again(conversions, tmp_path):
    assert converted(tmp_path / "model.gguf") == converted(tmp_path / "model.gguf")
    assert len(conversions) == 1


def test_of_several_that_want_it_at_once_one_converts_and_the_others_wait(conversions, tmp_path, monkeypatch):
    quick = gguf._convert

    def slow(path, folder):
        time.sleep(0.3)
        quick(path, folder)

    monkeypatch.setattr(gguf, "_convert", slow)
    with ThreadPoolExecutor(4) as pool:
        folders = set(pool.map(converted, [tmp_path / "model.gguf"] * 4))
    assert len(conversions) == 1
    assert [is_whole(folder) for folder in folders] == [True]
    assert [path.name for path in folders.pop().parent.iterdir() if not path.is_dir()] == []  # no lock is left


@pytest.mark.parametrize("damage", [damage_missing, damage_changed, damage_short, damage_origin, damage_no_origin])
def test_a_conversion_that_is_not_what_was_written_is_made_again(conversions, tmp_path, damage):
    folder = converted(tmp_path / "model.gguf")
    assert is_whole(folder)
    damage(folder)
    assert not is_whole(folder)
    assert converted(tmp_path / "model.gguf") == folder
    assert len(conversions) == 2
    assert (folder / "model.safetensors").read_bytes() == b"weights"
    assert is_whole(folder)
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_a_file_that_changed_under_its_stamp_is_found_by_a_recheck(conversions, tmp_path):
    folder = converted(tmp_path / "model.gguf")
    weights, old = folder / "model.safetensors", 1_600_000_000_000_000_000
    os.utime(weights, ns=(old, old))
    assert is_whole(folder)
    weights.write_bytes(b"Weights")
    os.utime(weights, ns=(old, old))  # as a failing disk would
    assert is_whole(folder)
    recheck(ModelSpec(name=str(tmp_path / "model.gguf")))
    assert not is_whole(folder)
