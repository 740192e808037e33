"""Names to things. What is registered may come from this package, from another one, or from one file of the user's.

Another package opens the door with an entry point in the registry's group; a file is named as `path/mine.py:Name`.
Nothing is imported before it is asked for by name.
"""

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from iclgd.errors import Refusal

Thing = TypeVar("Thing")
Made = TypeVar("Made", bound="Callable[..., Any]")
PLUGINS: dict[str, Any] = {}  # files of the user's that were imported, by path
REGISTRIES: "dict[str, Registry[Any]]" = {}


def suggest(name: str, known: Iterable[str]) -> str:
    """`Did you mean sst2 or sst5? `, or nothing when no known name is near."""
    spelled = {one.lower(): one for one in known}
    near = [spelled[one] for one in get_close_matches(name.lower(), list(spelled), n=3, cutoff=0.6)]
    return f"Did you mean {' or '.join(near)}? " if near else ""


def versioned(number: int) -> "Callable[[Made], Made]":
    """Gives a function a version, which rises when the same arguments would give other numbers; keys hold it."""

    def mark(made: Made) -> Made:
        made.version = number  # type: ignore[attr-defined]  # of a function
        return made

    return mark


def registered(address: str) -> "Registry[Any]":
    return REGISTRIES[address]


class Registry(Generic[Thing]):
    """Things of one kind by name; ``listing`` is the command that shows them all.

    A thing is given itself or as `module:attribute`, which is imported at first use. ``home`` is a package that
    declares things when it is imported, which happens when somebody first looks here. ``group`` is the group of entry
    points that other packages register in; a name of this package cannot be taken by another. ``needs`` is what a
    thing must have to be one of its kind.
    """

    def __init__(self, kind: str, listing: str, group: str = "", home: str = "", needs: str = ""):
        self.kind, self.listing, self.group, self.home, self.needs = kind, listing, group, home, needs
        self._things: dict[str, Thing | str] = {}
        self._summaries: dict[str, str] = {}
        self.address = f"{kind}|{group}|{listing}"
        REGISTRIES[self.address] = self

    def __reduce__(self) -> Any:
        """A registry goes to another process by its address."""
        return registered, (self.address,)

    def add(self, name: str, thing: Thing | str, summary: str = "") -> None:
        if name in self._things:
            raise ValueError(f"two {self.kind}s are called {name!r}")
        self._things[name] = thing
        self._summaries[name] = summary or _first_line(thing)

    @property
    def _known(self) -> dict[str, Thing | str]:
        """What was added here, the things of its home too."""
        if self.home:
            import_module(self.home)
        return self._things

    @cached_property
    def _points(self) -> dict[str, list[EntryPoint]]:
        """What other packages registered, by name."""
        found: dict[str, list[EntryPoint]] = {}
        for point in entry_points(group=self.group) if self.group else ():
            found.setdefault(point.name, []).append(point)
        return found

    def __getitem__(self, name: str) -> Thing:
        if name in self._known:
            thing = self._things[name]
            if isinstance(thing, str) and ":" in thing:
                module, _, attribute = thing.partition(":")
                thing = self._things[name] = getattr(import_module(module), attribute)
            return cast(Thing, self._fit(name, thing))
        if name in self._points:
            return self._fit(name, self._loaded(*self._points[name]))
        self.check(name)
        return cast(Thing, self._fit(name, from_file(name, self.kind)))

    def check(self, name: str) -> None:
        """Refuse a name that nothing has, without importing what it names."""
        if name not in self:
            raise Refusal(f'no {self.kind} "{name}". {suggest(name, self)}`{self.listing}` lists all.')

    def _fit(self, name: str, thing: Any) -> Any:
        if self.needs and not hasattr(thing, self.needs):
            raise Refusal(
                f"{name} is not a {self.kind}: it has no {self.needs}; see CONTRIBUTING.md for what one needs."
            )
        return thing

    def _loaded(self, point: EntryPoint, *others: EntryPoint) -> Thing:
        if others:
            packages = ", ".join(_package(one) for one in (point, *others))
            raise Refusal(f'several packages have a {self.kind} "{point.name}": {packages}. Uninstall all but one.')
        try:
            found = cast(Thing, point.load())
        except Exception as error:  # somebody else's code: say whose
            where = f"the {self.kind} {point.name} of {_package(point)}"
            raise Refusal(f"{where} cannot be loaded: {type(error).__name__}: {error}.") from None
        if self._things.setdefault(point.name, found) is found:
            self._summaries.setdefault(point.name, _first_line(found))
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._known or name in self._points or ".py:" in str(name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._known, *self._points]))

    def items(self) -> Iterable[tuple[str, Thing]]:
        return [(name, self[name]) for name in self]

    def summary(self, name: str) -> str:
        """A line on the thing, without importing it: of another package's, what that package says of itself."""
        points = self._points.get(name, [])
        if name in self._known or not points:
            return self._summaries.get(name, "")
        about = points[0].dist.metadata["Summary"] if points[0].dist is not None else ""
        return f"from {_package(points[0])}" + (f": {about}" if about else "")

    def identity(self, name: str) -> str:
        """The name as it enters a cell's key: with the thing's version, and a hash of its source if it is not ours."""
        thing = self[name]
        version, source = getattr(thing, "version", None), source_hash(thing)
        parts = [name.rpartition(":")[2], *(str(part) for part in (version, source) if part is not None)]
        return "@".join(parts)


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value


def source_hash(thing: Any) -> str | None:
    """A hash of the file that a thing was written in; none for this package's own, which carry versions.

    A thing made from a function or class (a metric, a lab) points to it by ``__wrapped__``.
    """
    made = inspect.unwrap(thing)
    module = getattr(made, "__module__", None) or type(made).__module__
    if module.split(".")[0] == "iclgd":
        return None
    file = getattr(sys.modules.get(module), "__file__", None)
    try:
        text = Path(file).read_bytes() if file else inspect.getsource(made).encode()
    except (OSError, TypeError):
        raise Refusal(f"the source of {made!r} cannot be read, which a cell's key needs: put it in a file.") from None
    return hashlib.sha256(text).hexdigest()[:16]


def absolute_name(name: str) -> str:
    """`mine.py:Noise` with the file's whole path, so that it means the same in any folder; other names as they are."""
    file, dot, attribute = name.partition(".py:")
    return f"{Path(f'{file}.py').resolve()}:{attribute}" if dot else name


def _first_line(thing: object) -> str:
    """The first line of the docstring of a class or function, or of what a thing was made from."""
    own = inspect.unwrap(thing) if callable(thing) or hasattr(thing, "__wrapped__") else None  # type: ignore[arg-type]  # has it
    return (getattr(own, "__doc__", None) or "").strip().split("\n")[0]


def from_file(name: str, kind: str) -> Any:
    """`path/mine.py:Noise`: that attribute of that file."""
    file, _, attribute = name.rpartition(":")
    module = load_plugin(file)
    if not hasattr(module, attribute):
        raise Refusal(
            f'{file} has no {kind} "{attribute}": name one that it has. {suggest(attribute, vars(module))}'.strip()
        )
    return getattr(module, attribute)


def load_plugin(file: str) -> Any:
    """A file of the user's, imported once; what it registers is known from then on."""
    if not file:
        raise Refusal("`plugin` needs the name of a Python file.")
    if "\0" in file:
        raise Refusal("`plugin` is no name that a file can have: give that of a Python file.")
    path = Path(file).resolve()
    if str(path) in PLUGINS:
        if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() != PLUGINS[str(path)].__sha256__:
            raise Refusal(f"the plugin {file} was changed after it was imported: start Python anew.")
        return PLUGINS[str(path)]
    name = f"iclgd_plugin_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    spec = spec_from_file_location(name, path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise Refusal(f"the plugin {file} cannot be read: it must be a Python file.")
    module = sys.modules[name] = module_from_spec(spec)
    module.__dict__["__sha256__"] = hashlib.sha256(path.read_bytes()).hexdigest()
    try:
        spec.loader.exec_module(module)
    except Refusal:
        del sys.modules[name]
        raise
    except (Exception, SystemExit) as error:  # the user's own code: one sentence that says where
        del sys.modules[name]
        raise Refusal(f"the plugin {file} cannot be imported ({type(error).__name__}: {error}): correct it.") from None
    PLUGINS[str(path)] = module
    return module
