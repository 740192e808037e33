"""Data goes one way: a module imports only from modules to its left, labs do not know each other, the frame no lab."""

import ast
import re
from pathlib import Path

import pytest

import iclgd

ROOT = Path(iclgd.__file__).parent
# Each line may import from itself and from the lines above it.
FLOW = [
    {"errors", "noise", "papers", "system"},
    {"registry", "files"},
    {"lines", "complaints"},
    {"spec"},
    {"choices"},
    {"tasks"},
    {"prompts"},
    {"models"},
    {"learners"},
    {"metrics"},
    {"bench"},
    {"ahead"},
    {"nulls"},
    {"small"},
    {"tools"},
    {"results"},
    {"looked"},
    {"options"},
    {"report"},
    {"lab"},
    {"store"},
    {"engine"},
    {"study"},
    {"overview"},
    {"running"},
    {"grid"},
    {"labs"},
    {"calls"},
    {"claims"},
    {"cli"},
]
LEVEL = {name: level for level, names in enumerate(FLOW) for name in names}
SOURCES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def part(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def imports(path: Path) -> list[tuple[str, bool]]:
    """Modules of the package that a file imports, and whether only for its annotations."""
    found = []
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typed = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports by dots, which this test does not follow"
            names = [f"iclgd.{alias.name}" for alias in node.names] if node.module == "iclgd" else [node.module or ""]
        found += [(name, id(node) in typed) for name in names if name.split(".")[0] == "iclgd"]
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_from_modules_to_its_left(path):
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    assert own in LEVEL, f"{own} has no place in the flow"
    for module, only_typed in imports(path):
        other = part(module)
        left = other == own or LEVEL[other] < LEVEL[own]
        assert left or only_typed, f"{own} imports {other}, which lies to its right"


@pytest.mark.parametrize("path", sorted((ROOT / "labs").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_lab_imports_another(path):
    inside = path.relative_to(ROOT / "labs").parts
    if len(inside) > 1:
        for module, _ in imports(path):
            if module.startswith("iclgd.labs."):
                assert module.split(".")[2] == inside[0]


@pytest.mark.parametrize("room", ["cli", "report", "store", "engine"])
def test_the_frame_knows_no_lab_by_name(room):
    labs = [path.name for path in (ROOT / "labs").iterdir() if path.is_dir() and path.name != "__pycache__"]
    for path in (ROOT / room).rglob("*.py"):
        words = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
        assert not words & set(labs), f"{path.name} names a lab"
        assert not [module for module, _ in imports(path) if module.startswith("iclgd.labs.")]


def test_names_of_the_public_api_are_importable():
    for name in iclgd.__all__:
        assert getattr(iclgd, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = iclgd.nothing


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_is_one_idea_and_a_function_fits_a_screen(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 300
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno - node.lineno < 50, f"{node.name} has {node.end_lineno - node.lineno + 1} lines"


SILENCED = re.compile(r"# (?:type: ignore\[[\w, -]+\]|noqa: [A-Z]+\d+)(.*)$")


def test_a_checker_is_silenced_for_one_kind_of_fault_and_with_the_reason_on_the_line():
    top = Path(__file__).parents[1]
    for path in (
        path for name in ("src", "tests", "examples", "docs", "benchmarks") for path in (top / name).rglob("*.py")
    ):
        for line in path.read_text(encoding="utf-8").splitlines():
            if re.search(r"# (type: ignore|noqa)(?![|(])", line):
                told = SILENCED.search(line)
                assert told, f"{path.name} silences more than one kind: {line.strip()}"
                assert re.search(r"\w{2}", SILENCED.sub(r"\1", told[1])), f"{path.name} has no reason: {line.strip()}"
