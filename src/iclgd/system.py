"""What operating systems do differently: locks, processes, disks, memory."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
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

        kernel: Any = ctypes.windll.kernel32  # type: ignore[attr-defined]  # of Windows alone
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


def exchange(one: Path, other: Path) -> None:
    """Two files or folders change places: at once where the system can (Linux), else one after the other."""
    if sys.platform == "linux":
        import ctypes

        at_once = getattr(ctypes.CDLL(None), "renameat2", None)  # glibc has it since 2.28
        here, swapped = -100, 2
        if at_once and at_once(here, os.fsencode(one), here, os.fsencode(other), swapped) == 0:
            return
    away = one.with_name(f"{one.name}.old")
    os.replace(other, away)
    os.replace(one, other)
    os.replace(away, one)


def peak_memory() -> int:
    """Bytes of main memory that this process had at most; 0 where the system does not say."""
    try:
        import resource
    except ImportError:
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def memory() -> int | None:
    """Bytes of main memory that this process may have: the machine's, or a container's; None where nobody says."""
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
    return min([there, *_limits(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"))])


def _limits(groups: Path, root: Path) -> Iterator[int]:
    """What Linux's control groups (a container, a job of Slurm) leave this process: its own and all above it.

    Version 2 has one tree, version 1 one of memory alone; within a container its own group is the root.
    """
    try:
        lines = groups.read_text().splitlines()
    except OSError:
        return
    for _, kinds, own in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        if kinds and "memory" not in kinds.split(","):
            continue
        tree, file = (root / "memory", "memory.limit_in_bytes") if kinds else (root, "memory.max")
        here = tree / own.lstrip("/")
        for folder in (here, *here.parents):
            with suppress(OSError, ValueError):  # not there, or `max`
                yield int((folder / file).read_text())
            if folder == tree:
                break
