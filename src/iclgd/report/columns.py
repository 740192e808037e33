"""Rows of text in columns that fit a window: prose is wrapped, and columns that do not fit stand below."""

from collections.abc import Iterator, Sequence
from textwrap import wrap

GAP = 2  # spaces between columns
NARROW = 24  # the narrowest that prose is wrapped to

Lines = Sequence[Sequence[str]]


def columns(lines: Lines, width: int | None = None) -> str:
    """Columns two spaces apart; no cell is ever cut. Without a width, as wide as they need to be.

    In a window the column of longest texts is wrapped, if that is enough. Else the columns that do not fit follow
    below, behind the first one again; texts that are too long even there are wrapped.
    """
    if not lines:
        return ""
    wide = _widths(lines)
    if width is None or _total(wide) <= width:
        return _laid(lines)
    longest = max(range(len(wide)), key=wide.__getitem__)
    room = wide[longest] - (_total(wide) - width)
    if room >= NARROW and _total(_widths(wrapped := list(_wrapped(lines, longest, room)))) <= width:
        return _laid(wrapped)
    blocks = ([[line[0], *line[a:b]] for line in lines] for a, b in _blocks(wide, width))
    return "\n\n".join(_laid(_fitted(block, width)) for block in blocks)


def _fitted(lines: Lines, width: int) -> Lines:
    """Lines whose longest texts are wrapped, one column after another, until they fit or nothing more can be done."""
    for _ in lines[0]:
        wide = _widths(lines)
        longest = max(range(len(wide)), key=wide.__getitem__)
        share = (width - GAP * (len(wide) - 1)) // len(wide)
        room = max(NARROW, share, wide[longest] - (_total(wide) - width))
        if _total(wide) > width:
            lines = list(_wrapped(lines, longest, room))
    return lines


def _widths(lines: Lines) -> list[int]:
    return [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _laid(lines: Lines) -> str:
    widths = _widths(lines)
    return "\n".join(
        (" " * GAP).join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _wrapped(lines: Lines, column: int, room: int) -> Iterator[list[str]]:
    """Every line with one of its cells wrapped over as many lines as it takes, each as far in as the cell."""
    for line in lines:
        inset = " " * (len(line[column]) - len(line[column].lstrip()))
        parts = wrap(line[column], room, break_long_words=False, subsequent_indent=inset) or [""]
        for i, part in enumerate(parts):
            yield [part if place == column else cell if i == 0 else "" for place, cell in enumerate(line)]


def _blocks(widths: Sequence[int], width: int) -> Iterator[tuple[int, int]]:
    """From where to where the columns behind the first go, as many at once as fit and at least one."""
    start = 1
    while start < len(widths):
        end = start + 1
        while end < len(widths) and _total([widths[0], *widths[start : end + 1]]) <= width:
            end += 1
        yield start, end
        start = end
