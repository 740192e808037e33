"""A file or folder that the system refuses to look at, as a sentence that names the flag or variable it came from."""

import errno
import os
from collections.abc import Iterator, Sequence

DENIED = (errno.ENAMETOOLONG, errno.EACCES, errno.EPERM)
VARIABLES = ("ICLGD_STORE", "ICLGD_CACHE", "ICLGD_DATA")
LONGEST, HEAD, TAIL = 100, 60, 30  # characters of a path that are shown


def denied(error: OSError, line: Sequence[str]) -> str | None:
    """What to say of a name that is too long or a place that may not be reached; None of any other error."""
    if error.errno not in DENIED or not isinstance(error.filename, str | bytes):
        return None
    path = os.fsdecode(error.filename)
    return f"cannot use {shortened(path)}: {error.strerror}; {_remedy(path, line)}."


def shortened(path: str) -> str:
    """A path that fits a line: of a long one, how it begins and ends."""
    return path if len(path) <= LONGEST else f"{path[:HEAD]}…{path[-TAIL:]}"


def _remedy(path: str, line: Sequence[str]) -> str:
    """Where another name is to be given: the longest value in the path, of the line's or of a variable's."""
    whole = f"/{os.path.normpath(path)}/"
    inside = [(value, said) for value, said in _values(line) if f"/{os.path.normpath(value)}/" in whole]
    return max(inside, key=lambda found: len(found[0]), default=("", "name another file or folder"))[1]


def _values(line: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Every value that may be a path, with how to give another."""
    for before, word in zip(("", *line), line, strict=False):
        name, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
        flag = name if equals else before if before.startswith("--") and "=" not in before else ""
        said = f"name another with {flag}" if flag else "name another file or folder"
        yield from ((one, said) for one in value.split(",") if one)
    for variable in VARIABLES:
        if named := os.environ.get(variable):
            yield named, f"set {variable} to another folder"
