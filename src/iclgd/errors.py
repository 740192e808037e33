"""What goes wrong in the user's hands: one sentence that says what is wrong and what to do."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

# what torch says of memory; the last two of tensors whose size is no number
TOO_MUCH = ("out of memory", "allocate memory", "not enough memory", "multiplication overflow", "calculation overflow")


class Refusal(Exception):
    """The request cannot be met as it stands.

    The message is one sentence for a person. The command line prints it after ``iclgd: `` and exits with 2;
    anything that is not a Refusal is a bug and keeps its traceback.
    """


class Unfinished(Refusal):
    """Some cells of a study failed and the others are kept; the command line exits with 1.

    ``traces`` are tracebacks of errors that nobody foresaw, one of each kind.
    """

    def __init__(self, sentence: str, traces: tuple[str, ...] = ()):
        super().__init__(sentence)
        self.traces = traces


class Stopped(KeyboardInterrupt):
    """Ctrl-C or SIGTERM, with a sentence that says what is kept and how to go on."""


def visible(text: str) -> str:
    """The text with control characters, which a data set or a file name might bring, spelled out."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def out_of_memory(error: BaseException) -> bool:
    """Whether numpy's, torch's or Python's memory ran out: on a GPU, on Linux and on Windows it is said differently."""
    known = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    said = re.search("|".join(TOO_MUCH), str(error))
    return known or (isinstance(error, RuntimeError) and said is not None)


@contextmanager
def memory_told() -> Iterator[None]:
    """More memory than there is, asked for by numpy or torch, is a sentence: what was asked is too large for here."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        said = str(error).split("\n")[0]
        if not out_of_memory(error):
            raise
        asked = re.search(r"allocate (?:([\d.]+ ?[KMGTPE]i?B)|(\d+) bytes)", said)
        size = f" ({asked[1] or f'{int(asked[2]) / 1e9:,.1f} GB'} at once)" if asked else ""
        raise Refusal(
            f"this takes more memory than there is{size}: ask for less of what makes it large; cells that were "
            "finished are kept."
        ) from None
