"""How many small faults the tests of the default run notice, package by package (`make mutants`).

python tests/mutants.py --package metrics,src/iclgd/report/numbers.py --sample 200 --seed 7 -j 14 --out FILE
python tests/mutants.py --package metrics --again --out FILE

First the test files of a package are run once on the tree as it is, to learn which tests enter which functions
(mutation/watched.py; kept in build/mutants until a source changes). Then each mutant of a seeded sample
(mutation/mutated.py) is put into a copy of the tree, and the tests that enter the changed function run on it, the quick
ones first, until one fails (mutation/judged.py). A package's row in FILE is replaced, the others stay. Mutants that no
test could tell from the original are named, each with the reason, in mutation/equivalents.yaml. With --again only those
that survived in FILE are judged once more, as after a test was written; the row keeps how many were noticed at first.
Another --seed draws other mutants, for which nobody has written tests: what they say is "at first".
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from mutation.early import import_early
from mutation.equivalents import reasons
from mutation.forks import ROOT, Job, copied, in_parallel, pytest_run, warm
from mutation.judged import SOURCE, Tests, control, fates, in_two, tests_of
from mutation.mutated import Mutant, drawn, found_again
from mutation.record import NOTHING, again, first, kept, row, together, written
from mutation.watched import Watch

KEPT = ROOT / "build/mutants"
PART = 40  # mutants after which a count is kept
OPTIONS, CELLS, GOLDEN = "labs/test_options_of_labs.py", "labs/test_cells_of_labs.py", "golden/test_golden.py"
# experiments behind claims, which claims judge: a package of their own, wherever they lie
IDENTITIES = (
    "metrics/identities.py",
    "nulls/identities.py",
    "labs/dual/identities.py",
    "labs/dual/modified_identities.py",
    "labs/order/identities.py",
    "small/identities",
)
# of the report's tests: one in a browser takes as long as all of these
NO_BROWSER = ("charts", "colours", "columns", "figures", "found", "numbers", "pace", "page", "terminal", "written")
# package: the tests that are about it
PACKAGES = {
    "metrics": (
        "metrics",
        "nulls",
        "labs/compare/test_compare_page.py",
        "labs/compare/test_compare_differences.py",
        "labs/compare/test_compare_run.py",
    ),
    "learners": ("learners", GOLDEN),
    "nulls": ("nulls", "metrics/test_nulls.py", "labs/compare/test_compare_run.py", GOLDEN),
    "labs/compare": ("labs/compare", OPTIONS, CELLS, "cli/test_compare_command.py", GOLDEN),
    "labs/trace": ("labs/trace", OPTIONS, CELLS, "cli/test_trace_command.py"),
    "labs/linear": ("labs/linear", OPTIONS, CELLS, GOLDEN),
    "labs/languages": ("labs/languages", OPTIONS, CELLS, GOLDEN),
    "labs/dual": ("labs/dual", OPTIONS, GOLDEN),
    "labs/implicit": ("labs/implicit", OPTIONS),
    "labs/causal": ("labs/causal", OPTIONS),
    "labs/order": ("labs/order", OPTIONS, CELLS),
    "labs/exits": ("labs/exits", OPTIONS),
    "labs/identities": ("labs/identities", OPTIONS),
    "identities": ("labs/identities", "labs/dual/test_dual_identities.py", "claims/test_seconds.py"),
    "report": (*(f"report/test_{name}.py" for name in NO_BROWSER), "test_study.py"),
    "store": ("store", "test_running.py"),
}


def package_of(name: str) -> str:
    """The package that a name or a path of a source means."""
    inside = name.rstrip("/").removeprefix(f"{SOURCE}/")
    if inside == "identities" or _below(inside, IDENTITIES):
        return "identities"
    found = [package for package in PACKAGES if _below(inside, [package])]
    if not found or not (ROOT / SOURCE / inside).exists():
        sys.exit(f'mutants.py: no package "{name}": {", ".join(PACKAGES)}, or a path in one of them.')
    return found[0]


def _below(inside: str, parts: Iterable[str]) -> bool:
    return any(inside == part or inside.startswith(f"{part}/") for part in parts)


def sources_of(name: str, tree: Path) -> list[str]:
    """The files that a package or a path stands for; identities count in no other package than theirs."""
    parts = IDENTITIES if name == "identities" else (name,)
    files = files_of(tree, [f"{SOURCE}/{part}" for part in parts], "*.py")
    package = package_of(name)
    return [file for file in files if package_of(file) == package]


def files_of(tree: Path, parts: Iterable[str], pattern: str) -> list[str]:
    """The files of these names in a tree, and of these folders those that match."""
    paths = [tree / part for part in parts]
    files = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob(pattern)))]
    return [str(file.relative_to(tree)) for file in files]


# which tests enter what


def watched(files: list[str], tree: Path, copies: list[Path]) -> Tests:
    """What is known of these files' tests; what is not known yet is run."""
    helpers = [
        path for path in (tree / "tests").rglob("*.py") if "test_" not in path.name and path.parent.name != "mutation"
    ]
    shared = sorted([*(tree / "src").rglob("*.py"), *helpers])
    known = _hash(*(path.read_bytes() for path in shared if path.name != "mutants.py"))
    places = {file: KEPT / f"{_hash(known.encode(), (tree / file).read_bytes())}.json" for file in files}
    KEPT.mkdir(parents=True, exist_ok=True)
    for file in in_parallel((_watch(file, places[file]) for file in files if not places[file].is_file()), copies):
        print(f"  {file}: {len(json.loads(places[file].read_text()))} tests", flush=True)
    return {name: test for file in files for name, test in json.loads(places[file].read_text()).items()}


def _hash(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:20]


def _watch(file: str, place: Path) -> Job:
    def run(copy: Path) -> int:
        watch = Watch(copy / SOURCE)
        watch.start()
        code = pytest_run([file], watch)
        modules = watch.modules()
        tests = {name: {**test, "modules": modules} for name, test in watch.tests.items()}
        (copy / "watched.json").write_text(json.dumps(tests), encoding="utf-8")
        return code

    def after(copy: Path, code: int | None) -> str:
        if code not in (0, 1, 5):  # 1: some fail, and are left out; 5: all are slow
            sys.exit(f"mutants.py: {file} could not be run:\n{(copy / 'said.txt').read_text()[-2000:]}")
        place.write_bytes((copy / "watched.json").read_bytes())
        return file

    return Job(run, after, 1800)


# mutants


def counted(name: str, sample: int, seed: int, tree: Path, copies: list[Path]) -> Iterator[dict[str, Any]]:
    """A package's count, larger by a part of the sample each time, so that what ends early has counted something."""
    sources = sources_of(name, tree)
    tests, whole = tests_for(name, sources, tree, copies), NOTHING
    mutants = islice(drawn(tree, sources, seed), sample)
    while part := list(islice(mutants, PART)):
        whole = together(whole, fates_of(part, tests, tree, copies))
        yield {**whole, "seed": seed, "first": first(whole)}


def counted_again(name: str, before: dict[str, Any], tree: Path, copies: list[Path]) -> dict[str, Any]:
    """A package's count with its survivors judged once more; those whose code is gone are out of the count."""
    mutants = [mutant for one in before["survivors"] if (mutant := found_again(tree, one))]
    sources = sources_of(name, tree)
    found = fates_of(mutants, tests_for(name, sources, tree, copies), tree, copies)
    rest = before | {"mutants": before["mutants"] - len(before["survivors"]), "survived": 0, "survivors": []}
    return {**before, **together(rest, found), **again(before, len(found["equivalent"]))}


def tests_for(name: str, sources: list[str], tree: Path, copies: list[Path]) -> Tests:
    """What is known of the package's tests, which pass; from here on children begin with what no mutant changes."""
    files = files_of(tree, (f"tests/{part}" for part in PACKAGES[package_of(name)]), "test_*.py")
    tests = watched(files, tree, copies)
    for lost in [name for name, test in tests.items() if not test["passed"]]:
        print(f"  left out, since it fails on the tree as it is: {lost}", flush=True)
    import_early(tree / SOURCE, sources)
    unchanged = Mutant(sources[0], 1, "", "", (tree / sources[0]).read_text(encoding="utf-8"))
    control(in_two(tests_of(unchanged, tests, tree), tests)[0], tests, tree, copies)
    return tests


def fates_of(mutants: list[Mutant], tests: Tests, tree: Path, copies: list[Path]) -> dict[str, Any]:
    why = reasons(tree)
    found: Counter[str] = Counter()
    survivors = []
    for mutant, fate in fates((mutant for mutant in mutants if not why(mutant)), tests, tree, copies):
        found[fate] += 1
        if fate == "survived":
            survivors.append(said(mutant) | {"tests": len(tests_of(mutant, tests, tree))})
            print("  {file}:{line} survives {tests} tests\n- {was}\n+ {becomes}".format(**survivors[-1]), flush=True)
    counts = {"mutants": len(mutants), **{fate: found[fate] for fate in ("killed", "survived", "timeout")}}
    same = [said(mutant) | {"why": why(mutant)} for mutant in mutants if why(mutant)]
    return {**counts, "equivalent": same, "survivors": sorted(survivors, key=lambda one: (one["file"], one["line"]))}


def said(mutant: Mutant) -> dict[str, Any]:
    return {"file": mutant.file, "line": mutant.line, "was": mutant.was, "becomes": mutant.becomes}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--package", default=",".join(PACKAGES), help="packages or paths in them, between commas")
    parser.add_argument("--sample", type=int, default=200, help="mutants a package, drawn by a seed")
    parser.add_argument("--seed", type=int, default=1, help="which are drawn")
    parser.add_argument("--again", action="store_true", help="only what survived in the record")
    parser.add_argument("-j", type=int, default=os.cpu_count(), dest="jobs", help="how many run at a time")
    parser.add_argument("--out", type=Path, default=KEPT / "mutants.json", help="counts and survivors, as JSON")
    asked = parser.parse_args()
    names = [name.rstrip("/").removeprefix(f"{SOURCE}/") for name in asked.package.split(",")]
    for name in names:
        package_of(name)
        if asked.again and name not in kept(asked.out):
            sys.exit(f'mutants.py: "{name}" is not counted in {asked.out} yet: leave out --again.')
    if len(names) > 1:  # each in a process of its own
        options = [f"--sample={asked.sample}", f"--seed={asked.seed}", f"-j{asked.jobs}", f"--out={asked.out}"]
        options += ["--again"] * asked.again
        for name in names:
            subprocess.run([sys.executable, __file__, "--package", name, *options], check=True)
        return
    warm()
    (name,) = names
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree, *copies = copied(Path(folder), asked.jobs + 1)  # the first stays as it is
        print(name, flush=True)
        if asked.again:
            counts = iter([counted_again(name, kept(asked.out)[name], tree, copies)])
        else:
            counts = counted(name, asked.sample, asked.seed, tree, copies)
        for found in counts:
            written(asked.out, {name: found}, list(PACKAGES))
            print(" ".join(map(str, (name, *row(found)))), flush=True)


if __name__ == "__main__":
    main()
