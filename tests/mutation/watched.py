"""Which tests run which functions: for each test its time, its outcome, and the functions of the package it enters.

What a fixture runs counts for every test that asks for it, and what the import of a test file runs for all its tests.
A fixture that lives longer than a test can keep what a test made it compute (a study's page, a bench's traces), so what
one test enters counts, as `later`, for those that share such a fixture after it. A test that starts a process is
credited only with what it runs itself.
"""

import ast
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest


class Watch:
    """A plugin that writes down, test by test, what is entered below `source`."""

    def __init__(self, source: Path):
        self.source = source
        self.imported: dict[int, CodeType] = {}
        self.now = self.imported
        self.fixtures: dict[str, dict[int, CodeType]] = {}
        self.shared: dict[str, dict[int, CodeType]] = {}  # of fixtures that outlive a test: what tests entered so far
        self.tests: dict[str, dict[str, Any]] = {}
        self.failed: set[str] = set()

    def _enter(self, frame: FrameType, _event: str, _argument: Any) -> None:
        self.now[id(frame.f_code)] = frame.f_code

    @contextmanager
    def _into(self, seen: dict[int, CodeType]) -> Iterator[None]:
        before, self.now = self.now, seen
        try:
            yield
        finally:
            self.now = before

    def start(self) -> None:
        threading.settrace(self._enter)
        sys.settrace(self._enter)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        if fixturedef.scope != "function" and not fixturedef.func.__module__.startswith("_pytest."):
            self.shared.setdefault(fixturedef.argname, {})
        with self._into(self.fixtures.setdefault(fixturedef.argname, {})):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        seen: dict[int, CodeType] = {}
        began = time.perf_counter()
        with self._into(seen):
            done = yield
        names = list(getattr(item, "fixturenames", ()))
        own = self._functions(seen, self.imported, *(self.fixtures.get(name, {}) for name in names))
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

    def _functions(self, *parts: dict[int, CodeType]) -> list[str]:
        root = f"{self.source}/"
        names = {(code.co_filename, code.co_firstlineno) for part in parts for code in list(part.values())}
        ours = [(name, line) for name, line in names if name.startswith(root) and name.endswith(".py")]  # no template
        return sorted({function_at(Path(name), line, self.source) for name, line in ours})

    def modules(self) -> list[str]:
        """Files of the package that were imported, as paths from its folder."""
        files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
        return sorted(str(Path(file).relative_to(self.source)) for file in files if file.startswith(f"{self.source}/"))


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
    """A plugin that runs these tests in this order, then those that nobody knew: a mutant can rename a test's case."""

    def __init__(self, order: Sequence[str], known: set[str]):
        self.place, self.known = {name: i for i, name in enumerate(order)}, known

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        kept = [item for item in items if item.nodeid in self.place or item.nodeid not in self.known]
        gone = [item for item in items if item not in set(kept)]
        kept.sort(key=lambda item: self.place.get(item.nodeid, len(self.place)))
        items[:] = kept
        config.hook.pytest_deselected(items=gone)
