"""Mutants that are not counted as survivors, since there is nothing to notice: equivalents.yaml names them.

`looks` are keyword arguments that change how a picture looks and nothing that it says (a line's width): a number there
is not tested in modules that draw, nor is the decorator that gives all pictures one style. `guards` are keyword
arguments that, when True, assert what holds by construction (zip's strict, a dataclass's frozen), keep what nobody
asks for (use_cache, repr, eq) or matter when a process is killed (daemon, ignore_cleanup_errors): turning one off or
on is not noticed, nor is what is imported for annotations only.
`draws` are, in identities, the calls whose numbers only choose a random stream, and `sizes` the names of how much is
drawn: an identity holds on any draw of any size. `same` are single mutants that do what the original does, each with
the reason.
"""

import re
from collections.abc import Callable
from pathlib import Path

import yaml

from mutation.mutated import Mutant

DASHES = re.compile(r"\(\s*-?\d+, \([-\d., ]+\)\)")  # of a line: where they begin, and how long they are
LOOKS = "changes how a picture looks, and nothing that it says"
GUARDS = "turns off a check of what holds by construction"
TYPES = "imports what only annotations name, or leaves it"
DRAWS = "draws other numbers, or more of them: an identity holds on any draw"


def reasons(tree: Path) -> Callable[[Mutant], str]:
    """For each mutant why it is equivalent; nothing where it is not."""
    known = yaml.safe_load((tree / "tests/mutation/equivalents.yaml").read_text(encoding="utf-8"))
    same = {(one["file"], one["was"], one["becomes"]): one["why"] for one in known["same"]}
    guard = re.compile(rf"\b({'|'.join(known['guards'])})=True")
    look = re.compile(rf"\b({'|'.join(known['looks'])})(?:=|\": )\s*-?[\d.]+")
    stream = re.compile(rf"\b({'|'.join(known['draws'])})\([^()]*\)")
    sizes = "|".join(known["sizes"])
    size = re.compile(rf"\b((?:{sizes})(?:, (?:{sizes}))*(?:: int)? ?=)(?: *-?[\d.]+\b,?)+")

    def why(mutant: Mutant) -> str:
        if mutant.name in same:
            return same[mutant.name]
        if guard.sub(r"\1=False", mutant.was) == guard.sub(r"\1=False", mutant.becomes):
            return GUARDS
        if mutant.was == "if TYPE_CHECKING:":
            return TYPES
        if "identities" in mutant.file:
            drawn = [size.sub(r"\1", stream.sub(r"\1", lines)) for lines in (mutant.was, mutant.becomes)]
            if drawn[0] == drawn[1]:
                return DRAWS
        if mutant.was.strip() == "@styled" and not mutant.becomes.strip():
            return LOOKS
        was, becomes = (look.sub(r"\1", DASHES.sub("", lines)) for lines in (mutant.was, mutant.becomes))
        alike = was == becomes
        return LOOKS if alike and "matplotlib" in mutant.source else ""

    return why
