"""An output that cannot be written, or cannot say a letter, costs no result."""

import errno
import os
import subprocess

import pytest

from hard import at_home, command, surroundings
from iclgd.cli import main


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    return at_home(tmp_path, monkeypatch)


LOUD = """
import toy
from dataclasses import replace
def page(study, own=toy.page):
    return replace(own(study), answer="Δ ≈ −1: " + own(study).answer)
object.__setattr__(toy.LABS["toy"], "page", page)
"""


def test_an_output_that_cannot_say_a_letter_gets_its_number(place):
    (place / "loud.py").write_text(LOUD)
    asked = command("toy", "--plugin", "loud.py", "--seeds", 2, "--out", "out")
    done = subprocess.run(asked, env=surroundings(PYTHONIOENCODING="cp1252"), capture_output=True, cwd=place)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr
    assert rb"\u0394 \u2248 \u22121: The mean is" in done.stdout
    assert "Δ ≈ −1: The mean is" in (place / "out/page.md").read_text(encoding="utf-8")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("asked", [("toy", "--seeds", 2, "--out", "out"), ("study", "run", "g.yaml", "--out", "out")])
def test_an_output_that_is_full_costs_no_result(place, asked):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command(*asked), env=surroundings(), stdout=full, stderr=subprocess.PIPE, text=True, cwd=place
        )
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if line.startswith("iclgd: ")]
    assert said == ["iclgd: the output cannot be written (No space left on device); what was run is kept."]
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert (place / "out/index.html").is_file()


def test_an_error_that_is_not_the_outputs_keeps_its_traceback(monkeypatch):
    def broken(*_, **__):
        raise OSError(errno.ENOSPC, "elsewhere")

    monkeypatch.setattr("iclgd.cli.forms.say", broken)
    with pytest.raises(OSError, match="elsewhere"):
        main(["tasks"])
