"""Which tests run which functions: for each test its time, its outcome, and the functions of the package it enters.

What a fixture runs counts for every test that asks for it, and what the import of a test file runs for all its tests.
A fixture that lives longer than a test can keep what a test made it compute (a study's page, a bench's traces), so what
one test enters counts, as `later`, for those that share such a fixture after it. A test that starts a process is
credited only with what it runs itself.

Functions say themselves that they are entered: a call is put at their beginning when their module is compiled. A trace
of all calls would slow everything else down, too.
"""

import ast
import builtins
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ENTER = "__entered__"  # a function among the builtins
LATE = 71  # exit code of a run that a test did not come to an end in
Entered = set[tuple[str, int]]  # file, line


class Watch:
    """A plugin that writes down, test by test, what is entered below `source`."""

    def __init__(self, source: Path):
        self.source = source
        self.imported: Entered = set()
        self.now = self.imported
        self.fixtures: dict[str, Entered] = {}
        self.shared: dict[str, Entered] = {}  # of fixtures that outlive a test: what tests entered so far
        self.tests: dict[str, dict[str, Any]] = {}
        self.failed: set[str] = set()

    def _enter(self, file: str, line: int) -> None:
        self.now.add((file, line))

    @contextmanager
    def _into(self, seen: Entered) -> Iterator[None]:
        before, self.now = self.now, seen
        try:
            yield
        finally:
            self.now = before

    def start(self) -> None:
        """From now on, in this process, modules below `source` are compiled so that their functions say so."""
        plain, root = builtins.compile, f"{self.source}/"

        def compiled(code: Any, filename: Any, mode: str, *args: Any, **named: Any) -> Any:
            ours = str(filename).startswith(root) and str(filename).endswith(".py")  # a template is compiled, too
            if mode == "exec" and ours and not only_parsed(args, named):
                code = telling(code if isinstance(code, ast.AST) else ast.parse(code, filename), str(filename))
            return plain(code, filename, mode, *args, **named)

        setattr(builtins, ENTER, self._enter)
        builtins.compile = compiled  # type: ignore[assignment]  # in the place of the built-in one

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        if fixturedef.scope != "function" and not fixturedef.func.__module__.startswith("_pytest."):
            self.shared.setdefault(fixturedef.argname, set())
        with self._into(self.fixtures.setdefault(fixturedef.argname, set())):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        seen: Entered = set()
        began = time.perf_counter()
        with self._into(seen):
            done = yield
        names = list(getattr(item, "fixturenames", ()))
        own = self._functions(seen, self.imported, *(self.fixtures.get(name, set()) for name in names))
        shared = [self.shared[name] for name in names if name in self.shared]
        self.tests[item.nodeid] = {
            "seconds": round(time.perf_counter() - began, 3),
            "passed": item.nodeid not in self.failed,
            "functions": own,
            "later": sorted(set(self._functions(*shared)) - set(own)),
        }
        for part in shared:
            part |= seen
        return done

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)

    def _functions(self, *parts: Entered) -> list[str]:
        places = set[tuple[str, int]]().union(*parts)
        return sorted({function_at(Path(name), line, self.source) for name, line in places})

    def modules(self) -> list[str]:
        """Files of the package that were imported, as paths from its folder."""
        files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
        return sorted(str(Path(file).relative_to(self.source)) for file in files if file.startswith(f"{self.source}/"))


def only_parsed(args: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """Whether `compile` is asked for a tree, as by `ast.parse`."""
    return bool((args[0] if args else named.get("flags", 0)) & ast.PyCF_ONLY_AST)


def telling(tree: ast.AST, file: str) -> ast.AST:
    """The program with a call of `ENTER`, with file and line, where each of its functions begins."""

    def call(node: ast.AST) -> ast.Call:
        where: list[ast.expr] = [ast.Constant(file), ast.Constant(node.lineno)]  # type: ignore[attr-defined]  # a statement has it
        return ast.Call(ast.Name(ENTER, ast.Load()), where, [])

    for node in list(ast.walk(tree)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            place = 1 if ast.get_docstring(node) is not None else 0
            node.body.insert(place, ast.copy_location(ast.Expr(call(node)), node))
        elif isinstance(node, ast.Lambda):
            both = ast.Tuple([call(node), node.body], ast.Load())
            node.body = ast.copy_location(ast.Subscript(both, ast.Constant(1), ast.Load()), node)
    return ast.fix_missing_locations(tree)


@cache
def _spans(file: Path) -> list[tuple[int, int, int]]:
    """Of each function: the first line with its decorators, the line of its `def`, its last line."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return [
        (min([node.lineno, *(d.lineno for d in node.decorator_list)]), node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, kinds)
    ]


def function_at(file: Path, line: int, source: Path, decorators: bool = True) -> str:
    """`metrics/crossed.py:40`, the outermost function that has this line; without a line where none has it.

    The outermost, since a function made by another one is run by whoever got it. `decorators=False` says that a line
    of a decorator is run when the module is imported, like all that is in no function.
    """
    name = str(file.relative_to(source))
    spans = [first for first, start, last in _spans(file) if (first if decorators else start) <= line <= last]
    return f"{name}:{min(spans)}" if spans else name


class Chosen:
    """A plugin that runs these tests in this order, then those that nobody knew: a mutant can rename a test's case.

    A test is ended after so many ``seconds``, of which it may be asked by its name; then the run's exit code is `LATE`.
    """

    def __init__(self, order: Sequence[str], known: set[str], seconds: Callable[[str], float]):
        self.place, self.known, self.seconds = {name: i for i, name in enumerate(order)}, known, seconds
        self.late = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.late |= report.failed and "Timeout (>" in report.longreprtext

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.late:
            session.exitstatus = LATE

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        for item in items:
            item.add_marker(pytest.mark.timeout(self.seconds(item.nodeid)))
        kept = [item for item in items if item.nodeid in self.place or item.nodeid not in self.known]
        gone = [item for item in items if item not in set(kept)]
        kept.sort(key=lambda item: self.place.get(item.nodeid, len(self.place)))
        items[:] = kept
        config.hook.pytest_deselected(items=gone)
