"""Examples below a command's help: what each does stands beside it, in a narrow window below it."""

import re
import shutil
from textwrap import wrap

WIDEST, MARGIN = 100, 6  # columns of help, and of them those that are left free


def epilog(examples: str) -> str:
    r"""Lines `command   what it does` under their heading, in the window's width; a long command goes on after \."""
    room = min(shutil.get_terminal_size().columns, WIDEST) - MARGIN
    rows = [re.split(r" {3,}", line.strip(), maxsplit=1) for line in examples.splitlines()]
    commands = [
        wrap(row[0], room - 2, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False) for row in rows
    ]
    told = ["".join(row[1:]) for row in rows]
    beside = 3 + max((len(lines[-1]) for lines, about in zip(commands, told, strict=True) if about), default=0)
    fits = all(beside + len(about) <= room for about in told)
    found = []
    for lines, about in zip(commands, told, strict=True):
        last = f"{lines[-1]:<{beside}}{about}" if about and fits else lines[-1]
        found += [f"{line} \\" for line in lines[:-1]] + [last] + ([f"    {about}"] if about and not fits else [])
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in found)
