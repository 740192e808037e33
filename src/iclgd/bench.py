"""An episode on a subject: what it was asked, what it did before and after reading, and learners run on it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from iclgd.learners import Learner
from iclgd.learners.prompted import InContext, ZeroShot
from iclgd.metrics.compared import Compared, Metric
from iclgd.models.layout import Slot
from iclgd.models.precision import WIDER, CannotWiden
from iclgd.models.subject import Subject
from iclgd.models.traces import RANKED, NotFinite, Trace, Training
from iclgd.prompts import POSITIONS, Prompts, build_prompts
from iclgd.spec import EpisodeSpec, PromptSpec
from iclgd.tasks.episodes import Episode

FLOOR_QUERIES = 8
OTHER_BATCH = 333  # tokens a batch, where the noise floor asks for other batches
Progress = Callable[[str, int], None]
Change = list[tuple[int, Tensor]]  # layer, and what training added to a parameter of it (flat, float32)


@dataclass(frozen=True)
class Run:
    """A learner's trace and, where it trained, how that went; no trace where it diverged."""

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

    def learned(self, label: str, learner: Learner, demos: Prompts | None = None, what: str = "") -> Run:
        """What a learner does after the episode's own demonstrations, or after others called ``what``; run once."""
        if (label, what) not in self._runs:
            self._runs[label, what] = self.run(f"{label}{what and ', '}{what}", learner, demos)
        return self._runs[label, what]

    def learned_wrong(self, label: str, learner: Learner) -> Run:
        return self.learned(label, learner, self.wrong, "wrong labels")

    def run(
        self,
        what: str,
        learner: Learner,
        demos: Prompts | None = None,
        queries: int | None = None,
        tokens: int | None = None,
    ) -> Run:
        """Learn from ``demos`` (the episode's own by default), then answer its queries (or the first of them)."""
        first = slice(queries)
        asked = replace(self.prompts, queries=self.prompts.queries[first], answers=self.prompts.answers[first])
        self.progress(what, 0)
        with learner.learn(self.subject, demos or self.prompts) as predictor:
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
            return Run(trace, predictor.training, changes(predictor.slots))

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
        self, what: str, learner: Learner, own: Trace, metrics: dict[str, Metric]
    ) -> tuple[dict[tuple[str, str], Tensor], str | None]:
        """An update against itself, by (floor, metric): in other batches, and computed all over again, wider.

        With it comes why the wider one could not be had, or what stayed narrow in it.
        """
        again = self.run(what, learner, tokens=OTHER_BATCH).trace
        assert again is not None
        seen = Compared(self.zero, own, again, self.prompts)
        found = {("other batch", name): measured(metric, seen) for name, metric in metrics.items()}
        if self.subject.dtype not in WIDER:
            return found, "there is no wider format"
        try:
            with self.subject.in_precision(WIDER[self.subject.dtype]) as widening:
                zero_wide = self.run("zero-shot, wider", ZeroShot(), queries=FLOOR_QUERIES).trace
                run_wide = self.run(f"{what}, wider", learner, queries=FLOOR_QUERIES).trace
        except CannotWiden as refusal:
            return found, str(refusal)
        if zero_wide is None or run_wide is None:
            return found, "it diverged there"
        pair = _moved(_first(self.zero), _first(own), zero_wide, run_wide)
        seen = Compared(*pair, self.prompts)
        found |= {("other precision", name): measured(metric, seen) for name, metric in metrics.items()}
        return found, f"stayed narrow: {', '.join(sorted(widening.narrow))}" if widening.narrow else None


def measured(metric: Metric, seen: Compared) -> Tensor:
    """A metric of traces: (position query layer), or (query)."""
    if metric.by == "query":
        return metric(seen).float()
    return torch.stack([metric(replace(seen, position=i)) for i in range(len(POSITIONS))]).float()


def changes(slots: Sequence[Slot]) -> Change:
    """What training added to each trained parameter."""
    found = []
    for slot in slots:
        assert slot.before is not None
        difference = slot.restrict(slot.parameter.detach().float() - slot.before.float())
        found.append((slot.layer, difference.flatten().cpu()))
    return found


def change_norms(change: Change, layers: int) -> Float[Tensor, " layer"]:
    """‖ΔW‖ layer by layer."""
    squares = torch.zeros(layers, dtype=torch.float64)
    for layer, added in change:
        if layer >= 0:
            squares[layer] += added.double().square().sum()
    return squares.sqrt()


def change_cosines(a: Change, b: Change, layers: int) -> Float[Tensor, " layer"]:
    """cos(ΔW_a, ΔW_b) layer by layer; nan where one did not move."""
    products = torch.zeros(layers, dtype=torch.float64)
    for (layer, one), (_, two) in zip(a, b, strict=True):
        if layer >= 0:
            products[layer] += one.double() @ two.double()
    return products / (change_norms(a, layers) * change_norms(b, layers))


def _first(trace: Trace) -> Trace:
    few = slice(FLOOR_QUERIES)
    return replace(
        trace,
        scores=trace.scores[few],
        outputs=trace.outputs[few],
        logits=trace.logits[few],
        keys=trace.keys[few],
        context=trace.context[few],
        vectors=trace.vectors[few],
        blocks=trace.blocks[few],
        answers=trace.answers[few],
    )


def _moved(zero: Trace, one: Trace, zero_again: Trace, again: Trace) -> tuple[Trace, Trace, Trace]:
    """Two whole computations of the same update, each with its own zero-shot trace, as three traces to compare."""
    width = again.logits.shape[-1]
    moved = replace(
        again,
        outputs=zero.outputs.double() + (again.outputs.double() - zero_again.outputs.double()),
        blocks=zero.blocks.double() + (again.blocks.double() - zero_again.blocks.double()),
        logits=zero.logits[..., :width].double() + (again.logits.double() - zero_again.logits.double()),
    )
    zero, one = (replace(t, logits=t.logits[..., :width], keys=t.keys[..., :width]) for t in (zero, one))
    return zero, one, moved
