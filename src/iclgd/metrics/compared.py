"""What a metric is: a function of three traces of the same queries. Those of this package, and the door for others."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from iclgd.metrics.likeness import centred, centred_maps, cosine, sim_am, sim_am_delta, sim_aou, sim_aou_norm
from iclgd.metrics.margins import Scores, effect, missed, recovered, whole
from iclgd.metrics.prediction import agreement, batch_calibration, contextual_calibration, kl_divergence, right
from iclgd.metrics.ranking import training_token_tau
from iclgd.models.copies import sent
from iclgd.models.traces import Trace, Training
from iclgd.prompts import Prompts

Of = Literal["update", "trace", "training"]
Values = Float[Tensor, "query layer"] | Float[Tensor, " query"] | Bool[Tensor, " query"]


@dataclass(frozen=True)
class Compared:
    """The same queries asked of a model as it is, after reading, and after learning (or of a null), at one position."""

    zero: Trace
    icl: Trace
    tuned: Trace
    prompts: Prompts
    position: int = 0
    training: Training | None = None
    icl_wrong: Trace | None = None  # reading and learning with wrong labels, where a metric is about the contrast
    tuned_wrong: Trace | None = None

    @property
    def outputs(self) -> tuple[Tensor, Tensor, Tensor]:
        """Attention outputs (query layer dim): zero-shot, read, learned."""
        zero, icl, tuned = (t.outputs[:, :, self.position] for t in (self.zero, self.icl, self.tuned))
        return zero, icl, tuned

    def of_maps(self, measure: Callable[..., Tensor], *traces: Trace | None) -> Tensor:
        """``measure`` of the traces' attention logits over the query's own tokens, each (query layer head key).

        It has to measure every layer by itself: it is given some of them at a time, since all of them, padded to the
        longest query, may be more than everything else.
        """
        found = []
        for some in self.zero.own.some_layers():
            maps = []
            for trace in traces:
                assert trace is not None, "a contrast needs traces with wrong labels"
                maps.append(trace.own.padded(self.position, some))
            found.append(measure(*maps))
        return torch.cat(found, 1)

    def contrasts(self, what: str) -> tuple[Tensor, Tensor]:
        """Right labels minus wrong ones, of reading and of learning; ``what`` is outputs or blocks."""
        pairs = ((self.icl, self.icl_wrong), (self.tuned, self.tuned_wrong))
        found = []
        for right_labels, wrong_labels in pairs:
            assert wrong_labels is not None, "a contrast needs traces with wrong labels"
            both = (getattr(trace, what)[:, :, self.position].double() for trace in (right_labels, wrong_labels))
            found.append(next(both) - next(both))
        return found[0], found[1]

    @property
    def lengths(self) -> Tensor:
        """How many of a query's own keys there are at the position."""
        return self.zero.keys[:, self.position].sum(-1)

    @property
    def answers(self) -> Tensor:
        return sent(self.zero.answers, self.zero.scores.device)


@dataclass(frozen=True)
class Metric:
    """A measure by query and layer, or by query alone; ``title`` is how tables spell it.

    ``of``: updates are drawn by layer and have nulls; a whole trace is alike before any training, too; what happened in
    training has no null, since a null did not train.
    """

    measure: Callable[[Compared], Tensor]
    by: Literal["layer", "query"]
    bounds: tuple[float, float]
    title: str
    version: int = 1
    alone: bool = False  # asks nothing of any learner but its own answers: also for zero-shot and icl
    contrast: bool = False  # asks what right and wrong labels make different
    of: Of = "update"
    aside: bool = False  # not in the first table, for want of room, but beside what is predicted
    whole: Callable[[Compared], Tensor] | None = None  # by query, of a share: of what, so that draws count by how much

    @property
    def __wrapped__(self) -> Callable[[Compared], Tensor]:
        return self.measure

    def __call__(self, seen: Compared) -> Tensor:
        return self.measure(seen)


def metric(
    title: str,
    by: Literal["layer", "query"] = "layer",
    bounds: tuple[float, float] = (-1, 1),
    version: int = 1,
    alone: bool = False,
    contrast: bool = False,
    of: Of = "update",
    aside: bool = False,
    whole: Callable[[Compared], Tensor] | None = None,
) -> Callable[[Callable[[Compared], Tensor]], Metric]:
    """Makes a function of `Compared` a metric; register it in `iclgd.metrics.METRICS`, or name its file."""
    return lambda measure: Metric(measure, by, bounds, title, version, alone, contrast, of, aside, whole)


@metric("SimAOU")
def aou(seen: Compared) -> Tensor:
    return sim_aou(*seen.outputs)


@metric("SimAOU_norm")
def aou_norm(seen: Compared) -> Tensor:
    return sim_aou_norm(*seen.outputs)


@metric("SimBlock")
def block(seen: Compared) -> Tensor:
    return sim_aou(*(t.blocks[:, :, seen.position] for t in (seen.zero, seen.icl, seen.tuned)))


@metric("SimAM", of="trace")
def am(seen: Compared) -> Tensor:
    return seen.of_maps(sim_am, seen.icl, seen.tuned)


@metric("SimAM_Δ")
def am_delta(seen: Compared) -> Tensor:
    return seen.of_maps(sim_am_delta, seen.zero, seen.icl, seen.tuned)


@metric("contrast, outputs", contrast=True)
def contrast_aou(seen: Compared) -> Tensor:
    return cosine(*seen.contrasts("outputs"))


@metric("contrast, outputs, centred", contrast=True)
def contrast_aou_centred(seen: Compared) -> Tensor:
    return cosine(*map(centred, seen.contrasts("outputs")))


@metric("contrast, maps", contrast=True)
def contrast_am(seen: Compared) -> Tensor:
    return _contrast_of_maps(seen, lambda contrast: contrast)


@metric("contrast, maps, centred", contrast=True)
def contrast_am_centred(seen: Compared) -> Tensor:
    lengths = seen.lengths
    return _contrast_of_maps(seen, lambda contrast: centred_maps(contrast, lengths))


def _contrast_of_maps(seen: Compared, told: Callable[[Tensor], Tensor]) -> Tensor:
    """The mean over heads of the cosine of both contrasts, of each of them what is ``told``."""

    def measure(icl: Tensor, icl_wrong: Tensor, tuned: Tensor, tuned_wrong: Tensor) -> Tensor:
        read, learned = icl.double() - icl_wrong.double(), tuned.double() - tuned_wrong.double()
        return cosine(told(read), told(learned)).nanmean(-1)

    return seen.of_maps(measure, seen.icl, seen.icl_wrong, seen.tuned, seen.tuned_wrong)


@metric("contrast, blocks", contrast=True)
def contrast_block(seen: Compared) -> Tensor:
    return cosine(*seen.contrasts("blocks"))


@metric("contrast, blocks, centred", contrast=True)
def contrast_block_centred(seen: Compared) -> Tensor:
    return cosine(*map(centred, seen.contrasts("blocks")))


@metric("labels' share of the update", bounds=(0, float("inf")), contrast=True)
def label_share(seen: Compared) -> Tensor:
    """Of the learner that stands in ``tuned``, which may be reading itself."""
    zero, _, tuned = (part.double() for part in seen.outputs)
    whole = torch.linalg.vector_norm(tuned - zero, dim=-1)
    part = torch.linalg.vector_norm(seen.contrasts("outputs")[1], dim=-1)
    return torch.where(whole > 0, part / whole, torch.nan)


@metric("Kendall's τ", of="training")
def tau(seen: Compared) -> Tensor:
    """On the first queries, of which reading's context was kept; nan for what did not train."""
    read = seen.icl.context[:, :, seen.position]
    if seen.training is None:
        return torch.full(read.shape[:2], torch.nan, dtype=torch.float64, device=read.device)
    trained = [demo.to(read.device) for demo in seen.training.vectors[: len(seen.prompts.demos)]]
    tested = seen.tuned.vectors[: len(read), :, seen.position]
    return training_token_tau(read, seen.prompts.context_demos, tested, trained)


@metric("accuracy", "query", (0, 1), alone=True)
def accuracy(seen: Compared) -> Tensor:
    return right(seen.tuned.scores, seen.answers)


@metric("calibrated", "query", (0, 1), alone=True)
def calibrated(seen: Compared) -> Tensor:
    return right(batch_calibration(seen.tuned.scores), seen.answers)


@metric("contextually calibrated", "query", (0, 1), alone=True, aside=True)
def contextual(seen: Compared) -> Tensor:
    """nan where a template has no tokens without content: there is nothing to calibrate with."""
    if not len(seen.tuned.blanks):
        return seen.tuned.scores.new_full((len(seen.tuned.scores),), torch.nan)
    return right(contextual_calibration(seen.tuned.scores, seen.tuned.blanks), seen.answers)


@metric("agrees with icl", "query", (0, 1))
def agrees(seen: Compared) -> Tensor:
    return agreement(seen.icl.scores, seen.tuned.scores)


@metric("KL(icl ‖ it)", "query", (0, float("inf")))
def kl(seen: Compared) -> Tensor:
    return kl_divergence(seen.icl.scores, seen.tuned.scores)


ANY = (-float("inf"), float("inf"))


def _effects(seen: Compared) -> tuple[Scores, Scores]:
    """What happened to the label margins: in the learner, and in reading."""
    zero, icl, tuned = (trace.scores_here for trace in (seen.zero, seen.icl, seen.tuned))
    return effect(tuned, zero), effect(icl, zero)


def _whole(centred: bool) -> Callable[[Compared], Tensor]:
    return lambda seen: torch.from_numpy(whole(_effects(seen)[1], centred))


@metric("margins missed", "query", (0, float("inf")), version=2, whole=_whole(centred=True))
def margins_missed(seen: Compared) -> Tensor:
    """Of reading's effect on the label margins beyond the shift that queries share: 0 is reading, 1 doing nothing."""
    return torch.from_numpy(missed(*_effects(seen), centred=True))


@metric("margins recovered", "query", ANY, version=2, whole=_whole(centred=False))
def margins_recovered(seen: Compared) -> Tensor:
    return torch.from_numpy(recovered(*_effects(seen), centred=False))


@metric("without the mean shift", "query", ANY, version=2, whole=_whole(centred=True))
def margins_recovered_centred(seen: Compared) -> Tensor:
    return torch.from_numpy(recovered(*_effects(seen), centred=True))
