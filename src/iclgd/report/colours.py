"""The same colour for the same learner, in every figure and chart of every lab."""

import re
from collections.abc import Iterable

# places in the palette (`figures.COLOURS`, `--s0` … on pages) of the learners that are shown most; those that share
# one are never shown together
USUAL = {
    "trained": 0,
    "icl": 0,
    "gd": 1,
    "one gradient step": 1,
    "lcgd": 2,
    "preconditioned": 2,
    "preconditioned gd": 2,
    "constructed layer": 2,
    "trained layer": 0,
    "lcgd-paper": 3,
    "gd++": 3,
    "stored × hits": 3,
    "gd target=label": 4,
    "ridge": 4,
    "kernel": 5,
    "gd on learned features": 5,
    "no context": 6,
    "zero-shot": 6,
    "zero": 6,
}
PLACES = 8
HOW_MUCH = re.compile(r"( ×\d+| \d[\d.]*(e-?\d+)?)$")  # a number of steps, or a rate: the learner is the same


def slots(names: Iterable[str]) -> dict[str, int]:
    """The place of each name; those that are not usual take places that are left, in their order."""
    kinds = {name: HOW_MUCH.sub("", name) for name in names}
    found = {kind: USUAL[kind] for kind in kinds.values() if kind in USUAL}
    others = [kind for kind in dict.fromkeys(kinds.values()) if kind not in USUAL]
    left = [place for place in range(PLACES) if place not in found.values()] or list(range(PLACES))
    found |= {kind: left[i % len(left)] for i, kind in enumerate(others)}
    return {name: found[kind] for name, kind in kinds.items()}
