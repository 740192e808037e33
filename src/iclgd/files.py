"""Files that are whole or not there: everything is built aside and moved into place."""

import errno
import hashlib
import json
import os
import platform
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from iclgd.errors import Refusal
from iclgd.system import alive, exchange, lock, sync

OURS = ".iclgd"  # marks a folder that this program wrote, and so may replace
DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG, errno.EIO, errno.ENAMETOOLONG)
BUILDING = ".building-"
HOST = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
ABANDONED = 3600.0  # seconds after which what another machine was building is taken for left behind


def content(path: Path) -> bytes:
    """What a file of the user's holds."""
    check_file(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise Refusal(f"cannot read {path}: {error.strerror}; name a file that can be read.") from None


def check_file(path: Path) -> None:
    """Refuse what is no file; of a pipe or a device the end may never come."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        raise Refusal(f"cannot read {path}: {error.strerror}; check the name.") from None
    except OSError as error:
        raise Refusal(f"cannot read {path}: {error.strerror}; name a file that can be read.") from None
    except ValueError:
        raise Refusal(f"cannot read {path}: no file can have this name; name another.") from None
    _check_regular(path, mode, "read")


def _check_regular(path: Path, mode: int, what: str) -> None:
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
        raise Refusal(f"cannot {what} {path}: it is {kind}, not a file; name a file.")


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def synced(folder: Path) -> None:
    """Every file of a folder, and the folder, are on the disk before anything points to them; waits for all at once."""
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(sync, (*folder.iterdir(), folder)))


def building() -> str:
    """How the name of what is built aside begins: whoever finds it can tell whether its process is still there."""
    return f"{BUILDING}{os.getpid()}-{HOST}-"


@contextmanager
def aside(target: Path) -> Iterator[Path]:
    """A path to build a file or folder under; moved to ``target`` if the block ends well, removed if not.

    Two processes may build the same thing: the first to finish wins and the other's work is dropped.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=building(), dir=target.parent))
    except OSError as error:
        raise Refusal(f"cannot write to {target.parent}: {error.strerror}; name another place.") from None
    try:
        part = folder / target.name
        yield part
        if not target.exists():
            try:
                os.replace(part, target)
                sync(target.parent)  # the new name is on the disk too
            except OSError:
                if not target.exists():  # else another process was faster
                    raise
    except OSError as error:
        raise _unwritten(target, error) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unwritten(target: Path, error: OSError) -> Exception:
    """A disk that is full, read-only or gone is a sentence; anything else is a bug."""
    return Refusal(f"cannot write {target}: {error.strerror}.") if error.errno in DISK else error


@contextmanager
def new_folder(target: Path) -> Iterator[None]:
    """A folder of ours that is filled bit by bit: there and marked before the block begins."""
    try:
        target.mkdir(parents=True, exist_ok=True)
        (target / OURS).touch()
        yield
    except OSError as error:
        raise _unwritten(target, error) from None


def write_over(target: Path, content: str | bytes) -> None:
    """A small file in the place of an older one: the old text or the new one is there at any moment."""
    with aside(target) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)
        sync(part)
        os.replace(part, target)


def sweep(folder: Path) -> list[Path]:
    """Remove what was being built below a folder by processes that are gone; what is still being built stays."""
    left = abandoned(folder)
    for path in left:
        shutil.rmtree(path, ignore_errors=True)
    return left


def abandoned(folder: Path) -> list[Path]:
    """What processes that are gone left behind in a folder."""
    return [path for path in folder.glob(f"{BUILDING}*") if _abandoned(path)] if folder.is_dir() else []


def _abandoned(path: Path) -> bool:
    """Its process ran here and does no more; of another machine's nothing is known but its age."""
    process, _, rest = path.name.removeprefix(BUILDING).partition("-")
    if process.isdigit() and rest.startswith(f"{HOST}-"):
        return not alive(int(process))
    with suppress(OSError):
        return time.time() - path.stat().st_mtime > ABANDONED
    return False


@contextmanager
def held(target: Path, wait: bool = False) -> Iterator[Callable[[list[str], list[str]], None]]:
    """One command at a time writes to ``target``: a second one waits, or is refused and told which process has it.

    The lock lies beside the target, and ends with its process however that ends. Who holds it has a function to say
    there what is at work and what failed.
    """
    path = _lock(target)
    fresh = not path.parent.exists()
    with _locked(path, target, wait) as file:

        def note(running: list[str], failed: list[str]) -> None:
            line = json.dumps({"process": os.getpid(), "running": running, "failed": failed}).encode() + b"\n"
            with suppress(OSError):  # on a full disk nobody learns of it
                file.seek(0)
                file.write(line)  # at once; who reads takes the first line
                file.truncate(len(line))

        note([], [])
        try:
            yield note
        finally:
            with suppress(OSError):
                path.unlink()
                if fresh:
                    path.parent.rmdir()  # where nothing came of it


def _lock(target: Path) -> Path:
    whole = target.resolve()
    return whole.with_name(f".{hashlib.sha256(whole.name.encode()).hexdigest()[:12]}.lock")


@contextmanager
def _locked(path: Path, target: Path, wait: bool) -> Iterator[IO[bytes]]:
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0)
        except OSError as error:
            raise Refusal(f"cannot write to {path.parent}: {error.strerror}; name another place.") from None
        with file:
            try:
                lock(file, wait=wait)
            except BlockingIOError:
                owner = _held(file).process or "another"
                raise Refusal(f"process {owner} is writing {target}: wait for it, or give another `out`.") from None
            try:
                current = os.path.samestat(os.fstat(file.fileno()), path.stat())
            except FileNotFoundError:
                current = False
            if current:
                yield file
                return
        # its last owner removed it in between: once more


@dataclass(frozen=True)
class Holder:
    """The process that is writing something (none: nobody is), what it has at work, and what failed."""

    process: str = ""
    running: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


def holder(target: Path) -> Holder:
    """Who is writing ``target``."""
    try:
        with _lock(target).open("rb") as file:
            try:
                lock(file, shared=True)
            except BlockingIOError:
                return _held(file)
    except OSError:
        pass
    return Holder()


def _held(file: IO[bytes]) -> Holder:
    """What the holder of a lock wrote into it."""
    try:
        file.seek(0)
        told = json.loads(file.read().partition(b"\n")[0])
        return Holder(str(told["process"]), tuple(told["running"]), tuple(told["failed"]))
    except (ValueError, KeyError, TypeError):  # it has only just begun
        return Holder("another")


def check_output(target: Path, overwrite: bool) -> None:
    """Refuse, before any work is done, an output folder that could not be written in the end."""
    try:
        target.stat()
        exists = True
    except (FileNotFoundError, NotADirectoryError):
        exists = False
    except OSError as error:
        raise Refusal(f"cannot write to {target}: {error.strerror}; give another `out`.") from None
    except ValueError:
        raise Refusal(f"{target} is no name that a folder can have: give another `out`.") from None
    if target.is_symlink() and not exists:
        raise Refusal(f"{target} is a link to nothing: give another `out`.")
    if exists and not target.is_dir():
        raise Refusal(f"{target} is a file, not a folder: give another `out`.")
    filled = exists and any(target.iterdir())
    if filled and not (target / OURS).is_file():
        raise Refusal(f"{target} was not written by iclgd and stays as it is: give another `out`.")
    if filled and not overwrite:
        raise Refusal(f"{target} holds another study: give another `out`, or `overwrite` to replace it.")
    check_writable(target, target.absolute().parent)


def named_file(target: Path) -> Path:
    """Where a file that a user names goes, at the end of links; refuse, before any work, what no file may replace."""
    try:
        mode = target.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        if target.is_symlink():
            raise Refusal(f"cannot write {target}: it is a link to nothing; name another file.") from None
        mode = stat.S_IFREG
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", "no file can have this name")
        raise Refusal(f"cannot write {target}: {why}; name another file.") from None
    _check_regular(target, mode, "write")
    place = target.resolve() if target.is_symlink() else target
    check_writable(target, place.absolute().parent)
    return place


def check_writable(target: Path, folder: Path) -> None:
    """Refuse, before any work is done, a target whose folder, or the nearest above that is there, is not writable."""
    for nearest in (folder, *folder.parents):
        if nearest.exists():
            break
        if nearest.is_symlink():
            raise Refusal(f"cannot write to {target}: {nearest} is a link to nothing; name another place.")
    try:
        with tempfile.TemporaryDirectory(prefix=building(), dir=nearest):
            pass
    except OSError as error:
        raise Refusal(
            f"cannot write to {target}: {nearest} is not a writable folder ({error.strerror}); name another place."
        ) from None


@contextmanager
def output_folder(target: Path) -> Iterator[Path]:
    """A new folder to fill, put in the place of ``target`` when the block ends well; check it first."""
    with aside(target) as folder:
        folder.mkdir()
        (folder / OURS).touch()
        yield folder
        if target.exists():
            exchange(folder, target)  # the old one goes when what was built aside goes
