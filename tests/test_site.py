"""The documentation as a site: every link and anchor leads somewhere, every command can be typed, tutorials run."""

import re
import shlex
import unicodedata
from pathlib import Path

import click
import pytest
import yaml

from iclgd.cli import group, main, named_plugins
from iclgd.cli.lab import FRAME
from iclgd.lab import LABS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
TAUGHT = [DOCS / "start.md", *sorted((DOCS / "tutorials").glob("*.md"))]
SECONDS = ("linear", "languages", "claims")  # tutorials without a language model
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```", re.DOTALL | re.MULTILINE)


def bare(text: str) -> str:
    """A page without its code."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))


def anchors(text: str) -> set[str]:
    """The names of a page's headings, as Python-Markdown makes them, and those that it sets itself."""
    found = set(re.findall(r'(?:id|name)="([^"]+)"', text))
    for heading in re.findall(r"^#+ +(.+?) *$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.M):
        if named := re.search(r"\{ *#([^ }]+) *\}$", heading):
            found.add(named[1])
            continue
        plain = unicodedata.normalize("NFKD", re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading))
        plain = plain.encode("ascii", "ignore").decode()
        found.add(re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower()))
    return found


def nav(entries: list) -> list[str]:
    found = []
    for entry in entries:
        value = next(iter(entry.values())) if isinstance(entry, dict) else entry
        found += nav(value) if isinstance(value, list) else [value]
    return found


def test_the_site_has_every_page_once():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert sorted(nav(yaml.safe_load(text)["nav"])) == sorted(str(path.relative_to(DOCS)) for path in PAGES)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_every_link_of_a_page_leads_to_a_page_and_a_heading_of_the_site(path):
    for link in re.findall(r"\]\(([^)\s]+)\)", bare(path.read_text(encoding="utf-8"))):
        if link.startswith(("http://", "https://")):
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.is_relative_to(DOCS), f"{link} leaves the site"
        assert target.is_file(), f"{link}: a site has no folders to look into"
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), link


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_command_below_a_list_is_no_part_of_its_last_line(path):
    """Four spaces make code of a line, but not behind a list, to which it would belong."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert not re.findall(r"^(?:[-*]|\d+\.) [^\n]*\n\n {4}iclgd [^\n]*", text, re.MULTILINE)


def test_every_lab_has_a_tutorial_that_ends_in_the_readers_own_experiment():
    commands = " ".join(line for path in TAUGHT for line in lines(path))
    for name in LABS:
        if LABS[name].spec.__module__.startswith("iclgd.") and name.split()[0] not in commands:
            pytest.fail(f"no tutorial runs {name}")
    for path in TAUGHT[1:]:
        text = path.read_text(encoding="utf-8")
        assert text.split("\n")[2].startswith("**The question.**"), path.name
        assert re.findall(r"^## (.+)$", text, re.MULTILINE)[-1] == "An experiment of your own"


# commands


def lines(path: Path) -> list[str]:
    """The commands of a page that are run."""
    blocks = BLOCK.findall(path.read_text(encoding="utf-8"))
    return [line for language, _, text in blocks if language == "sh" for line in text.splitlines() if line]


def write_files(path: Path, folder: Path) -> None:
    for _, name, text in BLOCK.findall(path.read_text(encoding="utf-8")):
        if name:
            (folder / name).write_text(text, encoding="utf-8")


ALL = [(path, line) for path in TAUGHT for line in lines(path)]


@pytest.mark.parametrize("path, line", ALL, ids=[f"{path.stem}: {line[:60]}" for path, line in ALL])
def test_every_command_of_a_tutorial_can_be_typed(path, line, tmp_path, monkeypatch):
    """Its options are known, and what they are given fits the lab's spec; nothing is run."""
    monkeypatch.chdir(tmp_path)
    write_files(path, tmp_path)
    program, *args = shlex.split(line)
    assert program == "iclgd"
    named_plugins(args)
    if "--help" in args:
        args.remove("--help")
    context = click.Context(group, info_name="iclgd")
    name, command, rest = group.resolve_command(context, args)
    words = [name]
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        name, command, rest = command.resolve_command(context, rest)
        words.append(name)
    made = command.make_context(name, list(rest), parent=context)
    if " ".join(words) in LABS:
        frame = {option.name for option in FRAME}
        given = {field: value for field, value in made.params.items() if value is not None and field not in frame}
        LABS[" ".join(words)].spec.of(given)


def written(path: Path) -> list[str]:
    """Every command that stands in a page's code, inline or in a block; of `train | optimum` the first."""
    text = path.read_text(encoding="utf-8")
    code = re.findall(r"^```\w*[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    found = [line for block in code for line in block.replace("\\\n", " ").splitlines()]
    found += re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)
    return [re.split(r"   +| # | \| |; | > ", line.strip())[0] for line in found if re.match(r"\s*iclgd [a-z-]", line)]


SAID = sorted(
    {(path.name, line) for path in (*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md") for line in written(path)}
)


@pytest.mark.parametrize("page, line", SAID, ids=[f"{page}: {line[:70]}" for page, line in SAID])
def test_every_command_that_a_page_speaks_of_exists_with_its_options(page, line):
    context, command, flags = click.Context(group, info_name="iclgd"), group, {"--plugin", "--version", "-V"}
    for word in line.split()[1:]:
        word = word.rstrip(",.:")
        if word.startswith("-") and not re.match(r"-\d", word):
            known = (
                flags | {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)} | {"--help", "-h"}
            )
            assert word.partition("=")[0] in known, f"{command.name} has no {word}"
        elif isinstance(command, click.Group) and (inner := command.get_command(context, word)):
            command = inner
    assert command is not group or "--help" in line


def taught(path: Path, folder: Path, capsys) -> None:
    """Run a page from top to bottom: files are written, commands and Python run, in the order in which they stand."""
    names: dict = {}
    for language, title, text in BLOCK.findall(path.read_text(encoding="utf-8")):
        if title:
            (folder / title).write_text(text, encoding="utf-8")
        elif language == "sh":
            for line in filter(None, text.splitlines()):
                with _no_exit(line):
                    main(shlex.split(line)[1:])
        elif language == "python":
            exec(compile(text, path.name, "exec"), names)
    assert capsys.readouterr().out


class _no_exit:
    """A command that ends otherwise than well fails the test, by name."""

    def __init__(self, line: str):
        self.line = line

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind, error, trace) -> None:
        if isinstance(error, SystemExit) and error.code:
            pytest.fail(f"{self.line} ended with {error.code}")


@pytest.fixture
def reader(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("ICLGD_STORE", "ICLGD_DATA"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("path", TAUGHT, ids=lambda path: path.stem)
def test_a_tutorial_runs_from_top_to_bottom(path, reader, capsys, request):
    if path.stem not in SECONDS:
        request.getfixturevalue("smollm2")  # skipped where the model cannot be had
    taught(path, reader, capsys)


def test_the_tutorial_on_claims_runs(reader, capsys):
    taught(DOCS / "tutorials/claims.md", reader, capsys)
