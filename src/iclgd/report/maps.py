"""Numbers by row and column, such as layer and head, as heat maps in small panels that can be pointed at."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from iclgd.report.charts import OWN, Looks, Series, exact, plain
from iclgd.report.heat import HEAT
from iclgd.report.widgets import CHARTS, WEB, Widget

MAPS = WEB / "maps.js"


def maps(
    panels: Mapping[str, np.ndarray], columns: Sequence[int], x: str, y: str, about: str, log: bool = False
) -> Widget:
    """``panels``: numbers [row, column] by title; rows are counted from 0, upwards.

    ``log``: strengths of colours are logarithms, and what is not above zero has none.
    """

    def data() -> dict[str, Any]:
        rows = [
            Series({"panel": title, "name": str(place), "role": OWN}, row)
            for title, values in panels.items()
            for place, row in enumerate(np.asarray(values, dtype=float))
        ]
        looks = Looks(x=x, y=y, log=tuple(panels) if log else ())
        every = np.concatenate([np.ravel(values) for values in panels.values()])
        return plain(rows, columns, looks) | {"values": exact(every)}  # not packed: the least may matter

    return Widget("maps", data, about, (*CHARTS, HEAT, MAPS))
