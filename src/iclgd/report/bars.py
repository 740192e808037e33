"""Counts as bars of coloured parts, one bar a row, that can be pointed at."""

from collections.abc import Mapping
from typing import Any

from iclgd.report.charts import OWN, Looks, Series, plain
from iclgd.report.widgets import CHARTS, WEB, Widget

BARS = WEB / "bars.js"
Counts = Mapping[str, Mapping[str, int]]  # row → part → how many


def bars(counts: Counts, x: str, about: str, presses: Mapping[str, Any] | None = None) -> Widget:
    """``presses``: what a part that is pressed chooses: `name` by its row, if among `names`, and `part` by its part."""

    def data() -> dict[str, Any]:
        series = [
            Series({"name": name, "part": part, "role": OWN}, [count])
            for name, parts in counts.items()
            for part, count in parts.items()
        ]
        return plain(series, (), Looks(colour="part", x=x)) | {"presses": presses}

    return Widget("bars", data, about, (*CHARTS, BARS))
