"""Likeness of what is predicted: accuracy, calibrated accuracy, agreement, KL divergence, Rec2FTP."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

LabelScores = Float[Tensor, "query label"]  # log-probabilities of the label words


def probabilities(scores: LabelScores) -> LabelScores:
    """The distribution over label words."""
    return scores.double().softmax(-1)


def contextual_calibration(scores: LabelScores, blanks: Float[Tensor, "blank label"]) -> LabelScores:
    """log p − log p̄ on queries without content (Zhao et al. 2021): what the model answers when asked nothing."""
    return scores.double().log_softmax(-1) - probabilities(blanks).mean(0).log()


def batch_calibration(scores: LabelScores) -> LabelScores:
    """log p − log p̄ over the queries themselves (Zhou et al. 2023): what the model answers whatever it is asked."""
    return scores.double().log_softmax(-1) - probabilities(scores).mean(0).log()


def right(scores: LabelScores, answers: Int[Tensor, " query"]) -> Bool[Tensor, " query"]:
    return scores.argmax(-1) == answers.to(scores.device)


def agreement(a: LabelScores, b: LabelScores) -> Bool[Tensor, " query"]:
    """Where two predictors choose the same label."""
    return a.argmax(-1) == b.argmax(-1)


def kl_divergence(a: LabelScores, b: LabelScores) -> Float[Tensor, " query"]:
    """KL(a ‖ b) of the distributions over label words, in nats."""
    log_a, log_b = a.double().log_softmax(-1), b.double().log_softmax(-1)
    return (log_a.exp() * (log_a - log_b)).sum(-1)


@dataclass(frozen=True)
class Recall:
    """Rec2FTP: of the queries that finetuning corrected, how many reading corrected too (Dai 2022, §4.2).

    The base rate is what any learner as good as ICL would score: of all the queries that zero-shot had wrong, how
    many reading corrected. The papers give no base rate; the score means little without it.
    """

    both: int  # zero-shot wrong, finetuned right, ICL right
    corrected: int  # zero-shot wrong, finetuned right
    base_both: int  # zero-shot wrong, ICL right
    base_wrong: int  # zero-shot wrong

    @property
    def rate(self) -> float:
        return self.both / self.corrected if self.corrected else float("nan")

    @property
    def base(self) -> float:
        return self.base_both / self.base_wrong if self.base_wrong else float("nan")


def rec2ftp(zero: LabelScores, icl: LabelScores, tuned: LabelScores, answers: Int[Tensor, " query"]) -> Recall:
    """The counts behind Rec2FTP and its base rate."""
    wrong = ~right(zero, answers)
    fixed_by_icl, fixed_by_tuning = wrong & right(icl, answers), wrong & right(tuned, answers)
    counts = (fixed_by_icl & fixed_by_tuning, fixed_by_tuning, fixed_by_icl, wrong)
    return Recall(*torch.stack(counts).count_nonzero(1).tolist())
