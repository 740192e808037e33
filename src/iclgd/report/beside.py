"""The same number of several studies, one dot with its interval each; the reader chooses which number."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from iclgd.report.charts import OWN, Looks, Series, dots
from iclgd.report.widgets import Widget

MOST = 300  # numbers among which can be chosen
Record = Mapping[str, Any]  # a page as plain data, as `Page.plain` gives it and a study's folder keeps it


def beside(records: Mapping[str, Record], labs: Mapping[str, str], about: str) -> Widget | None:
    """What answers rest on first, then the numbers of first tables, those that most studies have before others."""
    apart = len(set(labs.values())) > 1
    found: dict[str, dict[str, Record]] = {}
    for name, record in records.items():
        for what, number in (*_found(record), *_first(record)):
            found.setdefault(f"{labs[name]}: {what}" if apart else what, {}).setdefault(name, number)
    shared = [what for what, of in sorted(found.items(), key=lambda one: -len(one[1])) if len(of) > 1][:MOST]
    if not shared:
        return None

    def series() -> list[Series]:
        return [
            Series({"number": what, "name": name, "role": OWN}, *([_end(one, end)] for end in ("value", "low", "high")))
            for what in shared
            for name, one in found[what].items()
        ]

    return dots(series, Looks(choose={"number": "number"}, colour="learner"), about)


def _end(number: Record, end: str) -> float:
    known = number.get(end)
    return float("nan") if known is None else float(known)


def _found(record: Record) -> Iterator[tuple[str, Record]]:
    return ((one["what"], one) for one in record.get("found", ()) if one["value"] is not None)


def _first(record: Record) -> Iterator[tuple[str, Record]]:
    """The numbers of the first table that has any, by row and column."""
    for section in record.get("sections", ()):
        if some := list(numbers(section["table"])) if "table" in section else []:
            return iter([(" · ".join(filter(None, (row, column))), number) for row, column, number in some])
    return iter(())


def numbers(table: Mapping[str, Any]) -> Iterator[tuple[str, str, Record]]:
    """(row, column, number) of a table as plain data; a row is called by the texts that it begins with."""
    header: Sequence[str] = table["header"]
    for row in table["rows"]:
        called = takewhile(lambda entry: not isinstance(entry, dict), row)
        name = " · ".join(str(entry).strip() for entry in called if str(entry).strip())
        for column, entry in zip(header, row, strict=False):
            if isinstance(entry, dict) and entry.get("value") is not None:
                yield name, column, {end: entry.get(end) for end in ("value", "low", "high")}
