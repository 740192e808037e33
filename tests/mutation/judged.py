"""What becomes of a mutant: the tests that enter the changed function run on it, the quick ones first.

Most of the time would go to what survives, under tests that take seconds (a study from the command line) and seldom
notice what the quick ones did not. So each mutant is put alone before the first tests, which take some seconds
together; those that survive go into one copy of the tree, one mutant a file, before the rest. Where one of these tests
fails, the group is halved until it is known who it was.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import Any

from mutation.forks import Job, in_parallel, pytest_run
from mutation.mutated import Mutant
from mutation.watched import LATE, Chosen, function_at

SOURCE = "src/iclgd"
PATIENCE, ALONE, SLOWER = 120, 10, 5  # seconds for all tests, for one of them, and how many times its usual time
FIRST = 8  # seconds, as they are while tests are watched, for which a mutant is alone
Tests = dict[str, dict[str, Any]]  # by their names: seconds, passed, functions, later, modules


def tests_of(mutant: Mutant, tests: Tests, tree: Path) -> list[str]:
    """Tests that enter the changed function, or import what a mutant outside of functions changes; quick ones first.

    Behind them those that may use what it computed for a test before them.
    """
    where = function_at(tree / mutant.file, mutant.line, tree / SOURCE, decorators=False)
    passed = {name: test for name, test in tests.items() if test["passed"]}
    if ":" not in where:
        return _quick_first([name for name, test in passed.items() if where in test["modules"]], tests)
    own, later = ([name for name, test in passed.items() if where in test[how]] for how in ("functions", "later"))
    return _quick_first(own, tests) + _quick_first(later, tests)


def _quick_first(names: Iterable[str], tests: Tests) -> list[str]:
    return sorted(names, key=lambda name: (tests[name]["seconds"], name))


def judged(mutants: Sequence[Mutant], order: Sequence[str], tests: Tests, tree: Path) -> Job:
    """killed, survived or timeout: these mutants, of different files, together under these tests."""

    def put(copy: Path, name: str, source: str) -> None:
        file = copy / name
        file.write_text(source, encoding="utf-8")
        for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
            compiled.unlink()

    def run(copy: Path) -> int:
        for mutant in mutants:
            put(copy, mutant.file, mutant.source)
        files = dict.fromkeys(name.partition("::")[0] for name in order)
        return pytest_run(files, Chosen(order, set(tests), partial(may_take, tests)), "-x") if order else 0

    def after(copy: Path, code: int | None) -> tuple[Sequence[Mutant], str]:
        for mutant in mutants:
            put(copy, mutant.file, (tree / mutant.file).read_text(encoding="utf-8"))
        survived = code in (0, 5)  # 5: there was no test to run
        return mutants, "timeout" if code in (None, LATE) else "survived" if survived else "killed"

    return Job(run, after, PATIENCE + SLOWER * sum(tests[name]["seconds"] for name in order))


def may_take(tests: Tests, name: str) -> float:
    """Seconds after which a test is taken to run for ever; any test of a file may be the one that makes a fixture."""
    file = name.partition("::")[0]
    return ALONE + SLOWER * max((test["seconds"] for one, test in tests.items() if one.startswith(file)), default=0.0)


def fates(mutants: Iterable[Mutant], tests: Tests, tree: Path, copies: list[Path]) -> Iterator[tuple[Mutant, str]]:
    """Each alone under the first tests, what survives them together under the rest."""
    left: list[Mutant] = []
    jobs = (judged([mutant], in_two(tests_of(mutant, tests, tree), tests)[0], tests, tree) for mutant in mutants)
    for (mutant,), fate in in_parallel(jobs, copies):
        if fate == "survived":
            left.append(mutant)
        else:
            yield mutant, fate
    groups, noticed = list(one_a_file(left)), list[Mutant]()
    while groups:
        halved: list[Sequence[Mutant]] = []
        jobs = (judged(group, rest_of(group, tests, tree), tests, tree) for group in groups)
        for group, fate in in_parallel(jobs, copies):
            if fate == "survived" or len(group) == 1:
                noticed += [] if fate == "survived" else group
                yield from ((mutant, fate) for mutant in group)
            else:
                halved += [group[: len(group) // 2], group[len(group) // 2 :]]
        groups = halved
    if noticed:
        control(rest_of(noticed, tests, tree), tests, tree, copies)


def control(order: Sequence[str], tests: Tests, tree: Path, copies: list[Path]) -> None:
    """Without a fault the tests pass, in this order too; else what they noticed would be no fault."""
    for _, fate in in_parallel(iter([judged([], order, tests, tree)]), copies[:1]):
        if fate != "survived":
            sys.exit(f"mutants.py: a test fails without a fault:\n{(copies[0] / 'said.txt').read_text()[-2000:]}")


def rest_of(mutants: Iterable[Mutant], tests: Tests, tree: Path) -> list[str]:
    """The tests that these do not meet alone, quick ones first."""
    names = {name for mutant in mutants for name in in_two(tests_of(mutant, tests, tree), tests)[1]}
    return _quick_first(names, tests)


def in_two(order: Sequence[str], tests: Tests) -> tuple[Sequence[str], Sequence[str]]:
    """The first tests, no longer than so many seconds together, and the rest."""
    passed = list(accumulate(tests[name]["seconds"] for name in order))
    count = sum(seconds <= FIRST for seconds in passed)
    return order[:count], order[count:]


def one_a_file(mutants: Iterable[Mutant]) -> Iterator[list[Mutant]]:
    """Groups in which no file is changed twice."""
    by_file: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_file[mutant.file].append(mutant)
    for group in zip_longest(*by_file.values()):
        yield [mutant for mutant in group if mutant]
