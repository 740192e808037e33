"""The regressions that modified attention is trained on, by name."""

from iclgd.errors import Refusal
from iclgd.registry import suggest
from iclgd.tasks.families import FAMILIES

PANELS = ("linear", "trigonometric", "exponential")  # of Ren and Liu's slides: `small.LINKS`

VERSION = 1  # of these three, in keys; rises when one would draw other episodes


def identity(name: str) -> str:
    """A regression's name with its version, as a key has it; the expression of a language says what it is."""
    if name in PANELS:
        return f"{name}@{VERSION}"
    return FAMILIES.identity(name) if name in list(FAMILIES) else name


def check_task(name: str) -> None:
    """Refuse a name that is neither a panel's nor a family's of the linear lab."""
    known = list(dict.fromkeys([*PANELS, *FAMILIES]))
    if name not in known:
        raise Refusal(f'no regression "{name}". {suggest(name, known)}There are {", ".join(known)}.')
