"""One cell → one result: every learner on one episode, compared with reading. No paths, no globals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import torch
from torch import Tensor

from iclgd.errors import Refusal
from iclgd.learners import Learner, make_learner
from iclgd.learners.prompted import InContext, ZeroShot
from iclgd.metrics.likeness import sim_am, sim_am_delta, sim_aou, sim_aou_norm
from iclgd.metrics.nulls import isotropic, isotropic_maps, other_query, other_query_maps, uniform
from iclgd.metrics.ranking import training_token_tau
from iclgd.models.subject import Subject
from iclgd.models.traces import NotFinite, Trace, Training
from iclgd.prompts import POSITIONS, Prompts, build_prompts
from iclgd.spec import CellSpec, EpisodeSpec, LearnerSpec
from iclgd.tasks.episodes import Episode, load_episode

METRICS = ("SimAOU", "SimAOU_norm", "SimAM", "SimAM_Δ")
KENDALL_QUERIES = 100  # as many as Dai 2022's code takes
FLOOR_QUERIES = 8
OTHER_BATCH = 333  # tokens a batch, where the noise floor asks for other batches
Arrays = dict[str, Tensor]
Report = Callable[[str, int], None]  # what is being done, and how many queries of it were just finished


@dataclass(frozen=True)
class CellResult:
    """What a cell found: plain facts, and arrays named `learner/what` (likeness: position × query × layer)."""

    facts: Mapping[str, object]
    arrays: Arrays


@dataclass(frozen=True)
class Run:
    """A learner's trace and, where it trained, how that went; no trace where it diverged."""

    trace: Trace | None
    training: Training | None = None
    again: Trace | None = None  # the same answers in other batches


def run_cell(subject: Subject, cell: CellSpec, data: Path | None = None, report: Report | None = None) -> CellResult:
    """Trace every learner on the cell's episode and measure each finetuned one against reading."""
    lab = _Lab(subject, cell, load_episode(cell.task, cell.episode, data), data, report or (lambda _what, _done: None))
    zero, read = lab.run("zero-shot", ZeroShot()).trace, lab.run("icl", InContext(), twice=cell.floor)
    icl = read.trace
    assert zero is not None
    assert icl is not None
    tuned = {spec.name: lab.run(spec.name, make_learner(spec), twice=cell.floor) for spec in cell.learners}
    arrays: Arrays = {"answers": torch.tensor(zero.answers), **_scores("zero-shot", zero), **_scores("icl", icl)}
    arrays["icl/SimAM|before"] = _by_position(lambda i: sim_am(icl.logits[:, :, i], zero.logits[:, :, i]))
    for spec in cell.learners:
        run = tuned[spec.name]
        assert run.training is not None
        arrays |= {
            f"{spec.name}/losses": torch.tensor(run.training.losses),
            f"{spec.name}/gradients": run.training.gradient_norms,
        }
        if run.trace is not None:
            arrays |= _scores(spec.name, run.trace)
            arrays |= likeness(spec.name, zero, icl, run.trace)
            arrays |= cheap_nulls(spec.name, zero, icl, run.trace, cell.episode.seed)
            arrays[f"{spec.name}/τ"] = lab.kendall(icl, run)
            if cell.trained_nulls:
                arrays |= lab.trained_nulls(spec, zero, icl)
            if cell.floor:
                arrays |= lab.floor(spec.name, make_learner(spec), zero, run)
    arrays |= _alphas(cell.learners, tuned, zero)
    if cell.floor:
        arrays |= lab.floor("icl", InContext(), zero, read)
    return CellResult(lab.facts(tuned), arrays)


def likeness(name: str, zero: Trace, icl: Trace, tuned: Trace, what: str = "") -> Arrays:
    """The four similarities, each (position, query, layer)."""
    return {
        f"{name}/SimAOU{what}": _by_position(lambda i: sim_aou(*(t.outputs[:, :, i] for t in (zero, icl, tuned)))),
        f"{name}/SimAOU_norm{what}": _by_position(
            lambda i: sim_aou_norm(*(t.outputs[:, :, i] for t in (zero, icl, tuned)))
        ),
        f"{name}/SimAM{what}": _by_position(lambda i: sim_am(icl.logits[:, :, i], tuned.logits[:, :, i])),
        f"{name}/SimAM_Δ{what}": _by_position(lambda i: sim_am_delta(*(t.logits[:, :, i] for t in (zero, icl, tuned)))),
    }


def cheap_nulls(name: str, zero: Trace, icl: Trace, tuned: Trace, seed: int) -> Arrays:
    """The nulls that need no more training: random directions, the papers' uniform numbers, another query's update."""
    keys = [zero.keys[:, i] for i in range(len(POSITIONS))]
    random = replace(
        tuned,
        outputs=isotropic(zero.outputs, tuned.outputs, seed),
        logits=torch.stack(
            [isotropic_maps(zero.logits[:, :, i], tuned.logits[:, :, i], keys[i], seed) for i in range(len(POSITIONS))],
            2,
        ),
    )
    other = replace(
        tuned,
        outputs=other_query(zero.outputs, tuned.outputs, seed),
        logits=torch.stack(
            [
                other_query_maps(zero.logits[:, :, i], tuned.logits[:, :, i], keys[i], seed)
                for i in range(len(POSITIONS))
            ],
            2,
        ),
    )
    papers = uniform(zero.outputs, seed)
    return {
        **likeness(name, zero, icl, random, "|random"),
        **likeness(name, zero, icl, other, "|other query"),
        f"{name}/SimAOU|uniform": _by_position(
            lambda i: sim_aou(zero.outputs[:, :, i], icl.outputs[:, :, i], papers[:, :, i])
        ),
    }


def _by_position(measure: Callable[[int], Tensor]) -> Tensor:
    return torch.stack([measure(position) for position in range(len(POSITIONS))]).float()


def _scores(name: str, trace: Trace) -> Arrays:
    return {f"{name}/scores": trace.scores, f"{name}/blanks": trace.blanks}


def _alphas(specs: Sequence[LearnerSpec], tuned: Mapping[str, Run], zero: Trace) -> Arrays:
    """SimAM_Δ between two finetuned learners of different kinds at one rate (Deutch 2023, B.1)."""
    found: Arrays = {}
    for a, b in combinations(specs, 2):
        one, two = tuned[a.name].trace, tuned[b.name].trace
        if a.rate == b.rate and a.kind != b.kind and one is not None and two is not None:
            found[f"{a.name} ~ {b.name}/α"] = _by_position(
                lambda i, one=one, two=two: sim_am_delta(*(t.logits[:, :, i] for t in (zero, one, two)))  # type: ignore[misc]
            )
    return found


class _Lab:
    """A subject, an episode and its prompts: what the parts of a cell share."""

    def __init__(self, subject: Subject, cell: CellSpec, episode: Episode, data: Path | None, report: Report):
        self.subject, self.cell, self.episode, self.data, self.report = subject, cell, episode, data, report
        self.prompts = self._prompts(episode)
        self.left_out: dict[str, str] = {}  # nulls that could not be had, and why

    def _prompts(self, episode: Episode) -> Prompts:
        return build_prompts(self.subject.tokenizer, episode, self.cell.prompt, self.subject.room)

    def run(
        self,
        what: str,
        learner: Learner,
        demos: Prompts | None = None,
        queries: int | None = None,
        twice: bool = False,
    ) -> Run:
        """Learn from ``demos`` (the cell's own by default), then answer the cell's queries (or the first of them)."""
        first = slice(queries)
        asked = replace(self.prompts, queries=self.prompts.queries[first], answers=self.prompts.answers[first])
        self.report(what, 0)
        with learner.learn(self.subject, demos or self.prompts) as predictor:
            if predictor.training is not None and predictor.training.diverged:
                return Run(None, predictor.training)
            try:
                trace = predictor.trace(asked, progress=lambda done: self.report(what, done))
            except NotFinite as refusal:
                if predictor.training is None:
                    raise
                return Run(None, replace(predictor.training, diverged=str(refusal).rstrip(".")))
            again = predictor.trace(asked, tokens=OTHER_BATCH) if twice else None
            return Run(trace, predictor.training, again)

    def kendall(self, icl: Trace, run: Run) -> Tensor:
        """Kendall's τ of attention to training tokens, at both positions, on the first queries."""
        assert run.trace is not None
        assert run.training is not None
        trained, trace = run.training.vectors[: len(self.prompts.demos)], run.trace
        spans, few = self.prompts.context_demos, slice(KENDALL_QUERIES)
        return _by_position(
            lambda i: training_token_tau(icl.context[few, :, i], spans, trace.vectors[few, :, i], trained)
        )

    def trained_nulls(self, spec: LearnerSpec, zero: Trace, icl: Trace) -> Arrays:
        """The same learner on the same demonstrations with shuffled labels, and on another task's demonstrations."""
        shuffled = self._prompts(self.episode.with_shuffled_labels(self.cell.episode.seed))
        nulls = {"shuffled labels": shuffled}
        try:
            nulls["other task"] = self._prompts(load_episode(self.cell.other_task, self._other_spec(), self.data))
        except Refusal as refusal:  # this tokenizer or context cannot have it: one null less, and the record says so
            self.left_out["other task"] = str(refusal)
        found: Arrays = {}
        for null, demos in nulls.items():
            trace = self.run(f"{spec.name}, {null}", make_learner(spec), demos).trace
            if trace is not None:
                found |= likeness(spec.name, zero, icl, trace, f"|{null}")
        return found

    def _other_spec(self) -> EpisodeSpec:
        return EpisodeSpec(k=min(self.cell.episode.k, 64), seed=self.cell.episode.seed, queries=1)

    def floor(self, name: str, learner: Learner, zero: Trace, run: Run) -> Arrays:
        """An update against itself: answered in other batches, and computed all over again in a wider format."""
        assert run.trace is not None
        assert run.again is not None
        found = likeness(name, zero, run.trace, run.again, "|other batch")
        wider = {torch.float32: torch.float64, torch.bfloat16: torch.float32, torch.float16: torch.float32}
        if self.subject.dtype in wider:
            with self.subject.in_precision(wider[self.subject.dtype]):
                zero_wide = self.run("zero-shot, wider", ZeroShot(), queries=FLOOR_QUERIES).trace
                run_wide = self.run(f"{name}, wider", learner, queries=FLOOR_QUERIES).trace
            if zero_wide is not None and run_wide is not None:
                found |= _updates_alike(name, _first(zero), _first(run.trace), zero_wide, run_wide, "|other precision")
        return found

    def facts(self, tuned: Mapping[str, Run]) -> dict[str, object]:
        """What was run, in numbers a person may want to check."""
        return {
            "weights_sha256": self.subject.fingerprint(),
            "episode_sha256": self.episode.sha256(),
            "origin": self.episode.origin,
            "capture": self.subject.capture,
            "labels": list(self.episode.task.labels),
            "demonstrations": len(self.prompts.demos),
            "demonstrations_dropped": len(self.prompts.dropped),
            "context_tokens": len(self.prompts.context),
            "queries": len(self.prompts.queries),
            "nulls_left_out": self.left_out,
            "diverged": [name for name, run in tuned.items() if run.training is not None and run.training.diverged],
        }


def _first(trace: Trace) -> Trace:
    few = slice(FLOOR_QUERIES)
    return replace(trace, outputs=trace.outputs[few], logits=trace.logits[few], keys=trace.keys[few])


def _updates_alike(name: str, zero: Trace, one: Trace, zero_again: Trace, again: Trace, what: str) -> Arrays:
    """Likeness of two whole computations of the same update, each with its own zero-shot trace."""
    width = again.logits.shape[-1]
    moved = replace(
        again,
        outputs=zero.outputs.double() + (again.outputs.double() - zero_again.outputs.double()),
        logits=zero.logits[..., :width].double() + (again.logits.double() - zero_again.logits.double()),
    )
    zero, one = (replace(t, logits=t.logits[..., :width]) for t in (zero, one))
    return likeness(name, zero, one, moved, what)
