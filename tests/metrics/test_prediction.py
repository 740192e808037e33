"""What is predicted, against loops: calibrations, agreement, divergence, and the counts behind Rec2FTP."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from iclgd.metrics.prediction import (
    Recall,
    agreement,
    batch_calibration,
    contextual_calibration,
    kl_divergence,
    probabilities,
    rec2ftp,
    right,
)

QUICK = settings(max_examples=40, deadline=None)
seeds, sizes = st.integers(0, 2**31), st.integers(1, 12)


def scores(seed: int, queries: int, labels: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).normal(-3, 2, (queries, labels))


def plain_probabilities(row) -> list[float]:
    weights = [math.exp(x - max(row)) for x in row]
    return [w / sum(weights) for w in weights]


def plain_calibration(rows, asked) -> np.ndarray:
    """log p minus the logarithm of the mean p over ``asked``."""
    many = [plain_probabilities(row) for row in asked]
    mean = [sum(p[label] for p in many) / len(many) for label in range(rows.shape[1])]
    return np.array([[math.log(p / m) for p, m in zip(plain_probabilities(row), mean, strict=True)] for row in rows])


@QUICK
@given(seeds, sizes, sizes)
def test_calibrations_divide_by_the_mean_distribution_over_blanks_or_over_the_queries(seed, queries, blanks):
    asked, empty = scores(seed, queries), scores(seed + 1, blanks)
    contextual = contextual_calibration(torch.from_numpy(asked), torch.from_numpy(empty))
    np.testing.assert_allclose(contextual.numpy(), plain_calibration(asked, empty), atol=1e-9)
    np.testing.assert_allclose(
        batch_calibration(torch.from_numpy(asked)).numpy(), plain_calibration(asked, asked), atol=1e-9
    )


def test_calibration_finds_what_a_lean_to_one_label_hides():
    lean = torch.tensor([5.0, 0.0])
    signal = torch.tensor([[0.4, -0.4], [-0.4, 0.4], [0.3, -0.3], [-0.3, 0.3]])
    answers = torch.tensor([0, 1, 0, 1])
    assert right(signal + lean, answers).tolist() == [True, False, True, False]
    assert right(batch_calibration(signal + lean), answers).all()
    assert right(contextual_calibration(signal + lean, lean[None]), answers).all()


@QUICK
@given(seeds, sizes)
def test_kl_divergence_is_scipys(seed, queries):
    a, b = scores(seed, queries), scores(seed + 1, queries)
    wanted = [stats.entropy(plain_probabilities(p), plain_probabilities(q)) for p, q in zip(a, b, strict=True)]
    found = kl_divergence(torch.from_numpy(a), torch.from_numpy(b))
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-9)
    assert (found >= -1e-12).all()
    assert kl_divergence(torch.from_numpy(a), torch.from_numpy(a) + 2).abs().max() < 1e-12


def test_kl_divergence_of_a_certain_prediction_is_finite():
    certain, sure_of_the_other = torch.tensor([[0.0, -200.0]]), torch.tensor([[-200.0, 0.0]])
    assert kl_divergence(certain, sure_of_the_other).item() == pytest.approx(200)
    assert probabilities(certain).sum().item() == pytest.approx(1)


def test_agreement_is_the_same_choice_whether_right_or_wrong():
    a, b = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), torch.tensor([[3.0, 2.0], [0.0, 1.0], [0.0, 9.0]])
    assert agreement(a, b).tolist() == [True, False, True]


@QUICK
@given(seeds, st.integers(1, 30))
def test_rec2ftp_counts_what_a_loop_counts(seed, queries):
    random = np.random.default_rng(seed)
    zero, icl, tuned = (random.standard_normal((queries, 2)) for _ in range(3))
    answers = random.integers(0, 2, queries)
    both = corrected = base_both = wrong = 0
    for q in range(queries):
        z, i, t = (int(np.argmax(trace[q])) == int(answers[q]) for trace in (zero, icl, tuned))
        wrong += not z
        base_both += not z and i
        corrected += not z and t
        both += not z and i and t
    found = rec2ftp(*(torch.from_numpy(x) for x in (zero, icl, tuned, answers)))
    assert found == Recall(both, corrected, base_both, wrong)
    assert found.rate == pytest.approx(both / corrected if corrected else math.nan, nan_ok=True)
    assert found.base == pytest.approx(base_both / wrong if wrong else math.nan, nan_ok=True)


def test_recall_of_nothing_is_undefined_and_not_zero():
    assert math.isnan(Recall(0, 0, 0, 0).rate)
    assert math.isnan(Recall(0, 0, 0, 0).base)
    assert Recall(0, 2, 0, 3).rate == 0
