"""The terminal: numbers as people read them, and progress that only a person sees."""

import io
import os
import pty
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import iclgd
from iclgd.report import terminal
from iclgd.report.numbers import Number, Size, counted, number
from iclgd.report.pace import Guess
from iclgd.report.terminal import CellProgress, cell_progress, duration, say, working

DRAWN = """
import contextlib, io, time
from iclgd.report.terminal import cell_progress, working
with working("fetching") as note:
    note("unpacking")
    with contextlib.redirect_stderr(io.StringIO()):  # as while a noisy library is kept quiet
        time.sleep(0.4)
        note("still unpacking")
        time.sleep(0.4)
with cell_progress() as progress:
    progress.start(3)
    time.sleep(0.2)
    progress.begun("one", "seed 0")
    progress.doing("tracing", 7)
    time.sleep(0.3)
    progress.done("one")
    time.sleep(0.3)
    progress.ends("drawing figures")
    time.sleep(0.3)
print("the result")
"""


def drawn(terminal: bool) -> tuple[str, bytes]:
    """Output and error output of a program that shows progress, with a terminal for its error stream or without."""
    ours, theirs = pty.openpty() if terminal else os.pipe()
    environment = {**os.environ, "PYTHONPATH": str(Path(iclgd.__file__).parents[1]), "TERM": "xterm", "COLUMNS": "200"}
    process = subprocess.Popen(
        [sys.executable, "-c", DRAWN], env=environment, stdout=subprocess.PIPE, stderr=theirs, text=True
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # how a terminal says that the other side is gone
            break
        if not part:
            break
        seen += part
    out, _ = process.communicate(timeout=60)
    os.close(ours)
    assert process.returncode == 0
    return out, seen


def test_progress_is_drawn_on_a_terminal_and_goes_on_while_a_library_is_kept_quiet():
    out, seen = drawn(terminal=True)
    assert out == "the result\n"
    for words in (b"unpacking", b"still unpacking", b"1 running", b"tracing (7)", b"1 of 3 cells", b"drawing figures"):
        assert words in seen


def test_nothing_is_said_of_what_takes_a_moment_where_there_is_no_terminal():
    assert drawn(terminal=False) == ("the result\n", b"")


def test_a_line_is_said_every_few_seconds_where_there_is_no_terminal(monkeypatch, capsys):
    monkeypatch.setattr("iclgd.report.terminal.EVERY", 0.05)
    with cell_progress() as progress:
        progress.start(3)
        progress.doing("fetching weights", 0)
        time.sleep(0.2)
    with working("unpacking"):
        time.sleep(0.2)
    lines = capsys.readouterr().err.splitlines()
    assert lines.count("0 of 3 cells · fetching weights") >= 2
    assert lines.count("unpacking") >= 2
    assert set(lines) == {"0 of 3 cells · fetching weights", "unpacking"}


@pytest.mark.parametrize("passed, pause", [(0, 5), (99, 5), (200, 10), (1100, 55), (1300, 60), (90_000, 60)])
def test_lines_come_every_few_seconds_at_first_and_every_minute_after_hours(monkeypatch, passed, pause):
    clock, pauses = [0.0], []

    class Ended(threading.Event):
        def wait(self, timeout=None):
            pauses.append(timeout)
            return True

    def started(target, daemon):
        clock[0] = passed
        return SimpleNamespace(start=target)

    monkeypatch.setattr(terminal, "threading", SimpleNamespace(Event=Ended, Thread=started))
    monkeypatch.setattr(terminal, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    with terminal.shown(lambda: "it"):
        pass
    assert pauses == [pause]


def test_on_a_terminal_one_line_changes_and_has_a_bar(monkeypatch):
    class Screen(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", screen := Screen())
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")

    def shown(text: str) -> bool:
        """At last, on a machine that is busy."""
        end = time.monotonic() + 5
        while text not in screen.getvalue() and time.monotonic() < end:
            time.sleep(0.02)
        return text in screen.getvalue()

    with cell_progress() as progress:
        progress.start(4)
        for key in "ab":
            progress.done(key)
        assert shown("█" * 12 + "░" * 12 + " 2 of 4 cells")
    with working("unpacking [red]x\x1b") as note:
        note("still [red]x\x1b")
        assert shown("still [red]x\\x1b")  # no markup of ours, and no control character of theirs


def test_who_is_quiet_says_nothing(capsys, monkeypatch):
    monkeypatch.setattr(terminal, "EVERY", 0.01)
    with working("unpacking", quiet=True) as note, cell_progress(quiet=True) as progress:
        note("still")
        progress.start(3, expected=300.0)
        time.sleep(0.05)
    assert capsys.readouterr() == ("", "")


def test_an_estimate_is_said_before_the_start(capsys):
    with cell_progress() as progress:
        progress.start(40, expected=300.0)
    assert capsys.readouterr().err == "0 of 40 cells · about 5 min left · starting\n"


@pytest.mark.parametrize(
    "value, text",
    [(0.1491, ".149"), (1.2042, "1.204"), (-0.02, "-.020"), (-0.0001, ".000"), (10.5, "10.500"), (float("nan"), "n/a")],
)
def test_numbers_are_written_without_a_leading_zero(value, text):
    assert number(value) == text


def test_an_interval_stands_in_brackets_and_is_left_out_where_there_is_none():
    assert str(Number(0.149, 0.141, 0.157)) == ".149 [.141 .157]"
    assert str(Number(0.149)) == ".149"
    assert str(Number(0.5, digits=2, note="± .021")) == ".50 ± .021"
    assert str(Size(1.23456e-14)) == "1.235e-14"


def test_things_are_counted_in_words():
    assert [counted(1, "seed"), counted(3, "seed"), counted(2000, "query")] == ["1 seed", "3 seeds", "2,000 queries"]


def test_progress_has_cells_done_running_failed_and_left_and_what_is_done_now():
    progress = CellProgress()
    assert progress.line() == "starting"
    progress.start(4)
    progress.begun("a", "seed 0")
    assert progress.line() == "0 of 4 cells · 1 running · seed 0"
    progress.doing("tracing", 3)
    progress.doing("".join(["trac", "ing"]), 4)
    assert progress.line() == "0 of 4 cells · 1 running · tracing (7)"
    progress.begun("b", "seed 1")
    assert progress.line() == "0 of 4 cells · 2 running · seed 1"
    progress.failed("a")
    progress.lost("b")
    progress.doing("training", 1)
    assert progress.line() == "0 of 4 cells · 1 failed · training (1)"
    progress.begun("b", "seed 1")
    progress.done("b")
    progress.ends("drawing figures")
    assert progress.line() == "1 of 4 cells · 1 failed · drawing figures"


def test_cells_that_are_begun_after_others_are_counted_with_them():
    """As those of a part that reads another data folder."""
    progress = CellProgress()
    progress.start(1)
    progress.begun("a", "first")
    progress.done("a")
    progress.start(2)
    progress.begun("b", "second")
    assert progress.line().startswith("1 of 3 cells · 1 running")


def test_time_passes_from_the_first_start_on_and_a_later_one_does_not_begin_anew(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("iclgd.report.terminal.time.monotonic", lambda: clock[0])
    progress = CellProgress()
    clock[0] = 500.0  # weights were read
    progress.start(1, expected=1200.0)
    clock[0] = 800.0
    assert progress.line() == "0 of 1 cell · about 15 min left · starting"
    progress.done("a")
    progress.start(2, expected=1200.0)  # those of another part
    clock[0] = 830.0
    assert progress.line() == "1 of 3 cells · about 10 min left · starting"  # 300 s each, since the first took that


def test_the_time_left_comes_from_the_pace_of_this_run_and_before_that_from_an_estimate(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("iclgd.report.terminal.time.monotonic", lambda: clock[0])
    progress = CellProgress(bar=True)
    progress.start(4, expected=1000.0)
    clock[0] = 100.0
    assert progress.line() == "░" * 24 + " 0 of 4 cells · about 15 min left · starting"
    for key in "abc":
        progress.done(key)
    clock[0] = 106.0
    assert progress.line() == "█" * 18 + "░" * 6 + " 3 of 4 cells · about 27 s left · starting"
    progress.done("d")
    assert progress.line() == "█" * 24 + " 4 of 4 cells · starting"


@pytest.mark.parametrize("seconds, text", [(1, "1 s"), (89, "89 s"), (91, "2 min"), (5400, "1 h 30 min")])
def test_a_duration_is_said_in_two_units_at_most(seconds, text):
    assert duration(seconds) == text


def test_control_characters_are_made_visible(capsys):
    say("a\x1b[2Jb")
    assert capsys.readouterr().out == "a\\x1b[2Jb\n"


def test_the_time_left_of_unlike_cells_is_their_own_and_says_where_some_are_unknown(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("iclgd.report.terminal.time.monotonic", lambda: clock[0])
    progress = CellProgress()
    progress.start(3, guesses={"a": Guess("quick", None), "b": Guess("slow", 300.0), "c": Guess("slow", 300.0)})
    progress.begun("a", "first")
    assert progress.line() == "0 of 3 cells · 1 running · more than 10 min left · first"
    clock[0] = 2.0
    progress.done("a")
    progress.begun("b", "second")
    assert progress.line() == "1 of 3 cells · 1 running · about 10 min left · second"
