"""`iclgd trace` as a user meets it: what it shows, what it leaves, what it refuses, how it ends."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import iclgd
from little import little_model, little_task
from said import refused, run
from shared_data import FOLDER, needs_data

SOURCE = str(Path(iclgd.__file__).parents[1])
SMALL = ("--k", 4, "--queries", 6, "--device", "cpu")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A tiny model in a folder, as anybody would save one."""
    return little_model(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture
def task(tmp_path, monkeypatch):
    """A task of a user's own, in the folder where the user works."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ICLGD_STORE", raising=False)
    return little_task(tmp_path)


@pytest.fixture
def asked(model, task):
    return ("trace", "--model", model, "--task", task, *SMALL)


# what it shows and leaves


def test_trace_shows_accuracy_label_probabilities_and_an_update_for_each_layer(capsys, asked):
    code, out, _ = run(capsys, *asked)
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith(("Reading moves accuracy from ", "Reading leaves accuracy of "))
    assert "model · mine · k = 4 · seed 0 · 6 queries · float32" in lines
    head = next(i for i, line in enumerate(lines) if line.split() == ["accuracy", "p(Negative)", "p(Positive)"])
    assert [line.split()[0] for line in lines[head + 1 : head + 3]] == ["zero-shot", "icl"]
    layers = next(i for i, line in enumerate(lines) if line.startswith("layer  at the prompt's last token"))
    assert [line.split()[0] for line in lines[layers + 1 : layers + 4]] == ["0", "1", "2"]
    assert lines[-1].startswith("repeat   iclgd trace --spec ")


def test_full_prints_the_queries_too(capsys, asked):
    assert "right answer" not in run(capsys, *asked)[1]
    assert "right answer" in run(capsys, *asked, "--full")[1]


def test_trace_leaves_its_page_and_its_episode_in_the_folder_and_its_arrays_in_the_cell(capsys, asked, tmp_path):
    out = tmp_path / "deep" / "out"
    code, said, _ = run(capsys, *asked, "--seed", 3, "--out", out)
    assert code == 0
    assert str(out / "index.html") in said
    pages = {"index.html", "page.md", "study.json", "spec.yaml", ".iclgd"}
    figures = {f"update-size.{kind}" for kind in ("svg", "pdf", "png")}
    assert {path.name for path in out.iterdir()} == pages | figures | {"episode.json"}
    (cell,) = (tmp_path / "runs" / "cells").iterdir()
    assert {path.name for path in cell.iterdir()} == {"record.json", "arrays.safetensors"}
    record = json.loads((cell / "record.json").read_text())
    drawn = {"k": 4, "seed": 3, "queries": 6, "query_seed": 1, "balanced": False}
    assert record["spec"]["episode"] == drawn
    assert (record["facts"]["demonstrations"], record["facts"]["demonstrations_dropped"]) == (4, 0)


def parts(study, learner: str) -> dict[str, np.ndarray]:
    return {str(one.labels["quantity"]): one.values for one in study.arrays(learner=learner)}


def test_the_arrays_of_a_trace_have_the_shapes_of_the_model_and_give_the_numbers_shown(capsys, asked, tmp_path):
    run(capsys, *asked, "--out", tmp_path / "out")
    study = iclgd.open(tmp_path / "out")
    zero, icl = (parts(study, learner) for learner in ("zero-shot", "icl"))
    for found in (zero, icl):
        assert found["scores"].shape == (6, 2)
        assert found["outputs"].shape == (6, 3, 2, 32)
        assert found["logits"].shape[:4] == (6, 3, 2, 4)
        assert found["keys"].shape == (6, 2, found["logits"].shape[4])
    answers = [query["label"] for query in json.loads((tmp_path / "out" / "episode.json").read_text())["queries"]]
    accuracy = study.table("Accuracy").rows[1][1]
    assert accuracy.value == pytest.approx((icl["scores"].argmax(-1) == answers).mean())
    apart = np.linalg.norm((icl["outputs"] - zero["outputs"])[:, 1, 0], axis=-1)
    sizes = apart / np.linalg.norm(zero["outputs"][:, 1, 0], axis=-1)
    assert study.table("Updates").rows[1][1].value == pytest.approx(float(sizes.mean()), rel=1e-4)


def test_an_episode_file_gives_the_same_trace_as_the_draw_it_came_from(capsys, model, asked, tmp_path):
    run(capsys, *asked, "--out", tmp_path / "a")
    file = tmp_path / "a" / "episode.json"
    code, said, _ = run(capsys, "trace", "--model", model, "--device", "cpu", "--task", file, "--out", tmp_path / "b")
    assert code == 0
    assert "seed" not in said.splitlines()[0]
    one, two = (iclgd.open(tmp_path / name) for name in "ab")
    for learner in ("zero-shot", "icl"):
        drawn, read = parts(one, learner), parts(two, learner)
        assert set(drawn) == set(read)
        assert all(np.array_equal(drawn[name], read[name]) for name in drawn)


def test_truncation_is_shown_and_recorded(capsys, model, task, tmp_path):
    args = ("trace", "--model", model, "--task", task, "--k", 30, "--queries", 3)
    assert "demonstrations and the longest query do not fit" in refused(capsys, tmp_path, *args)
    code, said, _ = run(capsys, *args, "--truncate", "--out", tmp_path / "out")
    assert code == 0
    (dropped,) = iclgd.open(tmp_path / "out").facts("demonstrations_dropped")
    assert dropped > 0
    assert f"({dropped} dropped to fit)" in said


def test_the_same_command_and_the_repeat_line_run_nothing_and_show_the_same(capsys, monkeypatch, asked, tmp_path):
    first = run(capsys, *asked, "--out", "out")[1]
    monkeypatch.setattr("iclgd.labs.trace.run.Bench", None)  # a cell that is run again fails
    assert run(capsys, *asked, "--out", "out")[1] == first
    line = shlex.split(first.splitlines()[-1].removeprefix("repeat   iclgd "))
    assert run(capsys, *line)[1].splitlines()[:-2] == first.splitlines()[:-2]
    with pytest.raises(TypeError):
        run(capsys, *asked, "--out", "out", "--overwrite")


# what it refuses


@pytest.mark.parametrize(
    "rows, complaint",
    [
        ("txt,label\na,0\nb,1\n", 'no column "text"'),
        ("text\na\nb\n", 'no column "label"'),
        ("text,label\na,0\nb,7\n", "the label '7' must be a label word"),
        ("text,label\na,0\nb,0\nc,0\nd,0\n", 'no example of the class "Positive"'),
        ("", "no example of the class"),
        ("text,label\na, b,0\n", "more cells than in the header"),
    ],
)
def test_bad_examples_are_refused(capsys, tmp_path, asked, rows, complaint):
    (tmp_path / "mine.csv").write_text(rows)
    assert complaint in refused(capsys, tmp_path, *asked)


def test_more_demonstrations_than_the_training_split_has_are_refused(capsys, tmp_path, asked):
    said = refused(capsys, tmp_path, *asked, "--k", 1000)
    assert "1000 demonstrations were asked for" in said
    assert "lower --k" in said


@pytest.mark.parametrize(
    "given, complaint",
    [
        (("--k", "-1"), "--k must be at least 1, not -1."),
        (("--k", "many"), '--k takes a whole number, not "many".'),
        (("--queries", "0"), "--queries must be at least 1, not 0."),
        (("--seed", str(2**32)), "--seed"),
        (("--dtype", "float8"), "--dtype takes"),
        (("--device", "toaster"), 'the device "toaster" is not available here: set --device to cpu.'),
        (("--no-such-option",), "No such option"),
        (("--data", "/no/such/folder", "--task", "sst2"), "does not exist"),
        (("--task", "sentimant"), "Did you mean sentiment"),
        (("--model", "smollm2-153m"), "Did you mean smollm2-135m"),
        (("--model", ""), "no model was named"),
    ],
)
def test_bad_options_are_answered_with_one_sentence_and_leave_nothing(capsys, tmp_path, asked, given, complaint):
    assert complaint in refused(capsys, tmp_path, *asked, *given)


def test_options_that_would_draw_are_refused_with_an_episode_file(capsys, tmp_path, model):
    given = ("trace", "--model", model, "--task", tmp_path / "e.json")
    assert "leave out --k" in refused(capsys, tmp_path, *given, "--k", 3)
    assert "No such file or directory; check the name" in refused(capsys, tmp_path, *given)


def truncate(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-64])


def pickle(folder: Path) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def spoil(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"][0] = torch.nan
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize(
    "damage, complaint", [(truncate, "cannot load"), (pickle, "pickle"), (spoil, "NaN or infinite")]
)
def test_bad_weights_are_refused(capsys, tmp_path, model, task, damage, complaint):
    bad = tmp_path / "bad"
    bad.mkdir()
    for path in model.iterdir():
        (bad / path.name).write_bytes(path.read_bytes())
    damage(bad)
    for args in (("doctor", bad), ("trace", "--model", bad, "--task", task, *SMALL)):
        assert complaint in refused(capsys, tmp_path, *args)


# how it ends


def process_of(code: str, folder: Path, *args) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, args)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": SOURCE},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # a background job ignores it
    )


INTERRUPTED = """
import sys, time
from pathlib import Path
from iclgd.cli import main
from iclgd.models.traces import Predictor

def trace(*_, **__):
    Path(sys.argv[1]).touch()
    time.sleep(60)

Predictor.trace = trace
main(sys.argv[2:])
"""


def test_ctrl_c_ends_it_with_one_line_and_nothing_half_done_and_the_same_command_goes_on(capsys, asked, tmp_path):
    process = process_of(INTERRUPTED, tmp_path, tmp_path / "tracing", *asked, "--out", "out")
    while not (tmp_path / "tracing").exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "iclgd: stopped before a cell was finished: the same command begins again."
    assert "Traceback" not in err
    assert out == ""
    assert {path.name for path in tmp_path.iterdir()} - {"runs"} == {"mine.yaml", "mine.csv", "tracing"}
    assert [*(tmp_path / "runs").rglob("*.safetensors")] == []
    assert run(capsys, *asked, "--out", "out")[0] == 0


def test_nothing_is_drawn_where_there_is_no_terminal(capsys, asked):
    code, out, err = run(capsys, *asked)
    assert code == 0
    assert not {"\x1b", "\r"} & set(out + err)


MEASURED = """
import resource, sys
from iclgd.cli import main
main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@needs_data
@pytest.mark.slow
def test_tracing_sst2_with_the_embedded_model_stays_under_two_gibibytes(smollm2, tmp_path):
    args = ("trace", "--task", "sst2", "--data", FOLDER, "--k", "32", "--queries", "100", "--device", "cpu")
    process = process_of(MEASURED, tmp_path, *args)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert int(out.splitlines()[-1]) < 2 * 2**30
