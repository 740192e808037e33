"""What a page draws by itself, from data that it carries: charts, and whatever a lab brings a script for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

WEB = Path(__file__).parent / "web"
CHARTS = tuple(WEB / name for name in ("vendor/d3.min.js", "vendor/plot.umd.min.js", "series.js", "charts.js"))


@dataclass(frozen=True, eq=False)
class Widget:
    """Something in a page that a reader can choose in and point at.

    ``kind`` is the name under which one of ``scripts`` registers how it is drawn (``iclgd.widget(kind, draw)``),
    ``make`` gives its data as plain data for JSON, ``about`` is read to those who do not see it.
    """

    kind: str
    make: Callable[[], Any]
    about: str
    scripts: Sequence[Path] = CHARTS

    @cached_property
    def data(self) -> Any:
        return self.make()
