"""Keeping a store in order: what is damaged, what no study needs, and cells on their way to another store."""

import json
import shutil
import tarfile
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iclgd.errors import Refusal
from iclgd.files import aside, check_file, synced
from iclgd.store.cells import ARRAYS, NAME, RECORD, Store, is_name

STUDY = "study.json"  # the record of a study's folder
ENDS = (".tar", ".tar.gz", ".tgz")
OTHER_ENDS = (".zip", ".gz", ".bz2", ".xz", ".zst", ".7z", ".rar")  # what somebody takes for an archive


def damaged(store: Store) -> Iterator[tuple[str, str]]:
    """The cells whose record, name or numbers are not what was written, and why."""
    for name in store.names():
        try:
            store.check(name)
        except Refusal as refusal:
            yield name, str(refusal)


def needed(runs: Path) -> set[str]:
    """Names of the cells that a study's folder below ``runs`` speaks of."""
    found: set[str] = set()
    for path in runs.rglob(STUDY):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise Refusal(f"cannot read {path} ({error}), which may name cells: nothing was removed.") from None
        found |= {key[:NAME] for key in _keys(record)}
    return found


def _keys(record: Any) -> Iterator[str]:
    """The keys of a lab's record, or of every part of a grid's."""
    for part in [record, *record.get("parts", ())]:
        for cell in part.get("cells", ()):
            yield cell["key"] if isinstance(cell, dict) else cell


@dataclass(frozen=True)
class Unneeded:
    """Cells that no study speaks of, and what they take on the disk."""

    names: Sequence[str]
    bytes: int


def unneeded(store: Store, runs: Path, hours: float) -> Unneeded:
    """Cells older than so many hours that no study below ``runs`` speaks of; younger ones may be of one at work."""
    kept, now, names, size = needed(runs), time.time(), [], 0
    for name in store.names():
        folder = store.folder / name
        if name not in kept and now - folder.stat().st_mtime > hours * 3600:
            names.append(name)
            size += sum(path.stat().st_size for path in folder.iterdir())
    return Unneeded(names, size)


# to another store


def export(store: Store, names: Iterable[str], target: Path) -> int:
    """Write cells to a new tar file, or to a new folder, which is a store; gives how many. A damaged one is refused."""
    if target.exists() or target.is_symlink():
        raise Refusal(f"{target} is there already: name another file or folder.")
    if target.suffix in OTHER_ENDS and not target.name.endswith(ENDS):
        raise Refusal(f"{target.name} is no name for cells: give that of a .tar or .tar.gz file, or of a folder.")
    names = list(dict.fromkeys(names))
    for name in names:
        store.check(name)
    with aside(target) as part:
        if target.name.endswith(ENDS):
            with tarfile.open(part, "w:gz" if target.name.endswith("gz") else "w") as tar:
                for name in names:
                    for file in (RECORD, ARRAYS):
                        tar.add(store.folder / name / file, f"{name}/{file}")
        else:
            part.mkdir()
            for name in names:
                shutil.copytree(store.folder / name, part / name)
                synced(part / name)
    return len(names)


@dataclass(frozen=True)
class Imported:
    """How many cells were new, how many were there already, and which were damaged, with why."""

    new: int
    there: int
    damaged: Sequence[tuple[str, str]]


def bring(store: Store, source: Path) -> Imported:
    """Take in the cells of an exported tar file or folder: each is checked, and none that is there is touched."""
    new, there, bad = 0, 0, []
    with _unpacked(source) as folder:
        given = Store(folder)
        if not given.names():
            raise Refusal(f"{source} holds no cells: name what `iclgd store export` wrote, or a store.")
        for name in given.names():
            try:
                given.check(name)
            except Refusal as refusal:
                bad.append((name, str(refusal)))
                continue
            if store.has(name):
                there += 1
                continue
            with aside(store.path(name)) as part:
                part.mkdir()
                for file in (RECORD, ARRAYS):
                    shutil.copyfile(folder / name / file, part / file)
                synced(part)
            new += 1
    return Imported(new, there, bad)


@contextmanager
def _unpacked(source: Path) -> Iterator[Path]:
    """A folder of cells; of a tar file only what can be a cell's file is taken out of it."""
    if source.is_dir():
        yield source
        return
    check_file(source)
    with tempfile.TemporaryDirectory(prefix="iclgd-") as folder:
        try:
            with tarfile.open(source) as tar:
                for member in tar:
                    name, _, file = member.name.partition("/")
                    if member.isfile() and is_name(name) and file in (RECORD, ARRAYS):
                        tar.extract(member, folder, filter="data")
        except OSError as error:
            raise Refusal(f"cannot read {source}: {error.strerror or 'the file is damaged'}.") from None
        except (tarfile.TarError, EOFError, zlib.error):
            raise Refusal(f"{source} is not a tar file that can be read: export it again.") from None
        yield Path(folder)
