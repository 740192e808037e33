"""Files that are whole or not there: everything is built aside and moved into place."""

import errno
import hashlib
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from iclgd.errors import Refusal

OURS = ".iclgd"  # marks a folder that this program wrote, and so may replace
DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)
BUILDING = ".building-"
HOST = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
ABANDONED = 3600.0  # seconds after which what another machine was building is taken for left behind


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def synced(folder: Path) -> None:
    """Every file of a folder, and the folder, are on the disk before anything points to them."""
    for path in (*folder.iterdir(), folder):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


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
        raise Refusal(f"cannot write to {target.parent}: {error.strerror}.") from None
    try:
        part = folder / target.name
        yield part
        if not target.exists():
            try:
                os.replace(part, target)
            except OSError:
                if not target.exists():  # else another process was faster
                    raise
    except OSError as error:
        if error.errno not in DISK:
            raise
        raise Refusal(f"cannot write {target}: {error.strerror}.") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep(folder: Path) -> list[Path]:
    """Remove what was being built below a folder by processes that are gone; what is still being built stays."""
    left = [path for path in folder.glob(f"{BUILDING}*") if _abandoned(path)] if folder.is_dir() else []
    for path in left:
        shutil.rmtree(path, ignore_errors=True)
    return left


def _abandoned(path: Path) -> bool:
    """Its process ran here and does no more; of another machine's nothing is known but its age."""
    process, _, rest = path.name.removeprefix(BUILDING).partition("-")
    if process.isdigit() and rest.startswith(f"{HOST}-"):
        try:
            os.kill(int(process), 0)
        except ProcessLookupError:
            return True
        except OSError:  # somebody else's process
            return False
        return False
    with suppress(OSError):
        return time.time() - path.stat().st_mtime > ABANDONED
    return False


def check_output(target: Path, overwrite: bool) -> None:
    """Refuse, before any work is done, an output folder that could not be written in the end."""
    try:
        exists = target.exists()
    except OSError as error:
        raise Refusal(f"cannot write to {target}: {error.strerror}.") from None
    if target.is_symlink() and not exists:
        raise Refusal(f"{target} is a link to nothing: give another `out`.")
    if exists and not target.is_dir():
        raise Refusal(f"{target} is a file, not a folder: give another `out`.")
    filled = exists and any(target.iterdir())
    if filled and not (target / OURS).is_file():
        raise Refusal(f"{target} was not written by iclgd and stays as it is: give another `out`.")
    if filled and not overwrite:
        raise Refusal(f"{target} holds another study: give another `out`, or `overwrite` to replace it.")
    nearest = next(parent for parent in target.absolute().parents if parent.exists())
    try:
        with tempfile.TemporaryDirectory(prefix=building(), dir=nearest):
            pass
    except OSError as error:
        raise Refusal(f"cannot write to {target}: {nearest} is not a writable folder ({error.strerror}).") from None


@contextmanager
def output_folder(target: Path) -> Iterator[Path]:
    """A new folder to fill, put in the place of ``target`` when the block ends well; check it first."""
    with aside(target) as folder:
        folder.mkdir()
        (folder / OURS).touch()
        yield folder
        if target.exists():
            os.replace(target, folder.with_name(f"{folder.name}.old"))  # goes when what was built aside goes
