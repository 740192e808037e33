"""What children need not import: all that does not rest on the files that are changed, with its signatures checked."""

import ast
import importlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

NAME = "iclgd"
LATER = ("labs", "claims", "cli", "calls", "grid", "running", "overview")  # import others by their names


def import_early(source: Path, changed: Iterable[str]) -> None:
    """Every module below ``source`` that rests on none of the changed ones; once in a process, as types are cached."""
    sys.path[:0] = [str(source.parent), str(source.parents[1] / "tests")]
    importlib.import_module("shape_checks").install()
    for name in apart_from(source, changed):
        importlib.import_module(name)
    files = {str(getattr(module, "__file__", None) or "") for module in list(sys.modules.values())}
    assert not files & {str(source.parents[1] / file) for file in changed}


def moved(to: Path) -> None:
    """In a child: what is not imported yet comes from the child's own copy of the tree."""
    if NAME not in sys.modules:
        return
    (here,) = sys.modules[NAME].__path__
    for name in [name for name in sys.modules if name.partition(".")[0] == NAME]:
        module = sys.modules[name]
        module.__file__ = str(module.__file__).replace(here, str(to), 1)
        if hasattr(module, "__path__"):
            module.__path__ = [path.replace(here, str(to), 1) for path in module.__path__]


def apart_from(source: Path, changed: Iterable[str]) -> list[str]:
    """Names of the modules that neither are these nor import one, by themselves or through others."""
    files = {name_of(source, file): file for file in sorted(source.rglob("*.py"))}
    imports = {name: set(_imports(file, files)) | set(_parents(name)) for name, file in files.items()}
    touched = {name for name, file in files.items() if str(file.relative_to(source.parents[1])) in set(changed)}
    while more := {name for name, needs in imports.items() if name not in touched and needs & touched}:
        touched |= more
    return [name for name in files if name not in touched and not set(name.split(".")[1:2]) & set(LATER)]


def name_of(source: Path, file: Path) -> str:
    parts = file.relative_to(source.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _parents(name: str) -> Iterator[str]:
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


def _imports(file: Path, known: dict[str, Path]) -> Iterator[str]:
    """What a file imports when it is imported; what its functions import they import later."""
    waiting: list[ast.AST] = [ast.parse(file.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
        else:
            names = []
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                waiting += ast.iter_child_nodes(node)
        for name in names:
            yield from (part for part in (name, *_parents(name)) if part in known)
