"""What was run, in one line: the same for every lab that asks a model about episodes of tasks."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from iclgd.report.numbers import counted


class Asked(Protocol):
    """What a lab's spec says of it: `ModelOptions` and `SomeEpisodes` together."""

    @property
    def model_title(self) -> str: ...
    @property
    def task_titles(self) -> Mapping[str, str]: ...
    @property
    def seeds(self) -> Sequence[int]: ...
    @property
    def dtype(self) -> str: ...


def what(spec: Asked, shown: Iterable[int], asked: Iterable[int], *more: str, query: str = "query") -> str:
    """Model, tasks, demonstrations, ``more``, draws and queries, arithmetic; episodes may differ in numbers."""
    drawn = f"{counted(len(spec.seeds), 'seed')} × {_many(asked, query)}"
    return " · ".join(
        [spec.model_title, ", ".join(spec.task_titles.values()), f"k = {_range(shown)}", *more, drawn, spec.dtype]
    )


def _range(counts: Iterable[int]) -> str:
    low, high = min(known := set(counts)), max(known)
    return f"{low}" if low == high else f"{low} to {high}"


def _many(counts: Iterable[int], what: str) -> str:
    """`1 query`, `40 queries`, `56 to 64 queries`."""
    known = set(counts)
    number, _, words = counted(max(known), what).partition(" ")
    return f"{number} {words}" if len(known) == 1 else f"{_range(known)} {words}"
