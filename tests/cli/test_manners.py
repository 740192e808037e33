"""Manners: what a newcomer once stumbled over, each seen in use, each with the answer it should have had."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import iclgd
import toy
from iclgd.errors import Refusal, visible
from iclgd.labs.compare.spec import CompareSpec
from iclgd.labs.languages.spec import RunSpec
from iclgd.report.numbers import counted
from little import little_model, little_task
from said import refused, run

SOURCE = Path(iclgd.__file__).parents[1]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ICLGD_DATA", raising=False)
    return tmp_path


def other_process(code: str, **more: str) -> subprocess.CompletedProcess:
    path = os.pathsep.join([str(SOURCE), str(Path(toy.__file__).parent)])
    environment = {**os.environ, "PYTHONPATH": path, **more}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)


def test_an_empty_model_name_is_called_that(capsys, place):
    assert "no model was named: `iclgd models` lists the embedded ones" in refused(capsys, place, "doctor", "")


def test_a_bad_row_is_named_by_its_line_in_the_file(capsys, place):
    file = little_task(place)
    lines = (place / "mine.csv").read_text().splitlines()
    lines[41] = "good red,maybe"
    (place / "mine.csv").write_text("\n".join(lines) + "\n")
    assert "mine.csv, line 42: the label 'maybe' must be a label word" in refused(capsys, place, "tasks", file)


def test_a_data_folder_that_is_a_file_is_called_a_file(capsys, place):
    (place / "rows.jsonl").touch()
    said = refused(capsys, place, "tasks", "sst2", "--data", "rows.jsonl")
    assert said == "iclgd: the data folder rows.jsonl is a file: name the folder that holds sst2/ with --data.\n"
    assert "does not exist: name the folder" in refused(capsys, place, "tasks", "sst2", "--data", "none")


def test_label_words_that_yaml_takes_for_truth_values_are_to_be_quoted(capsys, place):
    said = refused(capsys, place, "tasks", little_task(place, words=("Yes", "No")))
    assert 'line 6: "labels" takes a text; YAML reads a bare Yes, No, On or Off as true: write it in quotes' in said


@pytest.mark.parametrize(
    "words", [("trace", "--task"), ("compare", "--task"), ("trace", "--spec"), ("study", "run"), ("study", "plan")]
)
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders here")
def test_a_pipe_in_the_place_of_a_file_is_refused_at_once(capsys, place, words):
    os.mkfifo(place / "pipe.yaml")
    begun = time.monotonic()
    assert "it is a pipe or a device, not a file" in refused(capsys, place, *words, "pipe.yaml")
    assert time.monotonic() - begun < 20


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders here")
def test_a_pipe_in_the_place_of_examples_or_an_archive_is_refused_at_once(capsys, place):
    file = little_task(place)
    (place / "mine.csv").unlink()
    os.mkfifo(place / "mine.csv")
    os.mkfifo(place / "cells.tar")
    assert "it is a pipe or a device" in refused(capsys, place, "tasks", file)
    assert "it is a pipe or a device" in refused(capsys, place, "store", "import", "cells.tar", "--store", "cells")


def test_a_cache_that_cannot_be_written_is_no_paragraph_of_a_library(place):
    code = "from iclgd.cli import main; import toy; main(['toy', '--seeds', '2', '--out', 'o'])"
    code += "; import iclgd.report.figures"
    nowhere = {"HOME": os.devnull, "MPLCONFIGDIR": f"{os.devnull}/none", "XDG_CONFIG_HOME": "", "XDG_CACHE_HOME": ""}
    done = other_process(code, **nowhere)
    assert done.returncode == 0
    assert done.stderr == ""


def test_bidirectional_control_characters_are_spelled_out(capsys, place):
    assert visible("a\u202eb\u2066c\u200fd") == r"a\u202eb\u2066c\u200fd"
    file = little_task(place)
    file.write_text(file.read_text().replace("my own", '"\\u202Eyelp"'))
    out = run(capsys, "tasks", file)[1]
    assert "\u202e" not in out
    assert r"\u202eyelp" in out


def test_one_of_a_thing_is_singular(capsys, place):
    assert [counted(n, "query") for n in (1, 2, 1000)] == ["1 query", "2 queries", "1,000 queries"]
    model, file = little_model(place / "model"), little_task(place)
    code, out, _ = run(capsys, "trace", "--model", model, "--task", file, "--k", 1, "--queries", 1, "--out", "o")
    assert code == 0
    assert "1 query" in out
    for plural in ("1 queries", "1 demonstrations", "1 seeds", "1 cells"):
        assert plural not in out + (place / "o" / "page.md").read_text()


def test_a_task_file_is_shown_with_counts_classes_a_prompt_and_how_words_are_scored(capsys, place):
    out = run(capsys, "tasks", little_task(place))[1]
    table = [line.split() for line in out.splitlines()]
    found = {row[0]: row[1:] for row in table if row and row[0] in ("Negative", "Positive", "all")}
    assert [int(a) + int(b) for a, b in zip(found["Negative"], found["Positive"], strict=True)] == [
        int(n) for n in found["all"]
    ]
    assert sum(int(n) for n in found["all"]) == 60
    assert "Sentence: bad red Label: Negative" in out
    assert out.rstrip().endswith("Label:")
    assert "a label word of several tokens by the mean of their log-probabilities" in out


def test_a_word_that_the_report_puts_in_brackets_is_suggested_as_it_is_meant(capsys, place):
    said = refused(capsys, place, "languages", "sample", "--language", "(ab[c])*")
    assert "write c? if it may be left out, as the regular-languages report means it" in said


def test_languages_start_where_training_was_seen_to_arrive():
    """Drawn labels: near a step of GD; fixed ones at random, as the report did."""
    assert RunSpec.of({"labels": "sign"}).start == "gd"
    assert RunSpec.of({"labels": "language", "language": "random"}).start == "gd"
    assert RunSpec.of({}).start == "random"


def test_what_windows_lacks_is_not_needed_to_start():
    """fcntl and resource are not there on Windows; on a machine that says it is one, nothing asks for them."""
    code = (
        "import sys; sys.modules['fcntl'] = sys.modules['resource'] = None; "
        "from iclgd import cli, files, running, system; print(system.peak_memory()); cli.main(['-V'])"
    )
    done = other_process(code)
    assert done.stderr == ""
    assert done.stdout.startswith("0\niclgd, version")


BEFORE_TORCH = {
    "compare --k 0": "--k must be at least 1, not 0.",
    "compare --rates -1": "--rates must be at least 0, not -1.",
    "compare --task sst3": 'no task "sst3". Did you mean',
    "compare --learners gdd:rate=0.1": 'no learner "gdd". Did you mean',
    "compare --metrics SimAUO": 'no metric "SimAUO". Did you mean SimAOU',
    "compare --nulls random,wrong-label": 'no null "wrong-label". Did you mean wrong-labels',
    "compare --out file": "file is a file, not a folder: give another --out.",
    "compare --store file": "cannot write to file:",
    "compare --device toaster": 'the device "toaster" is not available here: set --device to cpu.',
    "compare --device-map {": "--device-map is not valid JSON",
    "compare --dtype tf32 --device cpu": "tf32 is the arithmetic of a GPU",
    "doctor smollm2-135m --device toaster": 'the device "toaster" is not available here',
    "compare --k 1000": "1000 demonstrations were asked for, but the training split of sentiment has 100: lower --k.",
    "compare --model .": "holds no safetensors file",
    "compare --task sst2 --data gone": "the data folder gone does not exist",
    "trace --task gone.json": "cannot read gone.json: No such file or directory; check the name.",
    "study table . --where loss": '--where takes label=value, not "loss".',
    "models fetch gemma3-270m": "accept them once with `iclgd models fetch gemma3-270m --accept-terms`.",
    "order --orders 1": "--orders must be at least 2, not 1.",
    "implicit --other nobody": 'no task "nobody".',
    "linear train --task lineer": 'no regression family "lineer". Did you mean linear',
    "linear train --attention sigmoid": 'no attention "sigmoid". There are',
    "linear train --learners gd,nobody": 'no learner "nobody".',
    "linear layers --kinds nonsense": 'no attention "nonsense". There are',
    "linear depth --task nobody": 'no regression family "nobody".',
    "linear optimum --task lineer": 'no regression family "lineer".',
    "linear optimum --task sine": "only a linear family has a best step in closed form",
    "linear train --covariance 1,2": "--covariance takes 1 or 10 standard deviations, not 2.",
    "linear train --weight-mean 1,2,3": "--weight-mean takes 1 or 10 numbers, not 3.",
    "languages run --k 1": "--k must be at least 2, not 1.",
    "languages run --labels signs": '--labels takes fixed, sign, language; "signs" is none of them.',
    "languages run --encoder pcb": 'no encoder "pcb". Did you mean pca',
    "languages run --encoder autoencoder:steps=0": "autoencoder: steps must be at least 1, not 0.",
    "languages run --labels language": "a language is drawn for each episode",
    "languages run --language (": '"(" names no symbol;',
    "languages all --shrink 0": "--shrink must be at least 1, not 0.",
    "dual check --k 0": "--k must be at least 1, not 0.",
    "dual bound --held 9 --k 9": "of 9 demonstrations none is left when 9 are held out: lower --held.",
    "dual modify --modifications nothing": 'no modification "nothing".',
    "dual train --arms negative:k=3,nobody": 'no modification "nobody".',
    "dual train --tasks cubic": 'no regression "cubic". There are linear, trigonometric,',
    "dual train --rate 0": "--rate must be above 0, not 0.",
}


def test_what_the_arguments_alone_show_to_be_wrong_is_refused_before_torch_is_imported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    code = (
        "import sys; sys.modules['torch'] = None; from iclgd.cli import main\n"
        f"for line in {list(BEFORE_TORCH)!r}:\n"
        "    try: main(line.split())\n"
        "    except SystemExit as stop: print(stop.code, file=sys.stderr)"
    )
    done = other_process(code, ICLGD_CACHE=str(tmp_path / "cache"))
    said = done.stderr.splitlines()
    assert said[1::2] == ["2"] * len(BEFORE_TORCH), done.stderr
    assert [(now, then) for now, then in zip(said[::2], BEFORE_TORCH.values(), strict=True) if then not in now] == []


def test_a_field_that_is_unknown_is_named_before_one_that_does_not_fit():
    with pytest.raises(Refusal, match='there is no field "kk"'):
        CompareSpec.of({"kk": 3, "queries": 0})


@pytest.mark.parametrize("stops, found, status", [("1", "", 130), ("9", "looked through", 0)])
def test_a_command_that_was_told_to_stop_does_not_look_for_garbage_before_it_ends(place, stops, found, status):
    code = (
        "import atexit, sys, toy\nfrom iclgd.cli import main\natexit.register(lambda: print('cleared up'))\n"
        "class Looked:\n    def __del__(self): print('looked through')\n"
        "one = Looked()\none.me = one\nsys.argv = ['iclgd', 'toy', '--quiet', '--seeds', '2', '--out', 'o']\n"
        "main()"
    )
    done = other_process(code, TOY_STOPS_AT=stops)
    assert done.returncode == status, done.stderr
    assert ("looked through" in done.stdout) == bool(found)
    assert "cleared up" in done.stdout
