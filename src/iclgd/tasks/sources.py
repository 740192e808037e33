"""Reading a task's examples: from the package, from a folder of the user's, or from the Hugging Face hub."""

import csv
import gzip
import hashlib
import io
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from iclgd.errors import Refusal
from iclgd.files import content
from iclgd.spec import canonical
from iclgd.tasks.text import SUFFIXES, Example, TextTask

Row = Mapping[str, Any]
Placed = tuple[str, Row]  # where a row stands, for a complaint, and the row


@dataclass(frozen=True)
class Examples:
    """A task's two splits, where they came from and the hash of what was read."""

    train: tuple[Example, ...]
    queries: tuple[Example, ...]
    origin: str
    sha256: str


def read_rows(path: Path) -> list[Placed]:
    """The rows of a JSON lines, CSV or Parquet file, each with its place."""
    if not path.name.endswith(SUFFIXES):
        raise Refusal(f"{path} is no table that can be read: give one that ends in {', '.join(SUFFIXES)}.")
    raw = content(path)
    if path.suffix == ".parquet":
        return _parquet_rows(raw, path)
    try:
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8-sig")
        return list(_csv_rows(text, path) if path.suffix == ".csv" else _json_rows(text, path))
    except UnicodeDecodeError as error:
        line = bytes(error.object)[: error.start].count(b"\n") + 1
        raise Refusal(f"{path}, line {line}: this is not UTF-8; save the file in that encoding.") from None
    except (OSError, EOFError, zlib.error):
        raise Refusal(f"cannot read {path}: the file is damaged; pack it again.") from None


def _json_rows(text: str, path: Path) -> Iterator[Placed]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            said = (
                f"{error.msg}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else "nested too deep"
            )
            raise Refusal(f"{path}, line {number}: this is not JSON ({said}); write one object on each line.") from None
        if not isinstance(row, dict):
            raise Refusal(f"{path}, line {number}: this is no JSON object; write one on each line.")
        yield f"{path}, line {number}", row


def _csv_rows(text: str, path: Path) -> Iterator[Placed]:
    reader, begins = csv.DictReader(io.StringIO(text, newline=""), strict=True), 0
    try:
        if reader.fieldnames is None:
            return
        begins = reader.line_num + 1
        for row in reader:
            if None in row:
                raise Refusal(
                    f"{path}, line {begins}: there are more cells than in the header; quote texts that hold commas."
                )
            yield f"{path}, line {begins}", row
            begins = reader.line_num + 1
    except csv.Error as error:
        raise Refusal(
            f"{path}, line {begins}: this is not CSV ({error}); quote texts that hold quotes or commas."
        ) from None


def _parquet_rows(raw: bytes, path: Path) -> list[Placed]:
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise Refusal('reading Parquet needs pyarrow: pip install "iclgd[data]".') from None
    try:
        rows = parquet.read_table(arrow.BufferReader(raw)).to_pylist()
    except arrow.ArrowInvalid:
        raise Refusal(f"{path} is not a Parquet file: write it again, or give another form of it.") from None
    return [(f"{path}, row {number}", row) for number, row in enumerate(rows, 1)]


def examples_from(task: TextTask, rows: Iterable[Placed]) -> tuple[Example, ...]:
    """Rows as examples; a missing column or an unknown label is refused by place. Unlabelled rows (−1) are left out."""
    examples, fields = [], task.fields
    for place, row in rows:
        missing = [name for name in (*fields, "label") if row.get(name) is None]
        if missing:
            needed = ", ".join((*fields, "label"))
            raise Refusal(f'{place}: there is no column "{missing[0]}"; the task {task.name} needs {needed}.')
        label = _label_index(task, row["label"], place)
        if label >= 0:
            examples.append(Example({name: str(row[name]) for name in fields}, label))
    return tuple(examples)


def _label_index(task: TextTask, label: Any, where: str) -> int:
    """The index of a label given as one of ``label_names``, as a label word or as an index; −1 is unlabelled."""
    if task.label_names and str(label) in task.label_names:
        return task.label_names.index(str(label))
    if isinstance(label, str) and label in task.labels:
        return task.labels.index(label)
    try:
        index = int(label)
    except (TypeError, ValueError, OverflowError):
        index = len(task.labels)
    if not -1 <= index < len(task.labels) or (isinstance(label, float) and label != index):
        raise Refusal(
            f"{where}: the label {str(label)[:40]!r} must be a label word of {task.name} ({', '.join(task.labels)}) or "
            f"an index from 0 to {len(task.labels) - 1}."
        )
    return index


def load_examples(task: TextTask, beside: Path, data: Path | None = None) -> Examples:
    """The examples of a task, looked for in this order.

    The user's folder (``data`` or ICLGD_DATA) as ``<task>/<split>.jsonl[.gz]``, ``.csv`` or ``.parquet``; the file
    beside the task's own YAML; the Hugging Face hub, where the extra ``data`` is installed.
    """
    folder = data or (Path(os.environ["ICLGD_DATA"]) if os.environ.get("ICLGD_DATA") else None)
    if folder is not None and not folder.is_dir():
        wrong = "is a file" if folder.exists() else "does not exist"
        raise Refusal(f"the data folder {folder} {wrong}: name the folder that holds {task.name}/ with `data`.")
    if folder is not None and (folder / task.name).is_dir():
        files = [_split_file(folder / task.name, split, task) for split in (task.splits.train, task.splits.queries)]
        return _from_folder(task.model_dump_json(), folder / task.name, *((file, _stamp(file)) for file in files))
    if task.examples is not None:
        path = beside / task.examples
        train, queries = _one_file(task, read_rows(path))
        return _checked(task, train, queries, path.name)
    lacking = f"{folder} has no folder {task.name}" if folder else f"the examples of {task.name} are not here"
    if task.hub is not None:
        return _from_hub(task, lacking)
    raise Refusal(f"{lacking}: put them in a folder {task.name}/ and name its parent with `data` or ICLGD_DATA.")


@lru_cache(maxsize=16)  # a study draws hundreds of episodes from the same files
def _from_folder(asked: str, folder: Path, *files: tuple[Path, tuple[int, ...]]) -> Examples:
    """The examples of two files, read again where their stamps are others."""
    task = TextTask.model_validate_json(asked)
    train, queries = (examples_from(task, read_rows(file)) for file, _ in files)
    return _checked(task, train, queries, str(folder))


def _stamp(file: Path) -> tuple[int, ...]:
    """What changes when a file does."""
    now = file.stat()
    return now.st_ino, now.st_size, now.st_mtime_ns


def _split_file(folder: Path, split: str, task: TextTask) -> Path:
    for suffix in SUFFIXES:
        if (folder / f"{split}{suffix}").is_file():
            return folder / f"{split}{suffix}"
    raise Refusal(f"{folder} has no {split} split for {task.name}: add {', '.join(split + s for s in SUFFIXES)}.")


def _one_file(task: TextTask, rows: list[Placed]) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """Both splits from one file: by its column `split`, else two thirds of the rows by the hash of their text."""
    sides: tuple[list[Placed], list[Placed]] = ([], [])
    for place, row in rows:
        if "split" in row and row["split"] not in (task.splits.train, task.splits.queries):
            raise Refusal(f'{place}: split must be "{task.splits.train}" or "{task.splits.queries}".')
        if "split" in row:
            side = int(row["split"] == task.splits.queries)
        else:
            text = canonical([str(row.get(name)) for name in task.fields])
            side = int(int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") % 3 == 0)
        sides[side].append((place, row))
    return examples_from(task, sides[0]), examples_from(task, sides[1])


def _from_hub(task: TextTask, lacking: str) -> Examples:
    assert task.hub is not None
    where = f"{task.hub.path}{'/' + task.hub.config if task.hub.config else ''}"
    try:
        from datasets import load_dataset
    except ImportError:
        raise Refusal(
            f"{lacking}: name the folder that holds {task.name}/ with `data` or ICLGD_DATA, or install "
            f'"iclgd[data]" to take {where} from the Hugging Face hub.'
        ) from None
    columns = {name: task.hub.columns.get(name, name) for name in (*task.fields, "label")}
    parts = []
    for split in (task.hub.splits.train, task.hub.splits.queries):
        try:
            table = load_dataset(task.hub.path, task.hub.config, split=split)
        except Exception as error:  # the hub's client raises many kinds for one thing: it could not be had
            raise Refusal(
                f"{lacking}, and {where} could not be had from the Hugging Face hub ({type(error).__name__}): name "
                f"the folder that holds {task.name}/ with `data` or ICLGD_DATA."
            ) from None
        rows = (
            (f"{where}:{split}, row {number}", {name: row.get(column) for name, column in columns.items()})
            for number, row in enumerate(table, 1)
        )
        parts.append(examples_from(task, rows))
    return _checked(task, parts[0], parts[1], where)


def _checked(task: TextTask, train: tuple[Example, ...], queries: tuple[Example, ...], origin: str) -> Examples:
    present = {example.label for example in train}
    for label, word in enumerate(task.labels):
        if label not in present:
            raise Refusal(
                f'{origin}: the training split of {task.name} has no example of the class "{word}": add some.'
            )
    if not queries:
        raise Refusal(f"{origin}: the split for queries of {task.name} is empty: add some examples to it.")
    content = canonical([[dict(e.fields), e.label] for e in (*train, *queries)])
    return Examples(train, queries, origin, hashlib.sha256(content.encode()).hexdigest())
