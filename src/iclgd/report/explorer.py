"""The explorer: queries token by token, coloured by what reading and learners do with them."""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from iclgd.report.colours import slots
from iclgd.report.page import Section
from iclgd.report.widgets import CHARTS, WEB, Widget

ROOM = 3_000_000  # bytes of attention on one page; beyond it every episode shows fewer queries
SCRIPTS = (*CHARTS, WEB / "tokens.js", WEB / "explorer.js")
TITLE = "Query by query"
ABOUT = (
    "Queries behind their demonstrations, token by token: where a head attends, what each token adds to its output, "
    "and how reading and training differ."
)
TOLD = (
    "Colours are of the prompt's last token. Attention: the share of a head's attention that lies on a token. "
    "Contribution: the share of what a token adds to the head's output (the length of weight times value), which is "
    "its part of the head's gradient step in the dual. Differences are of the attention among the query's own tokens, "
    "which every learner has. Shares are kept in 8 bits: small ones to .00001, large ones to .8%."
)


@dataclass(frozen=True, eq=False)
class Episode:
    """Some queries behind one context; arrays are of bytes, 255 √share, [query, layer, head, key].

    ``texts`` is what `iclgd.models.looks.texts_of` gives. ``own`` has, by learner, attention among the query's own
    tokens, ``scores`` log p of each label, ``alike`` by learner how alike its update is with reading's, by layer.
    """

    title: str
    texts: Mapping[str, Any]
    labels: Sequence[str]
    scores: Mapping[str, np.ndarray]
    own: Mapping[str, np.ndarray]
    attention: np.ndarray | None = None
    contribution: np.ndarray | None = None
    alike: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def queries(self) -> int:
        return len(self.texts["queries"])

    @property
    def bytes_of_one(self) -> int:
        whole = [*self.own.values(), *(a for a in (self.attention, self.contribution) if a is not None)]
        return sum(array[0].size for array in whole)

    def plain(self, count: int) -> dict[str, Any]:
        """For JSON: the first queries."""
        parts = {"attention": self.attention, "contribution": self.contribution}
        return {
            "title": self.title,
            **{name: list(self.texts[name]) for name in ("start", "demos", "label_tokens", "separator")},
            "queries": list(self.texts["queries"][:count]),
            "answers": list(self.texts["answers"][:count]),
            "labels": list(self.labels),
            "scores": {who: np.round(values[:count], 4).tolist() for who, values in self.scores.items()},
            "alike": {who: np.round(values[:count].astype(float), 3).tolist() for who, values in self.alike.items()},
            "own": {who: block(values[:count]) for who, values in self.own.items()},
            **{name: block(values[:count]) for name, values in parts.items() if values is not None},
        }


def block(values: np.ndarray) -> dict[str, Any]:
    return {"shape": list(values.shape), "bytes": base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()}


def section(make: Callable[[], Sequence[Episode]]) -> Section:
    """The explorer in its place on a page: every episode with as many queries as there is room for."""

    def data() -> dict[str, Any]:
        episodes = make()
        room = ROOM // sum(one.bytes_of_one for one in episodes)
        who = slots(name for one in episodes for name in one.alike)
        return {"episodes": [one.plain(max(1, min(one.queries, room))) for one in episodes], "slots": who}

    return Section(TITLE, TOLD, widget=Widget("explorer", data, ABOUT, SCRIPTS))
