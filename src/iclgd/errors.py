"""What goes wrong in the user's hands: one sentence that says what is wrong and what to do."""


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
