"""The user's cache folder, and digests of files that are computed once."""

import hashlib
import os
import tempfile
import time
from pathlib import Path

from iclgd.errors import Refusal
from iclgd.files import check_writable, file_sha256

SETTLED = 1_000_000_000  # nanoseconds: a file changed later than this before it was read may change under one stamp


def cache_folder() -> Path:
    """ICLGD_CACHE, else ``iclgd`` in the user's cache folder."""
    if os.environ.get("ICLGD_CACHE"):
        return Path(os.environ["ICLGD_CACHE"])
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "iclgd"


def check_cache() -> None:
    """Refuse, before anything is fetched or unpacked, a cache that cannot be written."""
    folder = cache_folder()
    try:
        check_writable(folder, folder.absolute())
    except Refusal:
        raise Refusal(f"the cache {folder} cannot be written: set ICLGD_CACHE to a folder that can.") from None


def digest(path: Path, fresh: bool = False) -> str:
    """A file's SHA-256, remembered by its path, size and time of change, so that a second call is instant.

    ``fresh`` reads the file all the same, and remembers what it found: a disk may change a file and tell nobody.
    """
    now, stat = time.time_ns(), path.stat()
    stamp = f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}"
    memory = cache_folder() / "digests" / hashlib.sha256(stamp.encode()).hexdigest()
    if not fresh:
        try:
            return memory.read_text()
        except OSError:
            pass
    found = file_sha256(path)
    if now - stat.st_mtime_ns > SETTLED:
        _remember(memory, found)
    return found


def _remember(memory: Path, text: str) -> None:
    """Write a small file whole, over an older one; a cache that cannot be written only costs time."""
    try:
        memory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=memory.parent, prefix=".", delete=False) as file:
            file.write(text)
        os.replace(file.name, memory)
    except OSError:
        pass
