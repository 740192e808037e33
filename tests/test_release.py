"""What is released installs and runs: the wheel has all that the package reads, the sdist all that builds it."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
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


def installed(what: Path, place: Path) -> Path:
    """An environment of its own with nothing but what pip installs from a file; what that needs is found beside it.

    The packages it depends on are those of the tests' own environment, so that nothing has to be fetched.
    """
    venv.create(place, with_pip=False)
    programs = place / ("Scripts" if os.name == "nt" else "bin")
    (site,) = place.glob("Lib/site-packages" if os.name == "nt" else "lib/python*/site-packages")
    (site / "beside.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    own = str(programs / "python")
    given = ("--no-deps", "--no-index", "--no-build-isolation", "--quiet", str(what))
    done = python("-m", "pip", "--python", own, "install", *given, cwd=place)
    assert done.returncode == 0, done.stderr
    return programs


def ran(programs: Path, *words: str, cwd: Path) -> str:
    """What the installed program says, without this source in its way."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([programs / words[0], *words[1:]], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_installed(programs: Path, cwd: Path) -> None:
    """The program of the environment, the package's own files in it, and a page made with them."""
    where = ran(programs, "python", "-c", "import iclgd; print(iclgd.__file__)", cwd=cwd)
    assert Path(where.strip()).is_relative_to(programs.parent)
    site = Path(where.strip()).parents[1]
    assert not [name for name in sorted(data_files()) if not (site / name).is_file()]
    assert ran(programs, "iclgd", "-V", cwd=cwd).strip().endswith(PROJECT["version"])
    assert "Word" in ran(programs, "iclgd", "tasks", "kinds", cwd=cwd)
    assert "as we say" in ran(programs, "iclgd", "claims", "-q", cwd=cwd)
    ran(programs, "iclgd", "linear", "optimum", "--dx", "2", "--steps", "1", "--out", "page", cwd=cwd)
    page = (cwd / "page/index.html").read_text(encoding="utf-8")
    assert "Content-Security-Policy" in page
    for name in ("d3", "plot.umd"):
        assert (ROOT / f"src/iclgd/report/web/vendor/{name}.min.js").read_text(encoding="utf-8").strip() in page


def test_the_wheel_installs_by_pip_into_an_empty_environment_and_runs_there(tree, tmp_path):
    wheel = built(tree, "wheel", tmp_path / "dist")
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if name.startswith(("tests", "docs"))]
    check_installed(installed(wheel, tmp_path / "own"), tmp_path)


@pytest.mark.slow
def test_the_sdist_has_all_that_builds_and_tests_the_package_and_installs_by_pip(tree, tmp_path):
    sdist = built(tree, "sdist", tmp_path / "dist")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in data_files()} <= names
    assert {*FILES, "Makefile", "constraints.txt", "docs/index.md", "examples/lab.py", "tests/conftest.py"} <= names
    check_installed(installed(sdist, tmp_path / "own"), tmp_path)


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
