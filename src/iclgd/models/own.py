"""Attention logits of queries over their own tokens, one query behind the other.

They are the largest part of a trace, and of thousands of queries the longest has several times the tokens of most:
padded to it, nearly all of that part would be padding. They are padded some queries or some layers at a time, where
somebody measures them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from iclgd.models.copies import sent

AT_ONCE = 2**27  # numbers that are padded at once: a gibibyte in float64
EVERY = slice(None)


@dataclass(frozen=True)
class OwnLogits:
    """The logits of every query's keys, which are its own tokens followed by the class-0 label word."""

    entries: Float[Tensor, "layer position head entry"]
    lengths: tuple[int, ...]  # keys of each query

    @classmethod
    def empty(
        cls, lengths: Sequence[int], axes: Sequence[int], dtype: torch.dtype, device: torch.device
    ) -> "OwnLogits":
        """Room for queries of these lengths; ``axes``: layers, positions, heads."""
        return cls(torch.empty(*axes, sum(lengths), dtype=dtype, device=device), tuple(lengths))

    @property
    def width(self) -> int:
        """Keys of the longest query."""
        return max(self.lengths, default=0)

    @property
    def starts(self) -> tuple[int, ...]:
        """Where each query's entries begin, and where the last one's end."""
        return (0, *accumulate(self.lengths))

    def first(self, count: int) -> "OwnLogits":
        """Those of the first queries."""
        lengths = self.lengths[:count]
        return OwnLogits(self.entries[..., : sum(lengths)], lengths)

    def some_queries(self) -> Iterator[slice]:
        """All queries, so many at a time as may be padded at once."""
        layers, _, heads, _ = self.entries.shape
        return _parts(len(self.lengths), layers * heads * self.width)

    def some_layers(self) -> Iterator[slice]:
        """All layers, so many at a time as may be padded at once."""
        layers, _, heads, _ = self.entries.shape
        return _parts(layers, heads * self.width * len(self.lengths))

    def padded(
        self, position: int, layers: slice = EVERY, queries: slice = EVERY
    ) -> Float[Tensor, "query layer head key"]:
        """Side by side, 0 behind the shorter ones, all as wide as the longest of all queries."""
        entry, hidden = (part[queries] for part in _padding(self.lengths, self.entries.device))
        own = self.entries[layers, position]
        found = own.gather(-1, entry.flatten().expand(*own.shape[:2], -1)).unflatten(-1, entry.shape)
        return found.masked_fill_(hidden, 0).permute(2, 0, 1, 3)

    def put(
        self,
        values: Float[Tensor, "query layer head key"],
        position: int,
        layers: slice = EVERY,
        queries: slice = EVERY,
    ) -> None:
        """`padded` taken back."""
        (begin, end, _), starts = queries.indices(len(self.lengths)), self.starts
        joined = _joined(values, np.array(self.lengths[begin:end]))
        self.entries[layers, position, :, starts[begin] : starts[end]] = joined.to(self.entries.dtype)

    def scatter(self, values: Float[Tensor, "some layer position head key"], queries: Sequence[int]) -> None:
        """Those of some queries in any order; keys beyond a query's own are left out."""
        asked = np.array(queries, dtype=np.int64)
        lengths = np.array(self.lengths)[asked]
        entries = np.repeat(np.array(self.starts)[asked], lengths) + _within(lengths)
        there = sent(entries, self.entries.device)
        joined = _joined(values.flatten(1, 2), lengths)
        self.entries[..., there] = joined.unflatten(0, values.shape[1:3]).to(self.entries.dtype)


def _parts(count: int, each: int) -> Iterator[slice]:
    most = max(1, AT_ONCE // max(1, each))
    return (slice(first, min(first + most, count)) for first in range(0, count, most))


def _within(lengths: np.ndarray) -> np.ndarray:
    """0 … n − 1 for each length n, one behind the other."""
    return np.arange(lengths.sum()) - np.repeat(lengths.cumsum() - lengths, lengths)


def _joined(values: Float[Tensor, "query one other key"], lengths: np.ndarray) -> Float[Tensor, "one other entry"]:
    """What queries have of their keys, one query behind the other."""
    places = np.repeat(np.arange(len(lengths)), lengths) * values.shape[-1] + _within(lengths)
    return values.permute(1, 2, 0, 3).flatten(2)[..., sent(places, values.device)]


@lru_cache(maxsize=8)
def _padding(
    lengths: tuple[int, ...], device: torch.device
) -> tuple[Int[Tensor, "query key"], Bool[Tensor, "query key"]]:
    """Of every key the entry it has, and whether there is none."""
    counts, width = np.array(lengths, dtype=np.int64), max(lengths, default=0)
    key = np.arange(width)
    hidden = key >= counts[:, None]
    entry = np.where(hidden, 0, (counts.cumsum() - counts)[:, None] + key)
    return torch.from_numpy(entry).to(device), torch.from_numpy(hidden).to(device)
