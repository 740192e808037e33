"""A hook of mkdocs: formulas become MathML when the site is built, so that pages fetch nothing to show them."""

import html
import re
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(text: str, **_: Any) -> str:
    """Called by mkdocs with the HTML of every page."""
    return FORMULA.sub(_mathml, text)


def _mathml(found: re.Match[str]) -> str:
    if found[2] == "(":
        return convert(html.unescape(found[3]), display="inline")
    formula = convert(html.unescape(found[3]), display="block")
    return f'<div class="equation" tabindex="0" role="group" aria-label="Equation">{formula}</div>'


def on_post_page(output: str, **_: Any) -> str:
    """Called by mkdocs with a whole page: the search box gets a name, which the theme gives it none."""
    return output.replace(
        'data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"'
    )
