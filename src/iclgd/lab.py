"""What a lab is: a spec that lists its cells, a run that turns a cell into a result, a page that shows results.

Everything around these three (keys, store, resume, engines, folders, commands, the Python function) is written once,
in the frame, and knows no lab by name.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import model_validator

from iclgd.registry import Registry, load_plugin
from iclgd.spec import Names, Spec, key, option, unique

if TYPE_CHECKING:
    from iclgd.report.page import Page
    from iclgd.results import Result
    from iclgd.study import Study
    from iclgd.tools import Tools

Label = str | int | float | bool


class LabSpec(Spec):
    """What one study of a lab is asked for; its docstring is the help of the lab's command."""

    plugin: Names | tuple[()] = option((), "Python files whose learners, metrics, … are to be known.", keyed=False)

    @model_validator(mode="before")
    @classmethod
    def _load_plugins(cls, given: Any) -> Any:
        if isinstance(given, Mapping):
            named = unique(given.get("plugin") or ())
            for file in named if isinstance(named, tuple) else ():
                load_plugin(str(file))
        return given

    def cells(self) -> "list[Cell]":
        """The smallest units of work, in the order in which they are best run."""
        raise TypeError(f"{type(self).__name__} lists no cells")

    def title(self) -> str:
        """What the study's folder is called, before the key."""
        return ""


Asked = TypeVar("Asked", bound=Spec)


@dataclass(frozen=True)
class Cell:
    """One unit of work: the lab that runs it, everything that changes its numbers, and where they stand in a study.

    Cells of one ``group`` run one after another in one process, so that they can share what `Tools.shared` keeps.
    """

    lab: str
    spec: Spec
    labels: Mapping[str, Label] = field(default_factory=dict)
    group: str = ""

    def key(self, identity: Mapping[str, Any], version: int) -> str:
        """The cell's name: its lab with its version, its spec, and what the spec only points to (weights, data)."""
        return key({"lab": self.lab, "version": version, "spec": self.spec.keyed(), "identity": dict(identity)})

    def asks(self, kind: type[Asked]) -> Asked:
        """The spec, which its lab knows to be of a kind."""
        assert isinstance(self.spec, kind)
        return self.spec

    @property
    def called(self) -> str:
        """What a person calls the cell among those of its study."""
        return called(self.labels) or self.lab


def called(labels: Mapping[str, Label]) -> str:
    """`task sst2 seed 3`."""
    return " ".join(f"{name} {value}" for name, value in labels.items())


@dataclass(frozen=True)
class Lab:
    """A lab as the frame sees it.

    ``run`` is pure: the same cell gives the same result, and what it needs beyond the spec comes from its tools.
    ``together``, where given, runs many cells in one go to the same numbers. ``identity`` hashes what a spec points to.
    ``version`` rises when the same cell would give other numbers. A ``quick`` lab leaves no folder unless asked to.
    ``flops`` counts a cell's arithmetic, so that a plan can say how long it takes before any was run; None: it cannot.
    """

    spec: type[LabSpec]
    run: "Callable[[Cell, Tools], Result] | None"
    page: "Callable[[Study], Page]"
    together: "Callable[[Sequence[Cell], Tools], Iterable[Result]] | None" = None
    identity: "Callable[[Cell, Tools], Mapping[str, Any]]" = lambda _cell, _tools: {}
    version: int = 1
    flops: "Callable[[Cell, Tools], float | None] | None" = None
    quick: bool = False
    examples: str = ""

    @property
    def __wrapped__(self) -> type[LabSpec]:
        """Where the lab was written: its docstring describes the lab, and a stranger's file is part of its keys."""
        return self.spec


def later(address: str) -> Callable[..., Any]:
    """A function as `module:name`, imported when it is first called: a lab's spec can be checked without torch."""

    def call(*args: Any) -> Any:
        module, _, name = address.partition(":")
        return getattr(import_module(module), name)(*args)

    return call


LABS: Registry[Lab] = Registry("lab", "iclgd --help", "iclgd.labs", home="iclgd.labs")
GROUPS: dict[str, str] = {}  # what the labs that share a first word are about
