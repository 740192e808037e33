"""Mutants of a source file, by the operators of cosmic-ray: an operator exchanged, a number off by one, a loop not run.

Not counted: what does not compile, and changes to annotations, which nothing reads. One place of a file (a sign, a
number, a condition) often has ten mutants that die together, so places are drawn first and a place's second mutant
comes only when every place has had its first.
"""

import ast
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import parso
from cosmic_ray.ast import ast_nodes
from cosmic_ray.operators.provider import OperatorProvider


@dataclass(frozen=True)
class Mutant:
    """One changed file; `was` and `becomes` are the lines that differ."""

    file: str  # from the root of the repository
    line: int
    was: str
    becomes: str
    source: str

    @property
    def name(self) -> tuple[str, str, str]:
        """What stays the same when lines move."""
        return self.file, self.was, self.becomes


@dataclass(frozen=True)
class Change:
    file: str
    operator: str
    node: int  # in the order of the walk
    index: int  # an operator can change a node in several ways
    start: tuple[int, int]


@cache
def operators() -> dict[str, object]:
    """All but those that need to be told names of variables."""
    provider = OperatorProvider()
    return {name: provider[name]() for name in provider if not provider[name].arguments()}


def changes(root: Path, file: str) -> Iterator[Change]:
    tree = parso.parse((root / file).read_text(encoding="utf-8"))
    for number, node in enumerate(ast_nodes(tree)):
        for name, operator in operators().items():
            for index, (start, _) in enumerate(operator.mutation_positions(node)):
                yield Change(file, name, number, index, start)


def drawn(root: Path, files: list[str], seed: int) -> Iterator[Mutant]:
    """All mutants of these files, one a place and round, in an order that the seed decides."""
    places: dict[tuple[str, tuple[int, int]], list[Change]] = defaultdict(list)
    for file in files:
        for change in changes(root, file):
            places[file, change.start].append(change)
    draw = random.Random(seed)
    for ways in places.values():
        draw.shuffle(ways)
    waiting = list(places.values())
    while waiting:
        draw.shuffle(waiting)
        for ways in waiting:
            while ways:
                if mutant := mutated(root, ways.pop()):
                    yield mutant
                    break
        waiting = [ways for ways in waiting if ways]


def found_again(root: Path, said: dict[str, Any]) -> Mutant | None:
    """The mutant that a record names by file, line, was and becomes; None where its code is gone."""
    file = str(said["file"])
    if not (root / file).is_file():
        return None
    lines, was = (root / file).read_text(encoding="utf-8").splitlines(), said["was"].splitlines()
    near = [change for change in changes(root, file) if lines[change.start[0] - 1].strip() in was]
    for change in sorted(near, key=lambda change: abs(change.start[0] - said["line"])):
        mutant = mutated(root, change)
        if mutant and mutant.name == (file, said["was"], said["becomes"]):
            return mutant
    return None


def mutated(root: Path, change: Change) -> Mutant | None:
    """None where the change is not one that could be noticed (no program, or the same program) or cannot be made."""
    source = (root / change.file).read_text(encoding="utf-8")
    tree = parso.parse(source)
    node = next(node for number, node in enumerate(ast_nodes(tree)) if number == change.node)
    siblings = node.parent.children
    place = next(i for i, sibling in enumerate(siblings) if sibling is node)
    try:
        new = operators()[change.operator].mutate(node, change.index)
    except AttributeError:  # cosmic-ray exchanges an exception by its name, and has none for a dotted one
        return None
    siblings[place : place + 1] = [] if new is None else [new]
    text = tree.get_code()
    try:
        if meaning(text) == meaning(source):
            return None
    except SyntaxError:
        return None
    was, becomes = differing(source.splitlines(), text.splitlines())
    return Mutant(change.file, change.start[0], was, becomes, text)


def meaning(source: str) -> str:
    """The program without its annotations."""
    compile(source, "mutant", "exec")  # says more than the parser: a `continue` outside of a loop
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        if isinstance(node, ast.AnnAssign):
            node.annotation = ast.Name("annotation")
    return ast.dump(tree)


def differing(before: list[str], after: list[str]) -> tuple[str, str]:
    """The lines between the first and the last that differ."""
    head = next(
        (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    return tuple("\n".join(line.strip() for line in lines[head : len(lines) - tail]) for lines in (before, after))
