"""Types and shapes in the signatures of `iclgd`, checked at every call while the tests run.

The import hook of jaxtyping does the same, but wraps every function twice, at several times the cost of a call, and has
every package that is imported below `iclgd` compiled anew. Here beartype checks what a function takes and gives, and
jaxtyping's frame, in which one name of an axis means one length, is put only around functions that speak of shapes.
"""

import ast
import inspect
import sys
from dataclasses import is_dataclass
from functools import wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType
from typing import Any, get_args, get_type_hints

import jaxtyping
from beartype import BeartypeConf, beartype
from beartype.roar import BeartypeDecorHintException

CHECKED = "iclgd"
on = True  # whether shapes are checked; types are in any case
_check: Any = beartype(conf=BeartypeConf(is_pep484_tower=True))  # an int passes for a float, as Python has it


def install() -> None:
    """From now on modules of the package are imported with their signatures checked."""
    sys.meta_path.insert(0, _Finder())


def checked(thing: Any) -> Any:
    """A function or dataclass, checked; what has a hint that cannot be checked (a protocol) stays as it is."""
    if inspect.isclass(thing):
        if is_dataclass(thing) and "__init__" in vars(thing):
            thing.__init__ = checked(thing.__init__)
        return thing
    hints = {name: _evaluated(hint, thing) for name, hint in thing.__annotations__.items()}
    shapes = [shape for hint in hints.values() for shape in _shapes(hint)]
    if shapes and (inspect.isgeneratorfunction(thing) or any("{" in shape for shape in shapes)):
        # a generator runs when its call is over; "{len(words)}" is a length that arguments have to tell
        return jaxtyping.jaxtyped(thing, typechecker=_or_as_it_is)
    own, thing.__annotations__ = thing.__annotations__, hints
    plain = _or_as_it_is(thing)
    thing.__annotations__ = plain.__annotations__ = own
    return _framed(thing, plain) if shapes else plain


def _or_as_it_is(thing: Any) -> Any:
    try:
        return _check(thing)
    except BeartypeDecorHintException:
        return thing


def _evaluated(hint: Any, function: Any) -> Any:
    """A hint without quotes; anything goes where it names what is not known yet, such as the class it stands in."""
    try:
        alone = type("", (), {"__annotations__": {"hint": hint}})
        return get_type_hints(alone, function.__globals__, include_extras=True)["hint"]
    except Exception:
        return Any


def _shapes(hint: Any) -> list[str]:
    if inspect.isclass(hint) and issubclass(hint, jaxtyping.AbstractArray):
        return [hint.dim_str]
    return [shape for part in get_args(hint) for shape in _shapes(part)]


def _framed(function: Any, plain: Any) -> Any:
    @wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        if not on:
            return function(*args, **named)
        with jaxtyping.jaxtyped("context"):
            return plain(*args, **named)

    return call


class _Finder(MetaPathFinder):
    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname.split(".")[0] != CHECKED:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        """The module with `checked` on every function, innermost, and on every class, outermost; kept nowhere."""
        tree = ast.parse(self.get_data(self.path), self.path)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                name = ast.Name("__checked__", ast.Load())
                place = 0 if isinstance(node, ast.ClassDef) else len(node.decorator_list)
                node.decorator_list.insert(place, ast.copy_location(name, node))
        return compile(tree, self.path, "exec", dont_inherit=True)

    def exec_module(self, module: Any) -> None:
        module.__checked__ = checked
        super().exec_module(module)
