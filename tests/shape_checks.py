"""The checker of types and shapes in signatures; an int passes for a float, as Python has it."""

from typing import Any

from beartype import BeartypeConf, beartype
from beartype.roar import BeartypeDecorHintException

_check: Any = beartype(conf=BeartypeConf(is_pep484_tower=True))


def checked(thing: Any) -> Any:
    """What is given, checked at every call; what has a hint that cannot be checked (a protocol) stays as it is."""
    try:
        return _check(thing)
    except BeartypeDecorHintException:
        return thing
