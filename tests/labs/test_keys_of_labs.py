"""What a cell's key says of the things it names: each with its version, so that a version that rises runs it again."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from every_lab import SPECS
from iclgd.choices import Choice
from iclgd.lab import LABS
from iclgd.labs.dual.modifications import MODIFICATIONS
from iclgd.labs.dual.modified import Regularised
from iclgd.labs.dual.spec import TrainCell
from iclgd.learners import LEARNERS
from iclgd.learners.descent import GradientDescent
from iclgd.learners.function_vector import FunctionVector
from iclgd.metrics import METRICS
from iclgd.nulls import NULLS
from iclgd.registry import Registry, source_hash
from iclgd.small import references
from iclgd.small.known import REFERENCES
from iclgd.small.languages.encoders import ENCODERS, PrincipalComponents
from iclgd.spec import Spec, canonical
from iclgd.tasks.families import FAMILIES

VERSIONED = re.compile(r"[^@]+@\d+")
CHOOSING = {"compare", "order", "linear train", "languages run", "languages all", "dual modify", "dual train"}
NO_CELLS = {"languages sample", "languages list"}
OF_A_FAMILY = ("linear train", "linear layers", "linear depth", "linear optimum")


def choices(value: Any) -> Iterator[Choice]:
    """Those that a spec holds, however deep."""
    if isinstance(value, Choice):
        yield value
    elif isinstance(value, Spec):
        for name in type(value).model_fields:
            yield from choices(getattr(value, name))
    elif isinstance(value, tuple):
        for one in value:
            yield from choices(one)


def first_cell(lab: str, **change: Any) -> Any:
    return LABS[lab].spec.of({**SPECS[lab], **change}).cells()[0]


@pytest.mark.parametrize("lab", sorted(set(SPECS) - NO_CELLS))
def test_whatever_a_cell_chooses_stands_in_its_key_with_its_version(lab: str) -> None:
    cells = LABS[lab].spec.of(SPECS[lab]).cells()
    chosen = [(cell, one) for cell in cells for one in choices(cell.spec)]
    assert bool(chosen) == (lab in CHOOSING)
    for cell, one in chosen:
        keyed = re.findall(rf'"name":"({re.escape(one.name)}[^"]*)"', canonical(cell.spec.keyed()))
        assert keyed
        assert all(VERSIONED.fullmatch(name) for name in keyed), keyed


@pytest.mark.parametrize("registry", [FAMILIES, REFERENCES, ENCODERS, MODIFICATIONS, LEARNERS, METRICS, NULLS])
def test_every_thing_of_this_package_that_a_key_can_name_has_a_version(registry: Registry[Any]) -> None:
    ours = [name for name in registry if source_hash(registry[name]) is None]  # not what other tests registered
    assert ours
    for name in ours:
        assert VERSIONED.fullmatch(registry.identity(name)), name
        assert registry.identity(name).partition("@")[0] == name


@pytest.mark.parametrize("lab", OF_A_FAMILY)
def test_a_family_of_regressions_has_its_version_in_a_key_and_nowhere_else(lab: str) -> None:
    cell = first_cell(lab, task="gaussian")
    assert cell.spec.keyed()["task"] == "gaussian@1"
    assert cell.spec.task == cell.spec.model_dump()["task"] == "gaussian"


@pytest.mark.parametrize("task, keyed", [("trigonometric", "trigonometric@1"), ("relu", "relu@1")])
def test_regressions_of_the_dual_lab_have_their_version_in_a_key(task: str, keyed: str) -> None:
    assert first_cell("dual train", tasks=task).spec.keyed()["task"] == keyed


def test_a_language_stands_in_a_key_as_it_is_written() -> None:
    given = {name: value for name, value in SPECS["dual train"].items() if name != "tasks"}
    cell = LABS["dual train"].spec.of({**given, "languages": "a*bc*"}).cells()[0]
    assert isinstance(cell.spec, TrainCell)
    assert cell.spec.keyed()["task"] == "a*bc*"


@pytest.mark.parametrize(
    "lab, thing",
    [
        ("linear train", references.gd),
        ("languages run", PrincipalComponents),
        ("dual modify", Regularised),
        ("linear depth", FAMILIES["gaussian"]),
    ],
)
def test_a_version_that_rises_makes_another_key(lab: str, thing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = LABS[lab].spec.of(SPECS[lab]).cells()[-1]
    before = cell.key({}, 1)
    assert cell.key({}, 1) == before
    monkeypatch.setattr(thing, "version", 7)
    assert cell.key({}, 1) != before


@pytest.mark.parametrize(
    "lab, thing, known",
    [
        ("implicit", GradientDescent, (5, 2)),
        ("causal", GradientDescent, (2, 2)),
        ("causal", FunctionVector, (2, 1)),
    ],
)
def test_a_lab_that_does_not_name_what_it_trains_with_rises_with_it(lab: str, thing: Any, known: Any) -> None:
    """No cell of these labs has the thing in its key: when its version rises, raise the lab's, and say both here."""
    assert (LABS[lab].version, thing.version) == known
