"""The cells of a study brought together: shares of an effect, by layer, by head, and without some heads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import stats

from iclgd.labs.causal.spec import CausalSpec
from iclgd.metrics.estimates import Estimate, estimate, estimates, share
from iclgd.metrics.margins import Scores, effect, over_episodes, recovered, shares_over_draws, whole
from iclgd.study import Study

PLACE = ("quantity", "init", "task", "seed", "part", "rate", "run", "source", "into", "site", "null", "layers")
MORE = ("score", "draw", "by")
SCORES = ("function vector", "induction", "dual step")
ALL = slice(None)  # queries
Heads = frozenset[tuple[int, int]]  # (layer, head)
HeadRuns = tuple[np.ndarray, Scores, Scores]
Runs = Callable[[str, int], HeadRuns | None]  # by task and seed


@dataclass(frozen=True, eq=False)
class View:
    """A study of `causal`, its arrays found by their labels."""

    study: Study

    @property
    def spec(self) -> CausalSpec:
        assert isinstance(self.study.spec, CausalSpec)
        return self.study.spec

    @property
    def draws(self) -> int:
        return len(self.spec.task) * len(self.spec.seeds)

    def diverged(self, rate: float) -> int:
        """In how many draws training of the first weights diverged."""
        places = {"part": "swaps", "init": self.spec.init[0], "rate": rate}
        found = self.study.found()
        return sum(bool(one.facts["diverged"]) for cell, one in found if places.items() <= cell.labels.items())

    @cached_property
    def _index(self) -> dict[tuple[Any, ...], np.ndarray]:
        return {tuple(one.labels.get(n) for n in (*PLACE, *MORE)): one.values for one in self.study.arrays()}

    def one(self, **labels: Any) -> np.ndarray | None:
        """The array with these labels and no others of those that place one; none where there is none."""
        return self._index.get(tuple(labels.get(name) for name in (*PLACE, *MORE)))

    def scores(self, **labels: Any) -> Scores | None:
        return self.one(quantity="scores", **labels)

    # layers

    def layer_shares(
        self,
        init: str,
        rate: float,
        source: str,
        into: str,
        centred: bool,
        of: str | None = None,
        beside: Mapping[str, Any] | None = None,
        **labels: Any,
    ) -> np.ndarray:
        """How far another run's layer leads from one run to another, for each layer: (task, seed, query, layer).

        1 is all the way from ``into`` to ``source``; ``of`` names another run whose way from ``into`` is meant.
        With ``layers="all"`` there is no last axis. ``beside``: labels of what it is compared with; a draw that one of
        the two lost counts for neither, as a share is of all draws' effect.
        """
        place: dict[str, Any] = {"init": init, "rate": rate, "source": source, "into": into, **labels}

        def value(task: str, seed: int) -> tuple[np.ndarray, np.ndarray] | None:
            runs = self._exchange(task, seed, of or source, place)
            if runs is None or (
                beside is not None and not self._exchange(task, seed, of or source, {**place, **beside})
            ):
                return None
            found, base, end = runs
            wanted = effect(end, base)
            if found.ndim == 2:
                return recovered(effect(found, base), wanted, centred), whole(wanted, centred)
            by_layer = [recovered(effect(one, base), wanted, centred) for one in found]
            return np.stack(by_layer, -1), whole(wanted, centred)

        return shares_over_draws(self.spec.task, self.spec.seeds, value)

    def _exchange(self, task: str, seed: int, of: str, place: Mapping[str, Any]) -> HeadRuns | None:
        """Scores of a run with another's layers in it, of that run, and of the one whose effect is meant."""
        found = self.scores(task=task, seed=seed, part="swaps", **place)
        runs = {name: place[name] for name in ("init", "rate")}
        base, end = (self.scores(task=task, seed=seed, part="swaps", **runs, run=name) for name in (place["into"], of))
        return None if found is None or base is None or end is None else (found, base, end)

    # heads

    def _of_heads(self, task: str, seed: int, **labels: Any) -> np.ndarray | None:
        return self.one(init=self.spec.init[0], task=task, seed=seed, part="heads", **labels)

    def head_runs(
        self, task: str, seed: int, rate: float | None = None, null: str | None = None, of: str = "gd"
    ) -> HeadRuns | None:
        """Scores of the zero-shot run with one head put into it, of that run, and of the one whose effect is meant.

        Heads of reading, or of training at a rate; (layer, head, query, label), then (query, label) twice.
        """
        place: dict[str, Any] = {"init": self.spec.init[0], "task": task, "seed": seed}
        if rate is None:
            place |= {"part": "heads"}
            found, end = self.scores(**place, by="head"), self.scores(**place, run="icl")
        else:
            place |= {"part": "swaps", "rate": rate}
            found = self.scores(**place, source="gd", into="zero-shot", site="heads", null=null)
            end = self.scores(**place, run=of)
        zero = self.scores(**place, run="zero-shot")
        return None if found is None or zero is None or end is None else (found, zero, end)

    def exchanged_runs(self, task: str, seed: int, rate: float, source: str, into: str) -> HeadRuns | None:
        """The same between reading and the finetuned model: of ``into`` with one head of ``source`` in it."""
        place = {"init": self.spec.init[0], "task": task, "seed": seed, "part": "exchanged", "rate": rate}
        found = self.scores(**place, source=source, into=into, site="heads")
        base, end = (self.scores(**place, run=name) for name in (into, source))
        return None if found is None or base is None or end is None else (found, base, end)

    def head_shares(self, task: str, seed: int) -> np.ndarray | None:
        """How much of reading's effect each head carries into the zero-shot run: (layer, head)."""
        runs = self.head_runs(task, seed)
        return None if runs is None else shares_of(runs)

    def single_heads(self, runs: Runs) -> np.ndarray:
        """What every single head carries of the way from one run to another: (task, seed, 1, layer, head)."""

        def value(task: str, seed: int) -> tuple[np.ndarray, np.ndarray] | None:
            found = runs(task, seed)
            return None if found is None else (shares_of(found)[None], way_of(found))

        return shares_over_draws(self.spec.task, self.spec.seeds, value)

    def head_scores(self, task: str, seed: int, score: str) -> np.ndarray | None:
        return self._of_heads(task, seed, quantity="head score", score=score)

    def rank_likeness(self, score: str) -> np.ndarray:
        """Spearman's correlation over heads of a score and the share carried, a value an episode."""

        def value(task: str, seed: int) -> np.ndarray | None:
            one, other = self.head_shares(task, seed), self.head_scores(task, seed, score)
            return None if one is None or other is None else np.array([stats.spearmanr(one.ravel(), other.ravel())[0]])

        return over_episodes(self.spec.task, self.spec.seeds, value)

    # heads taken out

    def left(self, score: str, draw: int | None = None) -> np.ndarray:
        """What is left of reading's effect without a set of heads: (task, seed, query)."""
        return shares_over_draws(
            self.spec.task, self.spec.seeds, lambda task, seed: self._left(task, seed, score, draw)
        )

    def _left(self, task: str, seed: int, score: str, draw: int | None) -> tuple[np.ndarray, np.ndarray] | None:
        pairs: list[dict[str, Any]] = [{}, {"score": score, "draw": draw}]
        zero, zero_left = (self._of_heads(task, seed, quantity="scores", run="zero-shot", **one) for one in pairs)
        icl, icl_left = (self._of_heads(task, seed, quantity="scores", run="icl", **one) for one in pairs)
        if zero is None or icl is None or zero_left is None or icl_left is None:
            return None
        wanted = effect(icl, zero)
        return recovered(effect(icl_left, zero_left), wanted, False), whole(wanted, False)

    def random_left(self, score: str) -> np.ndarray:
        """The same of every random set beside it: (set, task, seed, query)."""
        return np.stack([self.left(score, draw) for draw in range(self.spec.sets)])

    def right(self, score: str | None = None) -> np.ndarray:
        """1 where the answer behind the demonstrations is right, without a set of heads or with all."""

        def value(task: str, seed: int) -> np.ndarray | None:
            found = self._of_heads(task, seed, quantity="scores", run="icl", score=score)
            answers = self._of_heads(task, seed, quantity="answers")
            return None if found is None or answers is None else (found.argmax(-1) == answers).astype(float)

        return over_episodes(self.spec.task, self.spec.seeds, value)

    def as_damaging(self, score: str) -> float:
        """The share of random sets, over all episodes, that leave no more than the foremost heads do."""
        found = []
        for task in self.spec.task:
            for seed in self.spec.seeds:
                top, *random = (self._left(task, seed, score, draw) for draw in (None, *range(self.spec.sets)))
                if top is not None and np.isfinite(top[0]).all():
                    found += [one[0].mean() <= top[0].mean() for one in random if one is not None]
        return float(np.mean(found)) if found else NAN

    def random_sets(self, score: str) -> list[list[Heads]]:
        """Of every episode the random sets of heads beside this score's."""
        found = [
            [self._of_heads(task, seed, quantity="heads", score=score, draw=draw) for draw in range(self.spec.sets)]
            for task in self.spec.task
            for seed in self.spec.seeds
        ]
        return [[frozenset(map(tuple, one.tolist())) for one in sets if one is not None] for sets in found]

    def known_scores(self) -> list[str]:
        return [name for name in SCORES if np.isfinite(self.left(name)).any()]


def shares_of(runs: HeadRuns, queries: slice = ALL) -> np.ndarray:
    """How much of the way from one run to another every single head of the other leads: (layer, head).

    The mean of `recovered` over queries, Σ⟨e', e⟩ / Σ⟨e, e⟩, of all heads at once.
    """
    found, base, end = runs
    wanted, moved = effect(end, base)[queries], effect(found, base)[:, :, queries]
    size = whole(wanted, False).sum()
    return (moved * wanted).sum((-2, -1)) / size if size > 0 else np.full(found.shape[:2], NAN)


def way_of(runs: HeadRuns, queries: slice = ALL) -> np.ndarray:
    """What these are shares of, as one number."""
    _, base, end = runs
    return whole(effect(end, base)[queries], False).mean(keepdims=True)


NAN = float("nan")
CORRELATION = (-1.0, 1.0)
NOTHING = Estimate(NAN, NAN, NAN, NAN, 0, 0, 0, "none")


def mean(values: np.ndarray, bounds: tuple[float, float] | None = None) -> Estimate:
    return estimate(values, bounds) if np.isfinite(values).any() else NOTHING


def shares(values: np.ndarray) -> Estimate:
    return share(values) if np.isfinite(values).any() else NOTHING


def by_layer(values: np.ndarray) -> list[Estimate]:
    return estimates(values) if np.isfinite(values).any() else []
