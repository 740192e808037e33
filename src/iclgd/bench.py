"""An episode on a subject: what it was asked, what it did before and after reading, and learners run on it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from iclgd.learners import Learner
from iclgd.learners.prompted import InContext, ZeroShot
from iclgd.metrics.compared import Compared, Metric
from iclgd.models.subject import Subject
from iclgd.models.traces import NotFinite, Trace, Training
from iclgd.prompts import POSITIONS, Prompts, build_prompts
from iclgd.spec import EpisodeSpec, PromptSpec
from iclgd.tasks.episodes import Episode

FLOOR_QUERIES = 8
OTHER_BATCH = 333  # tokens a batch, where the noise floor asks for other batches
Progress = Callable[[str, int], None]


@dataclass(frozen=True)
class Run:
    """A learner's trace and, where it trained, how that went; no trace where it diverged."""

    trace: Trace | None
    training: Training | None = None


class Bench:
    """A subject and an episode. Zero-shot and in-context traces are made once, when they are first asked for."""

    def __init__(
        self,
        subject: Subject,
        episode: Episode,
        prompt: PromptSpec,
        seed: int,
        draw: Callable[[str, EpisodeSpec], Episode],
        progress: Progress,
    ):
        self.subject, self.episode, self.prompt, self.seed = subject, episode, prompt, seed
        self.draw, self.progress = draw, progress
        self.prompts = self.tokens(episode)
        self._runs: dict[str, Run] = {}

    def tokens(self, episode: Episode) -> Prompts:
        """An episode in this subject's tokens."""
        return build_prompts(self.subject.tokenizer, episode, self.prompt, self.subject.room)

    @cached_property
    def zero(self) -> Trace:
        return self._certain("zero-shot", ZeroShot())

    @cached_property
    def icl(self) -> Trace:
        return self._certain("icl", InContext())

    def _certain(self, what: str, learner: Learner) -> Trace:
        trace = self.run(what, learner).trace
        assert trace is not None
        return trace

    def learned(self, what: str, learner: Learner) -> Run:
        """What a learner, by its label, does after the episode's own demonstrations; run once and kept."""
        if what not in self._runs:
            self._runs[what] = self.run(what, learner)
        return self._runs[what]

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
            batch = {} if tokens is None else {"tokens": tokens}
            try:
                trace = predictor.trace(asked, progress=lambda done: self.progress(what, done), **batch)  # type: ignore[arg-type]
            except NotFinite:
                if predictor.training is None:
                    raise
                return Run(None, replace(predictor.training, diverged=True))
            return Run(trace, predictor.training)

    def measure(self, metric: Metric, trace: Trace, training: Training | None = None) -> Tensor:
        """A metric of a trace against reading: (position query layer), or (query)."""
        return measured(metric, self.zero, self.icl, trace, self.prompts, training)

    def floor(
        self, what: str, learner: Learner, own: Trace, metrics: dict[str, Metric]
    ) -> dict[tuple[str, str], Tensor]:
        """An update against itself, by (floor, metric): in other batches, and computed all over again, wider."""
        again = self.run(what, learner, tokens=OTHER_BATCH).trace
        assert again is not None
        found = {
            ("other batch", name): measured(metric, self.zero, own, again, self.prompts)
            for name, metric in metrics.items()
        }
        wider = {torch.float32: torch.float64, torch.bfloat16: torch.float32, torch.float16: torch.float32}
        if self.subject.dtype not in wider:
            return found
        with self.subject.in_precision(wider[self.subject.dtype]):
            zero_wide = self.run("zero-shot, wider", ZeroShot(), queries=FLOOR_QUERIES).trace
            run_wide = self.run(f"{what}, wider", learner, queries=FLOOR_QUERIES).trace
        if zero_wide is not None and run_wide is not None:
            pair = _moved(_first(self.zero), _first(own), zero_wide, run_wide)
            found |= {
                ("other precision", name): measured(metric, *pair, self.prompts) for name, metric in metrics.items()
            }
        return found


def measured(
    metric: Metric, zero: Trace, icl: Trace, tuned: Trace, prompts: Prompts, training: Training | None = None
) -> Tensor:
    if metric.by == "query":
        return metric(Compared(zero, icl, tuned, prompts, 0, training)).float()
    seen = [metric(Compared(zero, icl, tuned, prompts, i, training)) for i in range(len(POSITIONS))]
    return torch.stack(seen).float()


def _first(trace: Trace) -> Trace:
    few = slice(FLOOR_QUERIES)
    return replace(trace, outputs=trace.outputs[few], logits=trace.logits[few], keys=trace.keys[few])


def _moved(zero: Trace, one: Trace, zero_again: Trace, again: Trace) -> tuple[Trace, Trace, Trace]:
    """Two whole computations of the same update, each with its own zero-shot trace, as three traces to compare."""
    width = again.logits.shape[-1]
    moved = replace(
        again,
        outputs=zero.outputs.double() + (again.outputs.double() - zero_again.outputs.double()),
        logits=zero.logits[..., :width].double() + (again.logits.double() - zero_again.logits.double()),
    )
    zero, one = (replace(t, logits=t.logits[..., :width]) for t in (zero, one))
    return zero, one, moved
