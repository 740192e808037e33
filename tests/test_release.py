"""What is released installs and runs: the wheel has all that the package reads, the sdist all that builds it."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TOP = ("src", "docs", "examples", "studies", "tests", "benchmarks")
FILES = ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md")
BUILD = "from setuptools.build_meta import build_{0} as build; import sys; print(build(sys.argv[1]))"


def python(*args: str, cwd: Path, **more: str) -> subprocess.CompletedProcess:
    environment = {**{k: v for k, v in os.environ.items() if k != "PYTHONPATH"}, "OMP_NUM_THREADS": "1", **more}
    return subprocess.run(
        [sys.executable, *args], cwd=cwd, env=environment, capture_output=True, text=True, timeout=300
    )


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the source, so that building leaves nothing here."""
    made = tmp_path_factory.mktemp("source") / "iclgd"
    made.mkdir()
    for name in FILES:
        shutil.copy(ROOT / name, made)
    for name in ("Makefile", "constraints.txt", "mkdocs.yml"):
        shutil.copy(ROOT / name, made)
    for name in TOP:
        shutil.copytree(ROOT / name, made / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    return made


def built(tree: Path, kind: str, place: Path) -> Path:
    place.mkdir(exist_ok=True)
    done = python("-c", BUILD.format(kind), str(place), cwd=tree)
    assert done.returncode == 0, done.stderr
    return next(place.glob("*.whl" if kind == "wheel" else "*.tar.gz"))


def data_files() -> set[str]:
    """Files of the package that are no Python, as a wheel names them."""
    here = ROOT / "src"
    found = (path for path in (here / "iclgd").rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc"))
    return {path.relative_to(here).as_posix() for path in found}


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_package_and_runs_alone(tree, tmp_path):
    wheel = built(tree, "wheel", tmp_path / "dist")
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        assert data_files() <= set(archive.namelist())
        assert not [name for name in archive.namelist() if name.startswith(("tests", "docs"))]
        archive.extractall(installed)
    code = "import iclgd, sys; print(iclgd.__file__); from iclgd.cli import main; main(sys.argv[1:])"
    for words, told in (
        (("tasks", "kinds"), "Word"),
        (("claims", "-q"), "as we say"),
        (("study", "schema"), "A study of iclgd"),
        (("linear", "optimum", "--dx", "2", "--steps", "1", "--out", "page"), "page/index.html"),
    ):
        done = python("-c", code, *words, cwd=tmp_path, PYTHONPATH=str(installed))
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(str(installed))
        assert told in done.stdout
    assert "Content-Security-Policy" in (tmp_path / "page/index.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_sdist_has_all_that_builds_and_tests_the_package(tree, tmp_path):
    sdist = built(tree, "sdist", tmp_path / "dist")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        archive.extractall(tmp_path / "unpacked", filter="data")
    assert {f"src/{name}" for name in data_files()} <= names
    assert {*FILES, "Makefile", "constraints.txt", "docs/index.md", "examples/lab.py", "tests/conftest.py"} <= names
    built(next((tmp_path / "unpacked").iterdir()), "wheel", tmp_path / "again")


def test_the_version_is_the_same_everywhere():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert cited["version"] == PROJECT["version"]
    assert re.search(rf"^## {re.escape(PROJECT['version'])}\b", changes, re.MULTILINE)
    assert cited["license"] == PROJECT["license"]


def test_every_target_of_make_has_its_line_for_windows():
    text = (ROOT / "docs/platforms.md").read_text(encoding="utf-8")
    for target in ("demo", "test", "docs", "claims", "docs-numbers"):
        assert re.search(rf"# make {target}$", text, re.MULTILINE), target


def test_every_package_that_is_asked_for_has_an_exact_version():
    pins = {
        line.partition("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().split()
    }
    extras = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *extras["test"], *extras["docs"], *extras["cluster"]]
    names = {re.split(r"[<>=\[ ]", one)[0].lower().replace("_", "-") for one in wanted}
    assert names <= pins, names - pins
