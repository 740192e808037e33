"""What goes wrong in the user's hands: one sentence that says what is wrong and what to do."""


class Refusal(Exception):
    """The request cannot be met as it stands.

    The message is one sentence for a person. The command line prints it after ``iclgd: `` and exits with 2;
    anything that is not a Refusal is a bug and keeps its traceback.
    """


def visible(text: str) -> str:
    """The text with control characters, which a data set or a file name might bring, spelled out."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)
