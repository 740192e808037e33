"""What operating systems do differently: locks, processes, disks, memory."""

import os
import sys
from pathlib import Path
from typing import IO, Any

WINDOWS = sys.platform == "win32"
FAR = 1 << 30  # the byte that is locked on Windows: beyond the text, which others are to read


def lock(file: IO[bytes], shared: bool = False, wait: bool = False) -> None:
    """Lock an open file until it is closed; where another process has it, wait (Windows: ten seconds) or give up.

    Who gives up raises BlockingIOError.
    """
    if WINDOWS:
        import msvcrt

        own: Any = msvcrt  # its functions are known to a type checker on Windows only
        place = file.tell()
        file.seek(FAR)
        try:
            own.locking(file.fileno(), own.LK_LOCK if wait else own.LK_NBLCK, 1)
        except OSError:
            raise BlockingIOError from None
        finally:
            file.seek(place)
    else:
        import fcntl

        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))


def alive(process: int) -> bool:
    """Whether a process of this machine still runs; somebody else's, which may not be asked, does."""
    if WINDOWS:  # where os.kill(…, 0) would be Ctrl-C
        import ctypes

        kernel: Any = ctypes.windll.kernel32  # type: ignore[attr-defined]
        query, still = 0x1000, 259
        handle, code = kernel.OpenProcess(query, False, process), ctypes.c_ulong()
        known = bool(handle) and bool(kernel.GetExitCodeProcess(handle, ctypes.byref(code)))
        kernel.CloseHandle(handle)
        return known and code.value == still
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def sync(path: Path) -> None:
    """A file or folder is on the disk; Windows opens no folder, and syncs only what could be written."""
    if WINDOWS and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR if WINDOWS else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def peak_memory() -> int:
    """Bytes of main memory that this process had at most; 0 where the system does not say."""
    try:
        import resource
    except ImportError:
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
