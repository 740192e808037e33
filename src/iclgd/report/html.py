"""A page as one HTML file that opens from the disk: nothing is fetched, and nothing runs but the page's own scripts.

A content security policy names each script and style by its hash. Everything else is text: escaped in the markup,
escaped again in the data that scripts read, and put on the page as text content.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from iclgd.report.charts import picture
from iclgd.report.widgets import WEB, Widget
from iclgd.spec import finite

if TYPE_CHECKING:
    from iclgd.report.page import Page, Table

TEMPLATES = Path(__file__).parent / "templates"
WORDS = TEMPLATES / "words.yaml"
CORE = tuple(WEB / name for name in ("core.js", "save.js", "tables.js"))
STYLE, PLOT_STYLE, START = WEB / "page.css", WEB / "plot.css", WEB / "start.js"
MANY = 30  # rows of a table; one that has more is folded, unless it stands first
TAKEN = ("main", "contents", "glossary", "sources", "repeat", "tip")  # places of the page's own
POLICY = (
    "default-src 'none'; script-src {scripts}; style-src {styles}; img-src data: blob:; base-uri 'none'; "
    "form-action 'none'"
)
# what turns the text around it, as it would on a page: spelled out; and control characters, which show as nothing
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
IN_SCRIPT = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def render(page: "Page") -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, finalize=shown
    )
    environment.filters |= {
        "anchor": anchor,
        "image": image,
        "attachment": attachment,
        "address": id,
        "told": told,
        "opening": opening,
    }
    first = page.picture or next((made for t in _brief(page) if (made := picture(t)) is not None), None)
    widgets = [w for w in (first, *(section.widget for section in page.sections)) if w is not None]
    scripts = [_text(path) for path in dict.fromkeys(_scripts(widgets))]
    glossary = used(yaml.safe_load(_text(WORDS)), page) | dict(page.glossary)
    return environment.get_template("page.html").render(
        page=page,
        picture=first,
        anchors=anchors([section.title for section in page.sections]),
        places={id(widget): f"data-{i}" for i, widget in enumerate(widgets)},
        data={f"data-{i}": _safe(embedded(widget.data)) for i, widget in enumerate(widgets)},
        scripts=[_safe(text) for text in scripts],
        style=_safe(_text(STYLE)),
        policy=_safe(policy(scripts, [_text(STYLE), _text(PLOT_STYLE)])),
        glossary=glossary,
        term=lambda text: defined(text, glossary),
        many=MANY,
    )


def used(words: Mapping[str, str], page: "Page") -> dict[str, str]:
    """The words that occur on a page, and those that their definitions need."""
    text, found = " ".join([page.markdown(), *dict(page.glossary).values()]).lower(), dict[str, str]()
    while more := {word: words[word] for word in words.keys() - found.keys() if re.search(_stem(word), text)}:
        found |= more
        text = " ".join(more.values()).lower()
    return {word: means for word, means in words.items() if word in found}


def _stem(word: str) -> str:
    """`query` in queries, too, but no icl in iclgd; an interval wherever a number has one."""
    if word.startswith("95%"):
        return r"95%|\[-?\d*\.\d"
    return rf"\b{re.escape(word.removesuffix('y'))}{'(y|ies)' if word.endswith('y') else 's?'}\b"


def _brief(page: "Page") -> "list[Table]":
    return [section.table for section in page.sections if section.brief and section.table is not None]


def _scripts(widgets: Iterable[Widget]) -> list[Path]:
    """The page's own first, then what widgets need, the start last."""
    return [*CORE, *(path for widget in widgets for path in widget.scripts), START]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _safe(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)  # our own files, hashes of them, and data escaped for where it stands


def policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    return POLICY.format(scripts=" ".join(map(hashed, scripts)), styles=" ".join(map(hashed, styles)))


def hashed(text: str) -> str:
    """`'sha256-…'`: what a policy calls an inline script or style by."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def embedded(data: Any) -> str:
    """JSON that can stand in a script element: no text in it can end the element or a line."""
    text = json.dumps(finite(inert(data)), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029]", lambda found: IN_SCRIPT[found[0]], text)


def shown(value: Any) -> Any:
    """Text as a page shows it: characters that would turn the text around them are spelled out."""
    if isinstance(value, str) and not hasattr(value, "__html__") and HIDDEN.search(value):
        return HIDDEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", value)
    return value


def inert(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {shown(key): inert(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [inert(value) for value in data]
    return shown(data)


def told(text: str) -> Any:
    """A text with what stands in backticks as code; all of it is escaped before."""
    from markupsafe import escape

    return _safe(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(shown(text)))))


def opening(text: str) -> list[str]:
    """The first sentence of an answer, which is the answer, and the rest, which is about it."""
    return re.split(r"(?<=\.) (?=[A-Z])", text, maxsplit=1)


def anchor(title: str) -> str:
    """A section's or a word's place in the page's address."""
    return re.sub(r"\W+", "-", title.lower()).strip("-") or "section"


def anchors(titles: Iterable[str]) -> list[str]:
    """The sections' places, each its own: a second one of a title is counted."""
    found: list[str] = []
    for title in titles:
        name, taken = anchor(title), {*found, *TAKEN}
        found.append(next(n for n in (name, *(f"{name}-{i}" for i in range(2, 10_000))) if n not in taken))
    return found


def image(svg: str) -> str:
    """An SVG as an address: shown as an image, in which no script runs."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def attachment(content: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def defined(text: str, glossary: Mapping[str, str]) -> str:
    """The word of the glossary that a heading or a row's name is, or begins with; none where it is no such word."""
    bare = text.strip()
    first = bare.split(" ")[0]
    return bare if bare in glossary else first if first in glossary and re.fullmatch(r"\S+ [\d.e=×-].*", bare) else ""
