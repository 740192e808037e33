"""Examples: every file form gives the same rows, bad ones are refused by name, and the order of places holds."""

import gzip
import json
import sys
from types import ModuleType

import pytest

from iclgd.errors import Refusal
from iclgd.tasks.sources import examples_from, load_examples, read_rows
from iclgd.tasks.text import LIBRARY, TextTask, find_task
from shared_data import FOLDER, needs_data

TASK = TextTask(name="mine", version=1, title="t", source="s", template="Sentence: {text} Label:", labels=("no", "yes"))
ROWS = [
    {"text": 'a, "quoted" b', "label": 0},
    {"text": "line\nbreak and \u2028 separator", "label": 1},
    {"text": "ünï", "label": 0},
    {"text": "d", "label": 1},
]


def write(path, rows=ROWS):
    """Rows in the form that the path's ending names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    if path.name.endswith(".jsonl"):
        path.write_text(lines, encoding="utf-8")
    elif path.name.endswith(".jsonl.gz"):
        path.write_bytes(gzip.compress(lines.encode()))
    elif path.suffix == ".csv":
        import csv

        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        import pyarrow
        import pyarrow.parquet as parquet

        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "csv", "parquet"])
def test_every_file_form_gives_the_same_examples(tmp_path, form):
    found = examples_from(TASK, read_rows(write(tmp_path / f"rows.{form}")))
    assert [(e.fields["text"], e.label) for e in found] == [(row["text"], row["label"]) for row in ROWS]


@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "csv", "parquet"])
def test_splits_are_found_in_the_users_folder_in_every_form(tmp_path, form):
    for split in ("train", "validation"):
        write(tmp_path / "mine" / f"{split}.{form}")
    found = load_examples(TASK, tmp_path, tmp_path)
    assert len(found.train) == len(found.queries) == 4
    assert found.origin == str(tmp_path / "mine")


@pytest.mark.parametrize(
    "name, content, complaint",
    [
        ("rows.jsonl", b'{"text": "a"', "line 1: this is not JSON"),
        ("rows.jsonl", b'{"text": "a"}\n\n{"text" "b"}\n', "line 3: this is not JSON .*, column 9"),
        ("rows.jsonl", b'{"text": "a"}\n[1]\n', "line 2: this is no JSON object"),
        ("rows.jsonl", b'{"text": "a"}\n\xff\xfe\x00', "line 2: this is not UTF-8"),
        ("rows.jsonl.gz", gzip.compress(b"{}\n{}\n\xff", mtime=0), "line 3: this is not UTF-8"),
        ("rows.jsonl.gz", b"plain", "the file is damaged"),
        ("rows.jsonl.gz", gzip.compress(b'{"text": "a"}\n' * 99, mtime=0)[:-12], "cannot read"),
        ("rows.jsonl.gz", gzip.compress(bytes(range(256)), mtime=0)[:20] + b"\xff" * 40, "cannot read"),
        ("rows.csv", b"text,label\na,b,1\n", "line 2: there are more cells than in the header"),
        ("rows.csv", b'text,label\n"a\nb",1\na,b,1\n', "line 4: there are more cells"),
        ("rows.csv", b'text,label\nb,1\n"a,1\n', "line 3: this is not CSV"),
        ("rows.parquet", b"PAR1 not really", "not a Parquet file"),
    ],
)
def test_a_damaged_file_is_refused_in_one_sentence(tmp_path, name, content, complaint):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(Refusal, match=complaint) as refused:
        read_rows(path)
    assert str(path) in str(refused.value)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(Refusal, match="No such file"):
        read_rows(tmp_path / "none.jsonl")


def test_parquet_without_pyarrow_is_refused_with_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "rows.parquet").touch()
    with pytest.raises(Refusal, match=r"iclgd\[data\]"):
        read_rows(tmp_path / "rows.parquet")


@pytest.mark.parametrize("row", [{"label": 0}, {"text": "a"}, {"text": None, "label": 0}])
def test_a_missing_column_is_refused_by_name(row):
    with pytest.raises(Refusal, match=r'line 7: there is no column "(text|label)"; the task mine needs text, label'):
        examples_from(TASK, [("line 5", {"text": "a", "label": 1}), ("line 7", row)])


@pytest.mark.parametrize("label", [2, "2", -2, "maybe", 0.5, float("nan"), float("inf"), [1]])
def test_a_label_outside_the_label_words_is_refused(label):
    with pytest.raises(Refusal, match=r"line 1: the label .* must be a label word of mine \(no, yes\)"):
        examples_from(TASK, [("line 1", {"text": "a", "label": label})])


@pytest.mark.parametrize("label, index", [(1, 1), ("1", 1), ("yes", 1), ("no", 0), (1.0, 1)])
def test_a_label_may_be_an_index_or_a_label_word(label, index):
    assert examples_from(TASK, [("line 1", {"text": "a", "label": label})])[0].label == index


def test_a_number_is_an_index_even_where_label_words_are_numbers():
    task = TASK.model_copy(update={"labels": ("1", "2", "0")})
    rows = [("line 1", {"text": "a", "label": 1}), ("line 2", {"text": "a", "label": "1"})]
    assert [e.label for e in examples_from(task, rows)] == [1, 0]


def test_label_names_are_other_spellings_of_the_labels():
    task = TASK.model_copy(update={"label_names": ("NEG", "POS")})
    assert examples_from(task, [("line 1", {"text": "a", "label": "POS"})])[0].label == 1


def test_rows_without_a_label_are_left_out():
    rows = [("line 1", {"text": "a", "label": -1}), ("line 2", {"text": "b", "label": 1})]
    assert examples_from(TASK, rows)[0].fields["text"] == "b"


def test_an_empty_class_is_refused_by_its_word(tmp_path):
    write(tmp_path / "mine" / "train.jsonl", [{"text": "a", "label": 0}])
    write(tmp_path / "mine" / "validation.jsonl")
    with pytest.raises(Refusal, match='has no example of the class "yes"'):
        load_examples(TASK, tmp_path, tmp_path)


def test_an_empty_split_for_queries_is_refused(tmp_path):
    write(tmp_path / "mine" / "train.jsonl")
    write(tmp_path / "mine" / "validation.jsonl", [])
    with pytest.raises(Refusal, match="the split for queries of mine is empty"):
        load_examples(TASK, tmp_path, tmp_path)


def test_a_missing_split_is_refused_with_the_names_it_could_have(tmp_path):
    write(tmp_path / "mine" / "train.jsonl")
    with pytest.raises(Refusal, match=r"add validation\.jsonl, validation\.jsonl\.gz, validation\.csv"):
        load_examples(TASK, tmp_path, tmp_path)


def test_the_given_folder_comes_before_the_environment_and_both_before_the_file_beside(tmp_path, monkeypatch):
    task = TASK.model_copy(update={"examples": "mine.jsonl"})
    write(tmp_path / "mine.jsonl", [{**row, "split": split} for row in ROWS for split in ("train", "validation")])
    for place in ("given", "environment"):
        for split in ("train", "validation"):
            write(tmp_path / place / "mine" / f"{split}.jsonl")
    assert load_examples(task, tmp_path).origin == "mine.jsonl"
    monkeypatch.setenv("ICLGD_DATA", str(tmp_path / "environment"))
    assert load_examples(task, tmp_path).origin == str(tmp_path / "environment" / "mine")
    assert load_examples(task, tmp_path, tmp_path / "given").origin == str(tmp_path / "given" / "mine")


def test_a_data_folder_without_the_task_leaves_an_embedded_task_its_own_file(tmp_path):
    task, beside = find_task("kinds")
    assert load_examples(task, beside, tmp_path).origin == "kinds.jsonl"


def test_a_data_folder_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(Refusal, match="does not exist"):
        load_examples(TASK, tmp_path, tmp_path / "none")


def test_one_file_without_a_split_column_is_divided_by_its_texts_and_always_alike(tmp_path):
    task = TASK.model_copy(update={"examples": "mine.jsonl"})
    rows = [{"text": f"sentence {i}", "label": i % 2} for i in range(300)]
    write(tmp_path / "mine.jsonl", rows)
    found = load_examples(task, tmp_path)
    write(tmp_path / "mine.jsonl", rows[::-1])
    turned = load_examples(task, tmp_path)
    assert {e.fields["text"] for e in found.train} == {e.fields["text"] for e in turned.train}
    assert not {e.fields["text"] for e in found.train} & {e.fields["text"] for e in found.queries}
    assert 170 < len(found.train) < 230


def test_a_split_column_is_obeyed_and_checked(tmp_path):
    task = TASK.model_copy(update={"examples": "mine.jsonl"})
    write(tmp_path / "mine.jsonl", [{**row, "split": "train" if i < 3 else "validation"} for i, row in enumerate(ROWS)])
    assert [len(part) for part in (load_examples(task, tmp_path).train, load_examples(task, tmp_path).queries)] == [
        3,
        1,
    ]
    write(tmp_path / "mine.jsonl", [{**row, "split": "dev"} for row in ROWS])
    with pytest.raises(Refusal, match='split must be "train" or "validation"'):
        load_examples(task, tmp_path)


@pytest.fixture
def hub(monkeypatch):
    """A `datasets` module that gives the rows put into it and remembers what it was asked for."""
    module, module.asked, module.rows = ModuleType("datasets"), [], []

    def load_dataset(path, config, split):
        module.asked.append((path, config, split))
        if not module.rows:
            raise ConnectionError("no network")
        return module.rows

    module.load_dataset = load_dataset
    monkeypatch.setitem(sys.modules, "datasets", module)
    monkeypatch.delenv("ICLGD_DATA", raising=False)
    return module


def test_the_hub_is_asked_for_the_tasks_own_splits_with_columns_renamed(hub):
    hub.rows = [{"sentence": "a", "label": 0, "idx": 1}, {"sentence": "b", "label": 1, "idx": 2}]
    found = load_examples(*find_task("sst2"))
    assert hub.asked == [("nyu-mll/glue", "sst2", "train"), ("nyu-mll/glue", "sst2", "validation")]
    assert [(e.fields["text"], e.label) for e in found.train] == [("a", 0), ("b", 1)]
    assert found.origin == "nyu-mll/glue/sst2"


def test_hub_label_words_are_read_where_its_ids_run_another_way(hub):
    hub.rows = [
        {"text": "a", "label": 0, "label_text": "subjective"},
        {"text": "b", "label": 1, "label_text": "objective"},
    ]
    assert [e.label for e in load_examples(*find_task("subj")).train] == [1, 0]


def test_the_users_folder_comes_before_the_hub(hub, tmp_path):
    for split in ("glue_train", "validation"):
        write(tmp_path / "sst2" / f"{split}.jsonl")
    load_examples(*find_task("sst2"), tmp_path)
    assert hub.asked == []


def test_a_hub_that_cannot_be_reached_is_refused_with_what_to_do(hub, tmp_path):
    with pytest.raises(Refusal, match=r"has no folder sst2, and nyu-mll/glue/sst2 could not be had .*ConnectionError"):
        load_examples(*find_task("sst2"), tmp_path)


def test_without_data_and_without_the_extra_the_refusal_names_both_ways_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    monkeypatch.delenv("ICLGD_DATA", raising=False)
    with pytest.raises(Refusal, match=r'`data` or ICLGD_DATA, or install "iclgd\[data\]"'):
        load_examples(*find_task("sst2"))


def test_a_task_without_any_source_is_refused(tmp_path, monkeypatch):
    monkeypatch.delenv("ICLGD_DATA", raising=False)
    with pytest.raises(Refusal, match="the examples of mine are not here"):
        load_examples(TASK, tmp_path)


@pytest.mark.parametrize("name, least", [("sentiment", 150), ("kinds", 100), ("continents", 100)])
def test_embedded_tasks_are_balanced_and_repeat_nothing(name, least, monkeypatch):
    monkeypatch.delenv("ICLGD_DATA", raising=False)
    task, beside = find_task(name)
    found = load_examples(task, beside)
    examples = (*found.train, *found.queries)
    texts = {e.fields["text"].lower() for e in examples}
    assert len(texts) == len(examples) >= least
    for part in (found.train, found.queries):
        assert len({sum(e.label == label for e in part) for label in range(len(task.labels))}) == 1
        assert len(part) >= 64


def test_embedded_files_are_all_used():
    assert {path.stem for path in LIBRARY.glob("*.jsonl")} == {"sentiment", "kinds", "continents"}


@needs_data
@pytest.mark.parametrize("name", ["sst2", "sst5", "mr", "subj", "agnews", "cb", "rte", "trec"])
def test_real_data_has_the_counts_its_meta_file_states(name):
    task, beside = find_task(name)
    stated = json.loads((FOLDER / "meta.json").read_text())[name]
    found = load_examples(task, beside, FOLDER)
    assert list(task.labels) == stated["verbalizers"]
    for split, part in ((task.splits.train, found.train), (task.splits.queries, found.queries)):
        counts = [sum(e.label == label for e in part) for label in range(len(task.labels))]
        assert counts == stated["splits"][split]["label_counts"]


def test_a_file_that_changed_is_read_again_and_one_that_did_not_is_not(tmp_path):
    for split in (TASK.splits.train, TASK.splits.queries):
        write(tmp_path / "mine" / f"{split}.jsonl")
    first = load_examples(TASK, tmp_path, tmp_path)
    assert load_examples(TASK, tmp_path, tmp_path) is first
    other = TASK.model_copy(update={"labels": ("bad", "good")})
    assert load_examples(other, tmp_path, tmp_path) is not first
    write(tmp_path / "mine" / f"{TASK.splits.train}.jsonl", [{**ROWS[0], "text": ROWS[0]["text"][::-1]}, *ROWS[1:]])
    second = load_examples(TASK, tmp_path, tmp_path)
    assert second.train[0].fields["text"] == ROWS[0]["text"][::-1]
    assert second.sha256 != first.sha256
