"""Names to things. An unknown name is answered with the nearest known ones."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Generic, TypeVar

from iclgd.errors import Refusal

Thing = TypeVar("Thing")


def suggest(name: str, known: Iterable[str]) -> str:
    """`Did you mean sst2 or sst5? `, or nothing when no known name is near."""
    near = get_close_matches(name.lower(), list(known), n=3, cutoff=0.6)
    return f"Did you mean {' or '.join(near)}? " if near else ""


class Registry(Generic[Thing]):
    """Things of one kind by name; ``listing`` is the command that shows them all."""

    def __init__(self, kind: str, listing: str):
        self.kind, self.listing = kind, listing
        self._things: dict[str, Thing] = {}

    def add(self, name: str, thing: Thing) -> Thing:
        if name in self._things:
            raise ValueError(f"two {self.kind}s are called {name!r}")
        self._things[name] = thing
        return thing

    def __getitem__(self, name: str) -> Thing:
        if name not in self._things:
            raise Refusal(f'no {self.kind} "{name}". {suggest(name, self._things)}`{self.listing}` lists all.')
        return self._things[name]

    def __contains__(self, name: object) -> bool:
        return name in self._things

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)

    def items(self) -> Iterable[tuple[str, Thing]]:
        return self._things.items()
