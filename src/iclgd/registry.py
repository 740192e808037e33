"""Names to things. What is registered may come from this package, from another one, or from one file of the user's.

Another package opens the door with an entry point in the registry's group; a file is named as `path/mine.py:Name`.
Nothing is imported before it is asked for by name.
"""

import hashlib
import sys
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from iclgd.errors import Refusal

Thing = TypeVar("Thing")
PLUGINS: dict[str, Any] = {}  # files of the user's that were imported, by path
REGISTRIES: "dict[str, Registry[Any]]" = {}


def suggest(name: str, known: Iterable[str]) -> str:
    """`Did you mean sst2 or sst5? `, or nothing when no known name is near."""
    spelled = {one.lower(): one for one in known}
    near = [spelled[one] for one in get_close_matches(name.lower(), list(spelled), n=3, cutoff=0.6)]
    return f"Did you mean {' or '.join(near)}? " if near else ""


class Registry(Generic[Thing]):
    """Things of one kind by name; ``listing`` is the command that shows them all.

    A thing is given itself or as `module:attribute`, which is imported at first use.
    """

    def __init__(self, kind: str, listing: str, group: str = ""):
        self.kind, self.listing, self.group = kind, listing, group
        self._things: dict[str, Thing | str] = {}
        self._summaries: dict[str, str] = {}
        self.address = f"{kind}|{group}|{listing}"
        REGISTRIES[self.address] = self

    def __reduce__(self) -> Any:
        """A registry goes to another process by its name."""
        return REGISTRIES.__getitem__, (self.address,)

    def add(self, name: str, thing: Thing | str, summary: str = "") -> None:
        if name in self._things:
            raise ValueError(f"two {self.kind}s are called {name!r}")
        self._things[name] = thing
        self._summaries[name] = summary or _first_line(thing)

    @cached_property
    def _points(self) -> dict[str, EntryPoint]:
        """What other packages registered."""
        return {point.name: point for point in entry_points(group=self.group)} if self.group else {}

    def __getitem__(self, name: str) -> Thing:
        if name in self._things:
            thing = self._things[name]
            if isinstance(thing, str) and ":" in thing:
                module, _, attribute = thing.partition(":")
                thing = self._things[name] = getattr(import_module(module), attribute)
            return cast(Thing, thing)
        if name in self._points:
            return self._loaded(self._points[name])
        if ".py:" in name:
            return cast(Thing, from_file(name, self.kind))
        raise Refusal(f'no {self.kind} "{name}". {suggest(name, self)}`{self.listing}` lists all.')

    def _loaded(self, point: EntryPoint) -> Thing:
        try:
            found = cast(Thing, point.load())
        except Exception as error:  # somebody else's code: say whose
            raise Refusal(f"the {self.kind} {point.name} ({point.value}) cannot be loaded: {error}.") from None
        self._things.setdefault(point.name, found)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._things or name in self._points or ".py:" in str(name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._things, *self._points]))

    def items(self) -> Iterable[tuple[str, Thing]]:
        return [(name, self[name]) for name in self]

    def summary(self, name: str) -> str:
        """A line on the thing, without importing it."""
        if name in self._summaries:
            return self._summaries[name]
        point = self._points.get(name)
        return f"from {point.dist.name}" if point is not None and point.dist is not None else ""

    def identity(self, name: str) -> str:
        """The name as it enters a cell's key: with the version of the thing, or the hash of the file it is from."""
        if name not in self._things and name not in self._points and ".py:" in name:
            file, _, attribute = name.rpartition(":")
            return f"{attribute}@{hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]}"
        version = getattr(self[name], "version", None)
        return name if version is None else f"{name}@{version}"


def _first_line(thing: object) -> str:
    return (getattr(thing, "__doc__", None) or "").strip().split("\n")[0] if not isinstance(thing, str) else ""


def from_file(name: str, kind: str) -> Any:
    """`path/mine.py:Noise`: that attribute of that file."""
    file, _, attribute = name.rpartition(":")
    module = load_plugin(file)
    if not hasattr(module, attribute):
        raise Refusal(f'{file} has no {kind} "{attribute}". {suggest(attribute, vars(module))}')
    return getattr(module, attribute)


def load_plugin(file: str) -> Any:
    """A file of the user's, imported once; what it registers is known from then on."""
    path = Path(file).resolve()
    if str(path) in PLUGINS:
        return PLUGINS[str(path)]
    name = f"iclgd_plugin_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    spec = spec_from_file_location(name, path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise Refusal(f"the plugin {file} cannot be read: it must be a Python file.")
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Refusal:
        del sys.modules[name]
        raise
    except Exception as error:  # the user's own code: one sentence that says where
        del sys.modules[name]
        raise Refusal(f"the plugin {file} cannot be imported: {type(error).__name__}: {error}.") from None
    PLUGINS[str(path)] = module
    return module
