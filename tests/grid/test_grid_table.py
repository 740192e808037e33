"""A pivot of a study's numbers: means and intervals as computed by hand, and no mean over what nobody named."""

import csv
import io
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from little_grid import drawn
from scipy import stats

import iclgd
import toy
from iclgd.grid.plan import PartPlan, Plan, find_plan
from iclgd.grid.table import Asked, Pivot, latex
from iclgd.lab import Cell
from iclgd.report.page import Table
from iclgd.results import Result, array
from iclgd.spec import EpisodeSpec
from iclgd.store.cells import Store
from said import refused, run

SOURCE = Path(iclgd.__file__).parents[1]


def student(values) -> tuple[float, float, float]:
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    return float(np.mean(values)), float(np.mean(values) - half), float(np.mean(values) + half)


def test_a_mean_over_draws_has_students_interval(capsys, done):
    out = run(capsys, "study", "table", "runs/mine", "--value", "value", "--rows", "k,scale", "--format", "json")[1]
    found = {(one["k"], one["scale"]): one for one in json.loads(out)}
    assert set(found) == {(2, 1.0), (2, 2.0), (3, 1.0), (4, 1.0)}
    for (k, scale), one in found.items():
        wanted = student([drawn(seed, k, scale).mean() for seed in range(3)])
        assert (one["mean"], one["low"], one["high"]) == pytest.approx(wanted)
        assert (one["over"], one["numbers"]) == ("draws", 3)


def planted(tmp_path, cells) -> Plan:
    """A study of one part whose cells have these labels and arrays."""
    store, keys = Store(tmp_path / "cells"), []
    for i, (labels, arrays) in enumerate(cells):
        cell = Cell("toy", EpisodeSpec(seed=i), labels)
        keys.append(cell.key({}, 1))
        store.write(keys[-1], cell, {}, Result({}, arrays), {})
    return Plan("p", [PartPlan("p", "toy", {}, keys, [labels for labels, _ in cells])], store.folder)


def test_a_mean_over_tasks_is_of_the_tasks_means_and_places_with_names_are_labels(tmp_path):
    means = np.random.RandomState(0).standard_normal((4, 3, 2))  # task, seed, position
    cells = []
    for task in range(4):
        for seed in range(3):
            values = means[task, seed][:, None] + np.array([-1, 0, 1])  # over queries
            one = array(values, "position", "query", metric="m", coordinates={"position": ("prompt", "label")})
            cells.append(({"task": f"t{task}", "seed": seed}, [one]))
    pivot = Pivot(planted(tmp_path, cells), Asked(["position"], value="m"))
    for i, one in enumerate(pivot.records()):
        assert one["position"] == ("prompt", "label")[i]
        assert (one["mean"], one["low"], one["high"]) == pytest.approx(student(means[:, :, i].mean(1)))
        assert one["over"] == "tasks"


def test_an_interval_of_a_metric_stays_within_what_the_metric_can_be(tmp_path):
    def interval(name, *values):
        cells = [({"seed": seed}, [array([value], "query", metric=name)]) for seed, value in enumerate(values)]
        (found,) = Pivot(planted(tmp_path / name, cells), Asked(["metric"])).records()
        return found["mean"], found["low"], found["high"]

    mean, low, high = interval("accuracy", 0.6, 0.9)
    assert (mean, interval("mine", 0.6, 0.9)) == (pytest.approx(0.75), pytest.approx(student([0.6, 0.9])))
    assert 0 < low < high < 1
    assert interval("KL", 0.1, 0.9)[1:] == pytest.approx((0, student([0.1, 0.9])[2]))
    assert interval("agreement", 60, 90) == pytest.approx(student([60, 90]))  # a stranger's, in hundredths


def test_a_table_says_that_its_intervals_over_draws_are_not_over_queries_that_draws_share(tmp_path):
    cells = [({"seed": seed}, [array([float(seed)], "query", metric="m")]) for seed in range(3)]
    said = "Brackets are 95% intervals over seeds (not over queries that these share)."
    assert Pivot(planted(tmp_path, cells), Asked(["metric"])).kinds() == said


def test_no_mean_is_over_a_label_that_nobody_named(tmp_path, capsys, done):
    cells = [
        ({"seed": s}, [array([1.0], "query", metric="m"), array([9.0], "query", metric="m", null="n")]) for s in (0, 1)
    ]
    plan = planted(tmp_path / "other", cells)
    with pytest.raises(iclgd.Refusal, match=r"a mean would be over null \(– and n\): put null .* `where` null=\.$"):
        Pivot(plan, Asked(["metric"]))
    assert [one["mean"] for one in Pivot(plan, Asked(["metric"], ["null"])).records()] == [1, 9]
    assert [one["mean"] for one in Pivot(plan, Asked(["metric"], where={"null": None})).records()] == [1]
    assert [one["mean"] for one in Pivot(plan, Asked(["metric"], where={"null": "n"})).records()] == [9]
    assert "--rows or --columns" in refused(capsys, done, "study", "table", "runs/mine", "--rows", "quantity")


def test_without_options_the_labels_are_listed(capsys, done):
    out = run(capsys, "study", "table", "mine.yaml")[1]
    listed = {line.split("  ")[0].strip(): line.split("  ")[-1].strip() for line in out.splitlines()}
    assert listed["k"] == "2, 3, 4"
    assert listed["quantity"] == "value"
    assert listed["seed"] == "0, 2, 1"


def asked(capsys, form, *more):
    words = ("study", "table", "runs/mine", "--value", "value", "--rows", "k", "--columns", "scale")
    code, out, err = run(capsys, *words, "--format", form, *more)
    assert (code, err) == (0, "")
    return out


def test_every_form_has_the_same_numbers(capsys, done):
    wanted = [drawn(seed, 2, 2).mean() for seed in range(3)]
    text = f"{np.mean(wanted):.3g}".replace("0.", ".")
    assert f"2  .451 [-1.19 2.09]  {text} [" in asked(capsys, "text")
    assert "| k | 1.0 | 2.0 |" in asked(capsys, "markdown")
    assert text in asked(capsys, "markdown")
    latex = asked(capsys, "latex")
    assert latex.startswith("\\begin{tabular}{lll}\n\\toprule\nk & 1.0 & 2.0 \\\\\n")
    assert f" & {text} [" in latex
    lines = list(csv.DictReader(io.StringIO(asked(capsys, "csv"))))
    (place,) = (line for line in lines if (line["k"], line["scale"]) == ("2", "2.0"))
    assert float(place["mean"]) == pytest.approx(np.mean(wanted))
    assert asked(capsys, "parquet", "--to", "t.parquet") == ""
    import pyarrow.parquet as parquet

    found = [row for row in parquet.read_table("t.parquet").to_pylist() if (row["k"], row["scale"]) == (2, 2.0)]
    assert found[0]["mean"] == pytest.approx(np.mean(wanted))
    asked(capsys, "csv", "--to", "t.csv")
    assert list(csv.DictReader((done / "t.csv").open())) == lines


def test_a_label_with_any_line_break_is_one_place_of_a_csv_file(done, monkeypatch):
    names = ["a\rb", "a\nb", 'a,"b"', "a\r\nb", "=1"]
    pivot = Pivot(find_plan(done / "runs/mine"), Asked(["k"], ["scale"], value="value"))
    monkeypatch.setattr(Pivot, "records", lambda _self: [{"name": name, "mean": 1.0} for name in names])
    (done / "t.csv").write_bytes((pivot.written("csv") + "\n").encode())
    with (done / "t.csv").open(newline="") as file:
        assert [line["name"] for line in csv.DictReader(file)] == names


def test_latex_takes_no_letter_of_a_label_for_its_own():
    rows = [["a*(b|c)", "1"], ["[2]", "<3>"], ["*x", "a\nb"], ["  [y", "\x1b_"]]
    assert latex(Table(["k", "v"], rows)).split("\n")[4:-2] == [
        r"a*(b\textbar{}c) & 1 \\",
        r"{}[2] & \textless{}3\textgreater{} \\",
        r"{}*x & a b \\",
        r"{}  [y & \textbackslash{}x1b\_ \\",
    ]


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["--value", "valve"], 'no number of this study is called "valve". Did you mean value?'),
        (["--value", "value", "--rows", "scala"], 'has the label "scala". Did you mean scale?'),
        (["--value", "value", "--columns", "nothing"], 'has the label "nothing"'),
        (["--value", "value", "--where", "sead=1"], 'has the label "sead". Did you mean seed?'),
        (["--value", "value", "--where", "seed=7"], 'no number that is asked for has seed="7"'),
        (["--rows", "k", "--format", "xls"], '--format takes text, markdown, latex, csv, json, parquet; "xls" is none'),
        (["--value", "value", "--format", "parquet"], "name a file with --to"),
        (["--where", "k"], '--where takes label=value, not "k"'),
        (["--over", "a,b,c", "--value", "value"], "--over takes one or two labels"),
    ],
)
def test_a_wrong_question_is_refused(capsys, done, words, sentence):
    assert sentence in refused(capsys, done, "study", "table", "runs/mine", *words)


def test_a_study_of_which_nothing_is_done_has_no_table_and_is_told_what_to_do(capsys, place):
    assert "no cell of this study is done: run it first." in refused(
        capsys, place, "study", "table", "mine.yaml", "--value", "value"
    )


def test_a_cell_with_a_damaged_record_is_refused_and_not_left_out_of_a_mean(capsys, done):
    study = iclgd.open(done / "runs/mine/b")
    words = ("study", "table", "runs/mine", "--value", "value", "--rows", "k,scale")
    assert run(capsys, *words)[0] == 0  # the index knows the cell as it was
    records = [done / "runs/cells" / key[:32] / "record.json" for key in study.keys]
    kept = {path: path.read_text() for path in records[:2]}
    for path, text in kept.items():
        path.write_text(text.replace('"scale": 1.0', '"scale": 1.5'))
        assert path.read_text() != text
    said = refused(capsys, done, *words)
    check = f"`iclgd store check --store {done / 'runs/cells'}` says why; remove what it names and run the study again."
    first = min(path.parent for path in kept)
    assert said == f"iclgd: 2 cells, {first} the first of them, cannot be read: {check}\n"
    assert refused(capsys, done, "study", "table", "runs/mine") == said
    records[0].write_text(kept[records[0]])
    assert refused(capsys, done, *words) == f"iclgd: the cell {records[1].parent} cannot be read: {check}\n"
    Store(done / "runs/cells").remove(study.keys[1])
    assert run(capsys, "study", "run", "mine.yaml")[0] == run(capsys, *words)[0] == 0


def test_a_damaged_cell_of_another_study_keeps_no_table_from_being_made(capsys, done):
    path = done / "runs/cells" / iclgd.open(done / "runs/mine/b").keys[0][:32] / "record.json"
    run(capsys, "toy", "--k", 2, "--out", "other")
    path.write_text(path.read_text().replace('"scale": 1.0', '"scale": 1.5'))
    assert run(capsys, "study", "table", "other", "--value", "value", "--rows", "part")[0] == 0


def test_a_table_of_a_study_that_is_not_finished_says_so_in_every_form(capsys, done):
    Store(done / "runs/cells").remove(iclgd.open(done / "runs/mine/b").keys[0])
    words = ("study", "table", "runs/mine", "--value", "value", "--rows", "k,scale")
    told = "11 of 12 cells are done."
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    assert out.endswith(f"95% intervals over seeds (not over queries that these share). {told}\n")
    for more in (["--quiet"], ["--json"], ["--format", "csv"], ["--format", "latex"], ["--to", "t.txt"]):
        code, out, err = run(capsys, *words, *more)
        assert (code, err) == (0, f"iclgd: {told}\n"), more
        assert told not in out
    assert run(capsys, "study", "table", "runs/mine")[2] == f"iclgd: {told}\n"


def kinds_of_no_file(place) -> dict[str, str]:
    """What a file cannot be written to, by name, and what is said of it."""
    (place / "folder").mkdir()
    (place / "to-folder").symlink_to("folder")
    (place / "nowhere").symlink_to("gone")
    os.mkfifo(place / "pipe")
    return {
        "folder": "it is a folder, not a file",
        "to-folder": "it is a folder, not a file",
        "": "it is a folder, not a file",
        "nowhere": "it is a link to nothing",
        "pipe": "it is a pipe or a device, not a file",
        "mine.yaml/t.csv": "is not a writable folder",
        "x" * 300: "File name too long",
    }


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders here")
@pytest.mark.parametrize(
    "words", [("study", "table", "mine.yaml", "--value", "value", "--to"), ("claims", "page", "--out")]
)
def test_what_is_no_file_is_refused_as_one_before_anything_is_computed(capsys, place, words, monkeypatch):
    monkeypatch.setattr("iclgd.grid.plan.find_plan", None)
    monkeypatch.setattr("iclgd.claims.html.page", None)
    for name, said in kinds_of_no_file(place).items():
        assert said in refused(capsys, place, *words, name)
    assert (place / "pipe").is_fifo()
    assert (place / "nowhere").is_symlink()


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_table_written_through_a_link_is_in_the_file_that_it_leads_to(capsys, done, form):
    (done / "far").mkdir()
    (done / "far/table").write_text("old")
    (done / "link").symlink_to("far/table")
    asked(capsys, form, "--to", "link")
    asked(capsys, form, "--to", "plain")
    assert (done / "link").is_symlink()
    assert (done / "far/table").read_bytes() == (done / "plain").read_bytes()


def test_without_duckdb_a_table_is_refused_in_a_sentence_and_everything_else_works(capsys, done, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    said = refused(capsys, done, "study", "table", "runs/mine", "--value", "value", "--rows", "k,scale")
    assert said == "iclgd: what is asked of many cells at once needs DuckDB: pip install duckdb.\n"
    for words in (["run", "mine.yaml"], ["status", "mine.yaml"], ["plan", "mine.yaml"], ["verify", "mine.yaml"]):
        assert run(capsys, "study", *words)[0] == 0
    assert run(capsys, "store", "check")[0] == 0


@pytest.mark.slow
def test_ten_thousand_cells_are_counted_and_tabled_in_two_seconds_of_processor_time(place, capsys, monkeypatch):
    monkeypatch.setattr("iclgd.files.sync", lambda path: None)  # only to have the cells sooner
    monkeypatch.setattr("iclgd.store.cells.synced", lambda folder: None)
    grid = "parts: {a: {lab: toy, seeds: 1000, grid: {k: [4, 5, 6, 7, 8], scale: [1, 2]}}}\n"
    (place / "many.yaml").write_text(grid)
    assert run(capsys, "study", "run", "many.yaml")[0] == 0
    path = os.pathsep.join([str(SOURCE), str(Path(toy.__file__).parent), os.environ.get("PYTHONPATH", "")])
    table = ["table", "many.yaml", "--value", "value", "--rows", "k", "--columns", "scale"]
    for words in (["status", "many.yaml"], table):
        command = [sys.executable, "-c", "import toy; from iclgd.cli import main; main()", "study", *words]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == 0, done.stderr
        assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2, words
    assert "10000" in run(capsys, "study", "status", "many.yaml")[1]
