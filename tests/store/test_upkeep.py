"""Keeping a store in order: damage is found, nothing that is needed goes, cells travel whole."""

import io
import os
import tarfile
import time

import pytest

import iclgd
import toy  # noqa: F401  registers the lab
from iclgd.files import HOST
from iclgd.store.cells import Store
from said import refused, run


@pytest.fixture
def place(tmp_path, monkeypatch, capsys):
    """A folder with one study of three cells, and three cells of none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ICLGD_STORE", raising=False)
    run(capsys, "toy", "--seeds", 3, "--out", "runs/kept")
    iclgd.toy(seeds=3, k=5)
    return tmp_path


def flip(path, at=-1):
    whole = bytearray(path.read_bytes())
    whole[at] ^= 1
    path.write_bytes(bytes(whole))


def test_checking_finds_every_damaged_cell_and_no_other(capsys, place):
    assert run(capsys, "store", "check")[:2] == (0, "6 cells, none damaged\n")
    store = Store(place / "runs/cells")
    first, second, third, *_ = store.names()
    flip(store.folder / first / "arrays.safetensors")
    flip(store.folder / second / "record.json", at=200)
    os.rename(store.folder / third, store.folder / f"{third[:-1]}{'0' if third[-1] != '0' else '1'}")
    code, out, _ = run(capsys, "store", "check")
    assert code == 1
    assert out.count("cannot be read") == 3
    assert "it is not the one its name says" in out
    assert "6 cells, 3 damaged" in out


def test_gc_only_counts_until_it_is_told_to_delete(capsys, place):
    out = run(capsys, "store", "gc", "--hours", 0)[1]
    assert out.startswith("3 cells (")
    assert "would be removed by --delete" in out
    assert len(Store(place / "runs/cells").names()) == 6
    assert run(capsys, "store", "gc", "--hours", 0, "--delete")[0] == 0
    assert len(Store(place / "runs/cells").names()) == 3
    assert iclgd.open("runs/kept").answer


def test_gc_keeps_the_cells_of_every_part_of_a_grid_and_those_that_are_young(capsys, place):
    (place / "g.yaml").write_text("parts: {a: {lab: toy, seeds: 3, k: 5}}\n")
    assert run(capsys, "store", "gc", "--delete")[1].startswith("0 cells")
    run(capsys, "study", "run", "g.yaml")
    assert run(capsys, "store", "gc", "--hours", 0, "--delete")[1].startswith("0 cells")
    (place / "runs/g/study.json").write_text("{")
    assert "which may name cells: nothing was removed" in refused(
        capsys, place, "store", "gc", "--hours", 0, "--delete"
    )
    assert len(Store(place / "runs/cells").names()) == 6


def test_gc_without_a_folder_of_studies_is_refused(capsys, place):
    assert "no study would keep its cells" in refused(capsys, place, "store", "gc", "--runs", "none", "--delete")


def test_what_killed_processes_left_is_swept_and_what_is_being_built_is_not(capsys, place):
    cells = place / "runs/cells"
    dead = os.fork()
    if dead == 0:
        os._exit(0)
    os.waitpid(dead, 0)
    gone = [cells / f".building-{dead}-{HOST}-x", cells / ".building-old", cells / ".building-7-elsewher-x"]
    stays = [cells / f".building-{os.getpid()}-{HOST}-x", cells / ".building-8-elsewher-x"]
    for path in (*gone, *stays):
        path.mkdir()
    for path in gone[1:]:
        os.utime(path, (time.time() - 4000,) * 2)
    assert "3 folders of killed processes would be removed" in run(capsys, "store", "gc")[1]
    run(capsys, "toy", "--seeds", 4)  # every run sweeps its store
    assert not any(path.exists() for path in gone)
    assert all(path.exists() for path in stays)


@pytest.mark.parametrize("target", ["cells.tar", "cells.tar.gz", "folder"])
def test_cells_travel_whole_and_nothing_that_is_there_is_touched(capsys, place, target):
    assert run(capsys, "store", "export", target, "--study", "runs/kept")[:2] == (0, f"3 cells in {target}\n")
    assert (
        run(capsys, "store", "import", target, "--store", "new")[1] == "3 cells taken in, 0 there already, 0 damaged\n"
    )
    new, old = Store(place / "new"), Store(place / "runs/cells")
    assert set(new.names()) == {key[:32] for key in iclgd.open("runs/kept").keys}
    before = {path: path.stat().st_mtime_ns for path in (place / "new").rglob("*")}
    assert (
        run(capsys, "store", "import", target, "--store", "new")[1] == "0 cells taken in, 3 there already, 0 damaged\n"
    )
    assert {path: path.stat().st_mtime_ns for path in (place / "new").rglob("*")} == before
    for name in new.names():
        assert (new.folder / name / "record.json").read_bytes() == (old.folder / name / "record.json").read_bytes()
    assert run(capsys, "toy", "--seeds", 3, "--store", "new", "--out", "again")[0] == 0


def test_one_cell_is_exported_by_how_its_key_begins_and_an_old_file_is_not_overwritten(capsys, place):
    name = Store(place / "runs/cells").names()[0]
    assert run(capsys, "store", "export", "one.tar", "--cell", name[:10])[1] == "1 cell in one.tar\n"
    assert "one.tar is there already" in refused(capsys, place, "store", "export", "one.tar")
    assert 'no cells begin with "zz"' in refused(capsys, place, "store", "export", "two.tar", "--cell", "zz")


def test_a_damaged_cell_is_neither_exported_nor_taken_in(capsys, place):
    run(capsys, "store", "export", "folder")
    flip(next((place / "folder").glob("*/arrays.safetensors")))
    code, out, _ = run(capsys, "store", "import", "folder", "--store", "new")
    assert code == 1
    assert "its numbers were altered" in out
    assert "5 cells taken in, 0 there already, 1 damaged" in out
    assert "its numbers were altered" in refused(capsys, place, "store", "export", "x.tar", "--store", "folder")


def test_an_archive_writes_nothing_but_cells_and_nowhere_else(capsys, place):
    run(capsys, "store", "export", "cells.tar")
    with tarfile.open("cells.tar", "a") as tar:
        for name in ("../evil", "/tmp/iclgd-evil", f"{'a' * 32}/evil", "evil", f"{'a' * 32}/../../evil"):
            info = tarfile.TarInfo(name)
            info.size = 4
            tar.addfile(info, io.BytesIO(b"evil"))
        link = tarfile.TarInfo(f"{'b' * 32}/record.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    assert run(capsys, "store", "import", "cells.tar", "--store", "new")[0] == 0
    assert len(list((place / "new").iterdir())) == 6
    assert list(place.rglob("evil")) == []


@pytest.mark.parametrize("content", [b"", b"nonsense" * 100, None], ids=["empty", "nonsense", "half"])
def test_what_is_no_archive_is_refused(capsys, place, content):
    run(capsys, "store", "export", "cells.tar")
    whole = (place / "cells.tar").read_bytes()
    (place / "x.tar").write_bytes(whole[: len(whole) // 2 + 300] if content is None else content)
    code, _, err = run(capsys, "store", "import", "x.tar", "--store", "new")
    assert code in (1, 2)
    assert err.count("\n") == (1 if code == 2 else 0)
    if (place / "new").exists():
        assert run(capsys, "store", "check", "--store", "new")[0] == 0
