"""The command line as a user meets it: what it says, what it leaves, how it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import iclgd
from iclgd.cli import OTHERS
from said import refused, run
from shared_data import FOLDER, needs_data
from tiny import tiny_model, tiny_tokenizer

SOURCE = str(Path(iclgd.__file__).parents[1])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A tiny model in a folder, as anybody would save one."""
    folder = tmp_path_factory.mktemp("tiny") / "model"
    tiny_model("llama").save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture
def task(tmp_path):
    """A task of a user's own: one YAML beside one CSV."""
    (tmp_path / "mine.yaml").write_text(
        "name: mine\nversion: 1\ntitle: my own\nsource: me\ntemplate: 'Sentence: {text} Label:'\n"
        "labels: [Negative, Positive]\nexamples: mine.csv\n"
    )
    rows = [
        f"{'good' if i % 2 else 'bad'} film {'abcdefghij'[i % 10]} {'klmnopqrst'[i // 10]},{i % 2}" for i in range(60)
    ]
    (tmp_path / "mine.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    return tmp_path / "mine.yaml"


def subprocess_of(*args, **options) -> subprocess.Popen:
    command = [sys.executable, "-c", "from iclgd.cli import main; main()", *map(str, args)]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


# what it shows


def test_trace_shows_accuracy_label_probabilities_and_an_update_for_each_layer(capsys, model, task):
    code, out, err = run(capsys, "trace", "--model", model, "--task", task, "--k", 4, "--queries", 6)
    assert code == 0
    assert err == ""
    lines = out.splitlines()
    assert lines[0].endswith("model · mine · k = 4 · seed 0 · 6 queries · float32")
    assert lines[2].split() == ["accuracy", "p(Negative)", "p(Positive)"]
    assert lines[3].startswith("zero-shot")
    assert lines[4].startswith("icl")
    assert [line.split()[0] for line in lines[9:12]] == ["0", "1", "2"]
    assert "repeat   iclgd" in out


def test_trace_writes_what_it_says(capsys, model, task, tmp_path):
    out = tmp_path / "deep" / "out"
    code, said, _ = run(
        capsys, "trace", "--model", model, "--task", task, "--k", 4, "--queries", 6, "--seed", 3, "--out", out
    )
    assert code == 0
    assert str(out / "index.html") in said
    names = {path.name for path in out.iterdir()}
    pictures = {"update-size.svg", "update-size.png"}
    assert names == {"index.html", "record.json", "trace.safetensors", "episode.json", ".iclgd", *pictures}
    record = json.loads((out / "record.json").read_text())
    arrays = load_file(out / "trace.safetensors")
    for learner in ("zero-shot", "icl"):
        assert arrays[f"{learner}.scores"].shape == (6, 2)
        assert arrays[f"{learner}.outputs"].shape == (6, 3, 2, 32)
        assert arrays[f"{learner}.logits"].shape[:4] == (6, 3, 2, 4)
        assert arrays[f"{learner}.keys"].shape == (6, 2, arrays[f"{learner}.logits"].shape[4])
    with safe_open(out / "trace.safetensors", "pt") as file:
        assert file.metadata()["positions"] == "prompt,label"
    for part, axes in record["axes"].items():
        assert len(axes) == arrays[f"icl.{part}"].ndim
    assert record["spec"]["episode"] == {"k": 4, "seed": 3, "queries": 6, "query_seed": 1, "balanced": False}
    assert record["demonstrations"] == 4
    assert record["demonstrations_dropped"] == 0
    answers = [query["label"] for query in json.loads((out / "episode.json").read_text())["queries"]]
    right = (arrays["icl.scores"].argmax(-1) == torch.tensor(answers)).double().mean()
    assert record["accuracy"]["icl"] == pytest.approx(float(right))
    apart = (arrays["icl.outputs"] - arrays["zero-shot.outputs"])[:, 1, 0].norm(dim=-1)
    sizes = apart / arrays["zero-shot.outputs"][:, 1, 0].norm(dim=-1)
    assert record["update_size"]["prompt"][1][0] == pytest.approx(float(sizes.mean()), rel=1e-4)


def test_an_episode_file_gives_the_same_trace_as_the_draw_it_came_from(capsys, model, task, tmp_path):
    common = ("trace", "--model", model)
    run(capsys, *common, "--task", task, "--k", 4, "--queries", 6, "--out", tmp_path / "a")
    code, out, _ = run(capsys, *common, "--task", tmp_path / "a" / "episode.json", "--out", tmp_path / "b")
    assert code == 0
    assert "seed" not in out.splitlines()[0]
    one, two = (load_file(tmp_path / name / "trace.safetensors") for name in "ab")
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert json.loads((tmp_path / "b" / "record.json").read_text())["spec"]["episode"] is None


def test_truncation_is_shown_and_recorded(capsys, model, task, tmp_path):
    args = ("trace", "--model", model, "--task", task, "--k", 30, "--queries", 3)
    assert "demonstrations and the longest query do not fit" in refused(capsys, tmp_path, *args)
    code, out, _ = run(capsys, *args, "--truncate", "--out", tmp_path / "out")
    assert code == 0
    dropped = json.loads((tmp_path / "out" / "record.json").read_text())["demonstrations_dropped"]
    assert dropped > 0
    assert f"({dropped} dropped to fit)" in out


def test_doctor_says_what_a_model_is_and_that_it_is_ready(capsys, model):
    code, out, _ = run(capsys, "doctor", model)
    assert code == 0
    for said in (
        "LlamaForCausalLM (llama)",
        "4, on 2 key heads",
        "256 tokens",
        "registered attention function",
        "k_proj and v_proj",
        "max |Δlogits| = 0,",
        f"ready   iclgd trace --model {model}",
    ):
        assert said in out


def test_doctor_works_in_low_precision(capsys, model):
    assert run(capsys, "doctor", model, "--dtype", "bfloat16")[0] == 0


def test_tasks_are_listed_and_one_is_shown(capsys, task):
    code, out, _ = run(capsys, "tasks")
    assert code == 0
    assert {"sst2", "kinds"} <= {line.split()[0] for line in out.splitlines() if line}
    assert "template   Sentence: {text} Label: <label>" in run(capsys, "tasks", task)[1]


def test_models_are_listed_with_their_licences_and_where_they_are_kept(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("ICLGD_CACHE", str(tmp_path))
    code, out, _ = run(capsys, "models")
    assert code == 0
    assert "98 MB" in out
    assert "Gemma Terms of Use" in out
    assert str(tmp_path) in out


# bad input


def test_an_unknown_task_model_or_command_is_answered_with_the_nearest(capsys, tmp_path, model):
    said = refused(capsys, tmp_path, "trace", "--task", "sentimant", "--out", tmp_path / "out")
    assert "Did you mean sentiment" in said
    said = refused(capsys, tmp_path, "trace", "--model", "smollm2-153m", "--out", tmp_path / "out")
    assert "Did you mean smollm2-135m" in said
    assert "Did you mean trace" in refused(capsys, tmp_path, "trase")
    assert "Did you mean gemma3-270m" in refused(capsys, tmp_path, "models", "fetch", "gemma-270m")


@pytest.mark.parametrize(
    "rows, complaint",
    [
        ("txt,label\na,0\nb,1\n", 'no column "text"'),
        ("text\na\nb\n", 'no column "label"'),
        ("text,label\na,0\nb,7\n", "has the label '7'"),
        ("text,label\na,0\nb,0\nc,0\nd,0\n", 'no example of the class "Positive"'),
        ("", "no example of the class"),
        ("text,label\na, b,0\n", "more cells than the header"),
    ],
)
def test_bad_examples_are_refused(capsys, tmp_path, model, task, rows, complaint):
    (tmp_path / "mine.csv").write_text(rows)
    assert complaint in refused(capsys, tmp_path, "trace", "--model", model, "--task", task, "--out", tmp_path / "out")


def test_more_demonstrations_than_the_training_split_has_are_refused(capsys, tmp_path, model, task):
    said = refused(capsys, tmp_path, "trace", "--model", model, "--task", task, "--k", 1000, "--out", tmp_path / "out")
    assert "1000 demonstrations were asked for" in said


def copied(model: Path, folder: Path) -> Path:
    folder.mkdir()
    for path in model.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


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
    bad = copied(model, tmp_path / "bad")
    damage(bad)
    for args in (("doctor", bad), ("trace", "--model", bad, "--task", task, "--out", tmp_path / "out")):
        assert complaint in refused(capsys, tmp_path, *args)


def test_an_output_folder_that_cannot_be_written_is_refused_before_any_work(capsys, tmp_path):
    (tmp_path / "file").touch()
    begun = time.monotonic()
    assert "not a writable folder" in refused(capsys, tmp_path, "trace", "--out", tmp_path / "file" / "out")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    assert "exists already" in refused(capsys, tmp_path, "trace", "--out", tmp_path / "full")
    assert "not written by iclgd" in refused(capsys, tmp_path, "trace", "--out", tmp_path / "full", "--overwrite")
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(
    "args, complaint",
    [
        (("--k", "-1"), "--k"),
        (("--k", "many"), "--k"),
        (("--queries", "0"), "--queries"),
        (("--seed", str(2**32)), "--seed"),
        (("--dtype", "float8"), "--dtype"),
        (("--device", "toaster"), 'the device "toaster" is not available'),
        (("--no-such-option",), "--no-such-option"),
        (("--data", "/no/such/folder"), "does not exist"),
    ],
)
def test_bad_options_are_refused(capsys, tmp_path, model, args, complaint):
    assert complaint in refused(capsys, tmp_path, "trace", "--model", model, "--task", "kinds", *args)


def test_options_that_would_draw_are_refused_with_an_episode_file(capsys, tmp_path):
    said = refused(capsys, tmp_path, "trace", "--task", tmp_path / "e.json", "--k", 3)
    assert "leave out --k" in said
    assert "cannot read the episode file" in refused(capsys, tmp_path, "trace", "--task", tmp_path / "e.json")


def test_control_characters_of_a_file_do_not_reach_the_terminal(capsys, tmp_path):
    (tmp_path / "x.yaml").write_text('name: "\\e[31mred"\nversion: 1\n')
    assert "\x1b" not in refused(capsys, tmp_path, "tasks", tmp_path / "x.yaml")
    assert "\x1b" not in refused(capsys, tmp_path, "tasks", "\x1b[31mred")


def test_terms_are_refused_without_acceptance_and_asked_for_at_a_terminal(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("ICLGD_CACHE", str(tmp_path))
    for args in (("trace", "--model", "gemma3-270m"), ("models", "fetch", "gemma3-270m"), ("doctor", "gemma3-270m")):
        said = refused(capsys, tmp_path, *args)
        assert "Gemma Terms of Use (https://ai.google.dev/gemma/terms)" in said
        assert "--accept-terms" in said


# how it behaves


def timed(code: str) -> tuple[float, str]:
    """The best of three runs of a piece of Python, and what it printed."""
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    best, out = float("inf"), ""
    for _ in range(3):
        begun = time.monotonic()
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        best, out = min(best, time.monotonic() - begun), done.stdout
    return best, out


@pytest.mark.parametrize(
    "code", ["import iclgd", "import sys; sys.argv[1:] = ['--help']; from iclgd.cli import main; main()"]
)
def test_help_and_import_are_fast_and_do_not_import_torch(code):
    heavy = "print([m for m in ('torch', 'transformers', 'numpy', 'matplotlib') if m in __import__('sys').modules])"
    seconds, out = timed(f"{code}\n{heavy}")
    assert out.endswith("[]\n")
    assert seconds < 0.5


@pytest.mark.parametrize("name", ["compare", "trace", *OTHERS])
def test_every_command_explains_itself_with_an_example(capsys, name):
    code, out, _ = run(capsys, name, "--help")
    assert code == 0
    assert "Examples:" in out
    assert f"iclgd {name}" in out


def test_no_progress_is_drawn_where_there_is_no_terminal(model, task):
    process = subprocess_of("trace", "--model", model, "--task", task, "--k", 2, "--queries", 4)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0
    assert err == ""
    assert "\x1b" not in out


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


def test_ctrl_c_ends_it_cleanly(model, task, tmp_path):
    """Interrupted while it traces: one line, exit code 130, nothing left."""
    marker = tmp_path / "tracing"
    args = ("trace", "--model", model, "--task", task, "--k", 2, "--queries", 4, "--out", tmp_path / "out")
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(marker), *map(str, args)],
        env={**os.environ, "PYTHONPATH": SOURCE},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # a background job ignores it
    )
    before = sorted(tmp_path.rglob("*"))
    while not marker.exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.strip() == "iclgd: stopped."
    assert out == ""
    assert sorted(tmp_path.rglob("*")) == sorted([*before, marker])


def test_a_reader_that_has_seen_enough_gets_no_traceback():
    process = subprocess_of("tasks")
    process.stdout.close()
    process.wait(timeout=60)
    assert process.stderr.read() == ""


MEASURED = """
import resource, sys
from iclgd.cli import main
main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@needs_data
@pytest.mark.slow
def test_tracing_sst2_with_the_embedded_model_stays_under_two_gibibytes(smollm2):
    args = ["trace", "--task", "sst2", "--data", str(FOLDER), "--k", "32", "--queries", "100", "--device", "cpu"]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *args],
        env={**os.environ, "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout.splitlines()[-1]) < 2 * 2**30
