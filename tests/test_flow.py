"""Data goes one way: a module imports only from modules to its left."""

import ast
from pathlib import Path

import pytest

import iclgd

ROOT = Path(iclgd.__file__).parent
# Each line may import from itself and from the lines above it.
FLOW = [
    {"errors"},
    {"registry", "files", "spec"},
    {"tasks"},
    {"prompts"},
    {"models"},
    {"learners"},
    {"metrics"},
    {"run"},
    {"store", "engine"},
    {"report"},
    {"claims"},
    {"cli"},
]
LABS = {"linear", "languages", "dual"}  # beside prompts … metrics
LEVEL = {name: level for level, names in enumerate(FLOW) for name in names}
LEVEL |= dict.fromkeys(LABS, LEVEL["run"] - 0.5)
LEVEL["linear"] -= 0.1  # the languages lab trains the linear lab's layers
SOURCES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def part(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def imported(path: Path) -> set[str]:
    """Parts of the package that a file imports, wherever in the file it does so."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {part(alias.name) for alias in node.names if alias.name.split(".")[0] == "iclgd"}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports by dots, which this test does not follow"
            if node.module == "iclgd":
                found |= {alias.name for alias in node.names}
            elif (node.module or "").startswith("iclgd."):
                found.add(part(node.module or ""))
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_from_modules_to_its_left(path):
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    assert own in LEVEL, f"{own} has no place in the flow"
    for other in imported(path):
        assert other == own or LEVEL[other] < LEVEL[own] or {own, other} <= {"registry", "files", "spec"}, (
            f"{own} imports {other}, which lies to its right"
        )
        assert not {own, other} <= LABS or own == other or (own, other) == ("languages", "linear"), (
            "labs do not lean on each other"
        )


def test_names_of_the_public_api_are_importable():
    for name in iclgd.__all__:
        assert getattr(iclgd, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        iclgd.nothing  # noqa: B018
