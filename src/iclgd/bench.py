"""An episode on a subject: what it was asked, what it did before and after reading, and learners run on it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from iclgd.learners import Learner
from iclgd.learners.descent import GradientDescent
from iclgd.learners.prompted import InContext, ZeroShot
from iclgd.learners.together import Job, Trained, train_together
from iclgd.metrics.compared import Compared, Metric
from iclgd.models.changes import Change, changes
from iclgd.models.precision import WIDER, CannotWiden
from iclgd.models.subject import Subject
from iclgd.models.traces import RANKED, NotFinite, Trace, Training
from iclgd.prompts import POSITIONS, Prompts, build_prompts
from iclgd.spec import EpisodeSpec, PromptSpec
from iclgd.tasks.episodes import Episode

FLOOR_QUERIES = 8
OTHER_BATCH = 0.37  # of all the queries' tokens, where the noise floor asks for other batches
OWN, WRONG = "", "wrong labels"  # what a learner was trained on: the episode's demonstrations, with wrong labels
UNCHANGED = ("zero-shot", OWN)
Progress = Callable[[str, int], None]
Waiting = tuple[Learner, Prompts]


@dataclass(frozen=True)
class Run:
    """A learner's trace and, where it trained, how that went; no trace where it diverged.

    ``change`` is what training added to the weights, with right labels or wrong ones; nobody asks that of nulls.
    """

    trace: Trace | None
    training: Training | None = None
    change: Change = field(default_factory=list, repr=False)


class Bench:
    """A subject and an episode. What is asked for twice (zero-shot, reading, a learner's trace) is computed once."""

    def __init__(
        self,
        subject: Subject,
        episode: Episode,
        prompt: PromptSpec,
        seed: int,
        draw: Callable[[str, EpisodeSpec], Episode],
        progress: Progress,
        batch: int | None = None,  # tokens, padding and label word included; None: what memory holds
        ranked: int = RANKED,
    ):
        self.subject, self.episode, self.prompt, self.seed = subject, episode, prompt, seed
        self.draw, self.progress, self.batch, self.ranked = draw, progress, batch, ranked
        self.lowered: int | None = None  # tokens of a batch, where memory did not hold what was asked for
        self.prompts = self.tokens(episode)
        self._runs: dict[tuple[str, str], Run] = {}
        self._trained: dict[tuple[str, str], Trained] = {}  # ahead of their traces
        self._floors: dict[tuple[str, str], Waiting] = {}  # learners that will be asked for their noise floor
        self._wide: dict[tuple[str, str], Trace | None] = {}
        self._narrow = set[str]()

    def tokens(self, episode: Episode) -> Prompts:
        """An episode in this subject's tokens."""
        return build_prompts(self.subject.tokenizer, episode, self.prompt, self.subject.room)

    # reading

    @cached_property
    def zero(self) -> Trace:
        return self.read("zero-shot", ZeroShot())

    @cached_property
    def icl(self) -> Trace:
        return self.read("icl", InContext())

    @cached_property
    def wrong(self) -> Prompts:
        """The demonstrations with every label replaced by a wrong one."""
        return self.tokens(self.episode.with_wrong_labels(self.seed))

    @cached_property
    def icl_wrong(self) -> Trace:
        return self.read("icl, wrong labels", InContext(), self.wrong)

    def read(self, what: str, learner: Learner, demos: Prompts | None = None) -> Trace:
        """The trace of a learner that cannot diverge."""
        trace = self.run(what, learner, demos).trace
        assert trace is not None
        return trace

    # training

    def learned(self, label: str, learner: Learner, demos: Prompts | None = None, what: str = OWN) -> Run:
        """What a learner does after the episode's own demonstrations, or after others called ``what``; run once."""
        if (label, what) not in self._runs:
            ahead, kept = self._trained.get((label, what)), what in (OWN, WRONG)
            self._runs[label, what] = self.run(_title(label, what), learner, demos, trained=ahead, change=kept)
            if what != OWN and (label, what) not in self._floors:  # else needed once more, for the noise floor
                self._trained.pop((label, what), None)
        return self._runs[label, what]

    def lacks(self, label: str, what: str) -> bool:
        """Whether that training is still to be done."""
        return (label, what) not in self._runs and (label, what) not in self._trained

    def take(self, label: str, what: str, trained: Trained) -> None:
        """A training that was done ahead: `learned` then only traces."""
        self._trained[label, what] = trained

    def awaits_floor(self, label: str, learner: Learner, demos: Prompts, what: str = OWN) -> None:
        """This learner will be asked for its noise floor: it is trained there beside the others that are."""
        self._floors[label, what] = learner, demos

    def learned_wrong(self, label: str, learner: Learner) -> Run:
        return self.learned(label, learner, self.wrong, WRONG)

    def run(
        self,
        what: str,
        learner: Learner,
        demos: Prompts | None = None,
        queries: int | None = None,
        tokens: int | None = None,
        trained: Trained | None = None,
        change: bool = False,
    ) -> Run:
        """Learn from ``demos`` (the episode's own by default), then answer its queries (or the first of them).

        With ``trained``, the learner has learned already.
        """
        first = slice(queries)
        asked = replace(self.prompts, queries=self.prompts.queries[first], answers=self.prompts.answers[first])
        self.progress(what, 0)
        with trained.installed() if trained else learner.learn(self.subject, demos or self.prompts) as predictor:
            if predictor.training is not None and predictor.training.diverged:
                return Run(None, predictor.training)
            batch = self.batch if tokens is None else tokens
            try:
                trace = predictor.trace(asked, batch, lambda done: self.progress(what, done), self.ranked)
            except NotFinite as refusal:
                if predictor.training is None:
                    raise
                return Run(None, replace(predictor.training, diverged=str(refusal).rstrip(".")))
            if trace.lowered is not None:
                self.batch = self.lowered = trace.lowered
            return Run(trace, predictor.training, changes(predictor.slots) if change else [])

    def forget(self, keys: Iterable[tuple[str, str]]) -> None:
        """What was learned under these names, its traces and its weights: nobody will ask for them again."""
        for key in keys:
            for kept in (self._runs, self._trained):
                kept.pop(key, None)

    def clear(self) -> None:
        """Forget what was computed: nobody will ask for it again."""
        for kept in (self._runs, self._trained, self._floors, self._wide):
            kept.clear()
        for name in ("zero", "icl", "wrong", "icl_wrong"):
            self.__dict__.pop(name, None)

    # measuring

    def facts(self) -> dict[str, object]:
        """What was run, in numbers a person may want to check."""
        lowered = {} if self.lowered is None else {"batch_tokens_lowered_to": self.lowered}
        return lowered | {
            "task": self.episode.task.name,
            "origin": self.episode.origin,
            "capture": self.subject.capture,
            "device": str(self.subject.device),
            "labels": list(self.episode.task.labels),
            "demonstrations": len(self.prompts.demos),
            "demonstrations_dropped": len(self.prompts.dropped),
            "context_tokens": len(self.prompts.context),
            "queries": len(self.prompts.queries),
        }

    def compared(self, trace: Trace, training: Training | None = None, wrong: Trace | None = None) -> Compared:
        """A trace beside reading; with ``wrong``, what it is with wrong labels, its contrast beside reading's."""
        seen = Compared(self.zero, self.icl, trace, self.prompts, training=training)
        return seen if wrong is None else replace(seen, icl_wrong=self.icl_wrong, tuned_wrong=wrong)

    def floor(
        self, what: str, learner: Learner, own: Trace, metrics: dict[str, Metric], wrong: Trace | None = None
    ) -> tuple[dict[tuple[str, str], Tensor], str | None]:
        """An update against itself, by (floor, metric): in other batches, and computed all over again, wider.

        With ``wrong``, the learner's trace with wrong labels, what labels change against itself too. With it comes why
        the wider one could not be had, or what stayed narrow in it.
        """
        traces = [own] if wrong is None else [own, wrong]
        keys = [(what, on) for on in (OWN, WRONG)[: len(traces)]]
        for key in keys:
            self.awaits_floor(what, learner, self.wrong if key[1] else self.prompts, key[1])
        seen = self._repeated(self.zero, traces, [self._again(key) for key in keys])
        found = _floors("other batch", metrics, seen)
        if self.subject.dtype not in WIDER:
            return found, "there is no wider format"
        try:
            narrow = self._widen(keys)
        except CannotWiden as refusal:
            return found, str(refusal)
        zero_wide, wide = self._wide[UNCHANGED], [self._wide[key] for key in keys]
        if zero_wide is None or wide[0] is None:
            return found, "it diverged there"
        moved = [
            _moved(self.zero.first(FLOOR_QUERIES), trace.first(FLOOR_QUERIES), zero_wide, again)
            for trace, again in zip(traces, wide, strict=True)
            if again is not None
        ]
        seen = self._repeated(moved[0][0], [one for _, one, _ in moved], [again for *_, again in moved])
        why = [f"stayed narrow: {', '.join(sorted(narrow))}"] if narrow else []
        why += ["on wrong labels it diverged there"] if len(moved) < len(traces) else []
        return found | _floors("other precision", metrics, seen), "; ".join(why) or None

    def _again(self, key: tuple[str, str]) -> Trace:
        """The same answers in other batches; nobody asks for what was trained after this."""
        tokens = max(1, int(OTHER_BATCH * len(self.prompts.queries) * self.prompts.longest))
        learner, demos = self._floors[key]
        trace = self.run(key[0], learner, demos, tokens=tokens, trained=self._trained.pop(key, None)).trace
        assert trace is not None
        return trace

    def _repeated(self, zero: Trace, once: Sequence[Trace], again: Sequence[Trace]) -> Compared:
        """What was computed twice, each time with right labels and perhaps with wrong ones."""
        wrong = [side[1] if len(side) > 1 else None for side in (once, again)]
        return Compared(zero, once[0], again[0], self.prompts, icl_wrong=wrong[0], tuned_wrong=wrong[1])

    def _widen(self, asked: Sequence[tuple[str, str]]) -> set[str]:
        """The first queries' traces in the wider format, of all learners that are waiting for theirs; what was not.

        With wrong labels after right ones: what is trained beside others has other last bits.
        """
        if all(key in self._wide for key in asked):
            return self._narrow
        todo = {key: waiting for key, waiting in self._floors.items() if key not in self._wide}
        unchanged = {} if UNCHANGED in self._wide else {UNCHANGED: (ZeroShot(), self.prompts)}
        with self.subject.in_precision(WIDER[self.subject.dtype]) as widening:
            for on in (OWN, WRONG):
                some = {key: waiting for key, waiting in todo.items() if key[1] == on}
                able = [key for key, (learner, _) in some.items() if trains_together(learner)]
                jobs = [Job(*some[key], vectors=False) for key in able]  # type: ignore[arg-type]  # able: they descend
                trained = dict(zip(able, train_together(self.subject, jobs, self._note), strict=True))
                for key, (learner, demos) in ((unchanged if on == OWN else {}) | some).items():
                    self._wide[key] = self.run(
                        f"{_title(*key)}, wider", learner, demos, FLOOR_QUERIES, trained=trained.get(key)
                    ).trace
        self._narrow |= widening.narrow
        return self._narrow

    def _note(self, what: str) -> None:
        self.progress(what, 0)


def trains_together(learner: Learner) -> bool:
    """Whether a learner can be trained beside others; one with a way to ``learn`` of its own is left to it."""
    return isinstance(learner, GradientDescent) and type(learner).learn is GradientDescent.learn


def _title(label: str, what: str) -> str:
    return f"{label}{what and ', '}{what}"


def _floors(name: str, metrics: dict[str, Metric], seen: Compared) -> dict[tuple[str, str], Tensor]:
    known = {n: m for n, m in metrics.items() if not m.contrast or seen.tuned_wrong is not None}
    return {(name, n): measured(metric, seen) for n, metric in known.items()}


def measured(metric: Metric, seen: Compared) -> Tensor:
    """A metric of traces: (position query layer), or (query)."""
    if metric.by == "query":
        return metric(seen).float()
    return torch.stack([metric(replace(seen, position=i)) for i in range(len(POSITIONS))]).float()


def _moved(zero: Trace, one: Trace, zero_again: Trace, again: Trace) -> tuple[Trace, Trace, Trace]:
    """Two whole computations of the same update, each with its own zero-shot trace, as three traces to compare."""
    own = zero.own.entries.double() + (again.own.entries.double() - zero_again.own.entries.double())
    moved = replace(
        again,
        outputs=zero.outputs.double() + (again.outputs.double() - zero_again.outputs.double()),
        blocks=zero.blocks.double() + (again.blocks.double() - zero_again.blocks.double()),
        own=replace(zero.own, entries=own),
    )
    return zero, one, moved
