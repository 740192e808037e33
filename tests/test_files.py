"""Files are whole or not there."""

import errno
import os

import pytest

from iclgd.errors import Refusal
from iclgd.files import aside, check_output, check_writable, output_folder


def test_a_file_appears_only_when_it_is_finished(tmp_path):
    target = tmp_path / "a" / "file"
    with aside(target) as part:
        part.write_text("whole")
        assert not target.exists()
    assert target.read_text() == "whole"
    assert os.listdir(target.parent) == ["file"]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_nothing_remains_of_what_failed(tmp_path, failure):
    def fail() -> None:
        with aside(tmp_path / "file") as part:
            part.write_text("half")
            raise failure

    with pytest.raises(failure):
        fail()
    assert os.listdir(tmp_path) == []


def test_the_first_to_finish_wins(tmp_path):
    with aside(tmp_path / "folder") as slow:
        slow.mkdir()
        (slow / "x").write_text("slow")
        with aside(tmp_path / "folder") as fast:
            fast.mkdir()
            (fast / "x").write_text("fast")
    assert (tmp_path / "folder" / "x").read_text() == "fast"
    assert os.listdir(tmp_path) == ["folder"]


def test_a_full_disk_is_said_in_a_sentence(tmp_path):
    with pytest.raises(Refusal, match=r"cannot write .*file: No space left on device"), aside(tmp_path / "file"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert os.listdir(tmp_path) == []


def test_an_existing_output_folder_is_refused_unless_it_may_be_replaced(tmp_path):
    for text in ("first", "second"):
        check_output(tmp_path / "out", overwrite=text == "second")
        with output_folder(tmp_path / "out") as folder:
            (folder / text).write_text(text)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"second", ".iclgd"}
    assert os.listdir(tmp_path) == ["out"]
    with pytest.raises(Refusal, match="holds another study"):
        check_output(tmp_path / "out", overwrite=False)


def test_an_empty_folder_may_be_filled(tmp_path):
    (tmp_path / "out").mkdir()
    check_output(tmp_path / "out", overwrite=False)
    with output_folder(tmp_path / "out") as folder:
        (folder / "new").touch()
    assert (tmp_path / "out" / "new").exists()
    assert os.listdir(tmp_path) == ["out"]


def test_a_failed_replacement_leaves_the_old_folder_as_it_was(tmp_path):
    with output_folder(tmp_path / "out") as folder:
        (folder / "old").write_text("old")
    with pytest.raises(ValueError), output_folder(tmp_path / "out"):
        raise ValueError
    assert (tmp_path / "out" / "old").read_text() == "old"
    assert os.listdir(tmp_path) == ["out"]


def test_overwrite_never_replaces_a_folder_of_somebody_elses(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").touch()
    with pytest.raises(Refusal, match="was not written by iclgd"):
        check_output(tmp_path / "thesis", overwrite=True)
    with pytest.raises(Refusal, match="is a file"):
        check_output(tmp_path / "thesis" / "chapter.tex", overwrite=True)


def test_an_unwritable_place_is_refused_before_any_work(tmp_path):
    (tmp_path / "file").touch()
    for place in (tmp_path / "file" / "out", tmp_path / "file" / "deeper" / "out"):
        with pytest.raises(Refusal, match="is not a writable folder"):
            check_output(place, overwrite=False)
    with pytest.raises(Refusal, match="is not a writable folder"):
        check_output(type(tmp_path)("/proc/nothing/out"), overwrite=False)
    assert os.listdir(tmp_path) == ["file"]


def test_a_link_to_nothing_is_no_place_to_write_below(tmp_path):
    (tmp_path / "link").symlink_to("gone")
    for place in (tmp_path / "link", tmp_path / "link" / "deeper"):
        with pytest.raises(Refusal, match=r"link is a link to nothing; name another place"):
            check_writable(place, place)
    (tmp_path / "gone").mkdir()
    check_writable(tmp_path / "link", tmp_path / "link")


def test_checking_leaves_nothing_behind(tmp_path):
    check_output(tmp_path / "a" / "b", overwrite=False)
    assert os.listdir(tmp_path) == []
