"""What becomes of a mutant: the tests that enter the changed function run on it, the quick ones first.

Most of the time would go to what survives, under the few tests that take seconds (a study from the command line), which
seldom notice what the quick ones did not. So what survives the quick ones is put into a copy of the tree together, one
mutant a file, for the slow ones; only where one of these fails is each judged alone.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from mutation.forks import Job, in_parallel, pytest_run
from mutation.mutated import Mutant
from mutation.watched import Chosen, function_at

SOURCE = "src/iclgd"
PATIENCE, SLOWER = 20, 5  # seconds, and how many times its usual time a run of tests may take
SLOW = 4  # seconds of a test, from which on several mutants are asked at once
Tests = dict[str, dict[str, Any]]  # by their names: seconds, passed, functions, later, modules


def tests_of(mutant: Mutant, tests: Tests, tree: Path) -> list[str]:
    """Tests that enter the changed function, or import what a mutant outside of functions changes; quick ones first.

    Behind them those that may use what it computed for a test before them.
    """
    where = function_at(tree / mutant.file, mutant.line, tree / SOURCE, decorators=False)
    passed = {name: test for name, test in tests.items() if test["passed"]}
    if ":" not in where:
        return _quick_first({name: test for name, test in passed.items() if where in test["modules"]})
    own = {name: test for name, test in passed.items() if where in test["functions"]}
    return _quick_first(own) + _quick_first({name: test for name, test in passed.items() if where in test["later"]})


def _quick_first(tests: Tests) -> list[str]:
    return sorted(tests, key=lambda name: float(tests[name]["seconds"]))


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
        return pytest_run(files, Chosen(order, set(tests)), "-x") if order else 0

    def after(copy: Path, code: int | None) -> tuple[Sequence[Mutant], str]:
        for mutant in mutants:
            put(copy, mutant.file, (tree / mutant.file).read_text(encoding="utf-8"))
        survived = code in (0, 5)  # 5: there was no test to run
        return mutants, "timeout" if code is None else "survived" if survived else "killed"

    return Job(run, after, PATIENCE + SLOWER * sum(tests[name]["seconds"] for name in order))


def fates(mutants: Iterable[Mutant], tests: Tests, tree: Path, copies: list[Path]) -> Iterator[tuple[Mutant, str]]:
    """Each alone under the quick tests; what survives them together under the slow ones, then alone if one fails."""

    def asked(some: Sequence[Mutant], slow: bool) -> Job:
        order = dict.fromkeys(name for mutant in some for name in tests_of(mutant, tests, tree))
        return judged(some, [name for name in order if (tests[name]["seconds"] >= SLOW) == slow], tests, tree)

    left: list[Mutant] = []
    for (mutant,), fate in in_parallel((asked([mutant], False) for mutant in mutants), copies):
        if fate == "survived":
            left.append(mutant)
            print(f"  {mutant.file}:{mutant.line} is left to the slow tests: {mutant.becomes}", flush=True)
        else:
            yield mutant, fate
    alone: list[Mutant] = []
    for group, fate in in_parallel((asked(group, True) for group in one_a_file(left)), copies):
        if fate == "survived" or len(group) == 1:
            yield from ((mutant, fate) for mutant in group)
        else:
            alone += group
    for (mutant,), fate in in_parallel((asked([mutant], True) for mutant in alone), copies):
        yield mutant, fate


def one_a_file(mutants: Iterable[Mutant]) -> Iterator[list[Mutant]]:
    """Groups in which no file is changed twice."""
    by_file: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_file[mutant.file].append(mutant)
    for group in zip_longest(*by_file.values()):
        yield [mutant for mutant in group if mutant]
