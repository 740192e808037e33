"""Metrics of planted traces: from which of them, at which position and over which axis each is taken."""

from dataclasses import replace

import pytest
import torch

from iclgd.metrics import compared
from iclgd.metrics.compared import Compared
from iclgd.metrics.likeness import centred, centred_maps, cosine
from iclgd.models.own import OwnLogits
from iclgd.models.traces import Trace, Training
from iclgd.prompts import Demo, Prompts

QUERIES, LAYERS, POSITIONS, HEADS, KEYS, DIM = 4, 3, 2, 5, 6, 7
LENGTHS = torch.tensor([[3, 4], [5, 6], [2, 3], [4, 5]])  # of a query's own keys at a position
DEMOS = (Demo((11, 12, 13), (13,)), Demo((14, 15), (15,)))
PROMPTS = Prompts((1,), DEMOS, (2,), tuple((5, 6) for _ in range(QUERIES)), ((13,), (15,)), (0, 1, 1, 0))


def planted(seed: int) -> Trace:
    drawn = torch.Generator().manual_seed(seed)

    def numbers(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=drawn, dtype=torch.float64)

    keys = torch.arange(KEYS) < LENGTHS[..., None]
    scores, outputs = numbers(QUERIES, 2), numbers(QUERIES, LAYERS, POSITIONS, DIM)
    own = OwnLogits.empty(LENGTHS[:, 1].tolist(), (LAYERS, POSITIONS, HEADS), torch.float64, torch.device("cpu"))
    own.scatter(numbers(QUERIES, LAYERS, POSITIONS, HEADS, KEYS) * keys[:, None, :, None], range(QUERIES))
    return Trace(
        scores=scores,
        outputs=outputs,
        own=own,
        keys=keys,
        context=numbers(2, LAYERS, POSITIONS, len(PROMPTS.context)),
        vectors=numbers(2, LAYERS, POSITIONS, DIM),
        blocks=numbers(QUERIES, LAYERS, POSITIONS, DIM),
        blanks=numbers(0, 2),
        answers=PROMPTS.answers,
    )


ZERO, ICL, TUNED, ICL_WRONG, TUNED_WRONG = map(planted, range(5))
SEEN = Compared(ZERO, ICL, TUNED, PROMPTS, icl_wrong=ICL_WRONG, tuned_wrong=TUNED_WRONG)


def test_traces_are_compared_at_the_prompts_last_token_unless_it_is_said_otherwise():
    for part, name in zip((ZERO, ICL, TUNED), SEEN.outputs, strict=True):
        assert torch.equal(name, part.outputs[:, :, 0])
    assert torch.equal(replace(SEEN, position=1).outputs[2], TUNED.outputs[:, :, 1])
    assert SEEN.lengths.tolist() == LENGTHS[:, 0].tolist()
    assert replace(SEEN, position=1).lengths.tolist() == LENGTHS[:, 1].tolist()


@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize("what", ["outputs", "blocks"])
def test_a_contrast_is_right_labels_minus_wrong_ones_of_reading_and_of_learning(what, position):
    read, learned = replace(SEEN, position=position).contrasts(what)
    for found, right, wrong in ((read, ICL, ICL_WRONG), (learned, TUNED, TUNED_WRONG)):
        assert torch.equal(found, (getattr(right, what) - getattr(wrong, what))[:, :, position])


@pytest.mark.parametrize("without", [{"icl_wrong": None}, {"tuned_wrong": None}])
def test_there_is_no_contrast_without_wrong_labels(without):
    with pytest.raises(AssertionError, match="traces with wrong labels"):
        replace(SEEN, **without).contrasts("outputs")


def test_contrasts_are_cosines_by_query_and_layer_and_of_maps_the_mean_over_heads():
    outputs, maps, blocks = (
        [(getattr(a, what) - getattr(b, what))[:, :, 0] for a, b in ((ICL, ICL_WRONG), (TUNED, TUNED_WRONG))]
        for what in ("outputs", "logits", "blocks")
    )
    lengths = LENGTHS[:, 0]
    wanted = {
        compared.contrast_aou: cosine(*outputs),
        compared.contrast_aou_centred: cosine(*map(centred, outputs)),
        compared.contrast_am: cosine(*maps).mean(-1),
        compared.contrast_am_centred: cosine(*(centred_maps(part, lengths) for part in maps)).mean(-1),
        compared.contrast_block: cosine(*blocks),
        compared.contrast_block_centred: cosine(*map(centred, blocks)),
    }
    for metric, values in wanted.items():
        torch.testing.assert_close(metric(SEEN), values, rtol=0, atol=1e-12)


def test_the_labels_share_is_nothing_to_divide_where_nothing_changed():
    still = replace(TUNED, outputs=torch.where(torch.arange(LAYERS)[:, None, None] == 1, ZERO.outputs, TUNED.outputs))
    share = compared.label_share(replace(SEEN, tuned=still))
    assert share.isnan().tolist() == [[False, True, False]] * QUERIES
    wanted = (still.outputs - TUNED_WRONG.outputs)[2, 0, 0].norm() / (still.outputs - ZERO.outputs)[2, 0, 0].norm()
    assert float(share[2, 0]) == pytest.approx(float(wanted))


def test_tau_is_of_what_trained_and_of_nothing_else():
    """Planted so that training ranks the five tokens as reading does, or the other way round."""
    columns = [place for span in PROMPTS.context_demos for place in span]
    vectors = torch.zeros(2, LAYERS, POSITIONS, DIM, dtype=torch.float64)
    vectors[..., 0] = 1
    context = torch.zeros(2, LAYERS, POSITIONS, len(PROMPTS.context), dtype=torch.float64)
    context[..., columns] = torch.tensor([3.0, 1.0, 2.0, 5.0, 4.0], dtype=torch.float64)
    tokens = torch.zeros(LAYERS, 5, DIM, dtype=torch.float64)
    tokens[..., 0] = torch.tensor([3.0, 1.0, 2.0, 5.0, 4.0], dtype=torch.float64)
    tokens[2] *= -1  # the last layer ranks them backwards
    training = Training((1.0,), torch.zeros(LAYERS, 2), (tokens[:, :3], tokens[:, 3:]), 1.0, None)
    seen = replace(SEEN, icl=replace(ICL, context=context), tuned=replace(TUNED, vectors=vectors))
    assert compared.tau(replace(seen, training=training)).tolist() == [[1.0, 1.0, -1.0]] * 2
    untrained = compared.tau(seen)
    assert untrained.shape == (2, LAYERS)
    assert untrained.isnan().all()


CENTRED = (compared.margins_missed, compared.margins_recovered_centred)


def margins(trace: Trace, label: int, of: int = 0) -> list[float]:
    """How much likelier a label is than another, by query."""
    return [float(row[label] - row[of]) for row in trace.scores]


def test_margins_of_two_labels_are_recovered_and_missed_as_their_differences_are():
    zero, icl, tuned = (margins(trace, 1) for trace in (ZERO, ICL, TUNED))
    wanted = [read - before for read, before in zip(icl, zero, strict=True)]
    found = [learned - before for learned, before in zip(tuned, zero, strict=True)]

    def share(found: list[float], wanted: list[float]) -> float:
        return sum(f * w for f, w in zip(found, wanted, strict=True)) / sum(w * w for w in wanted)

    def apart(values: list[float]) -> list[float]:
        return [value - sum(values) / len(values) for value in values]

    lost = [f - w for f, w in zip(apart(found), apart(wanted), strict=True)]
    missed = sum(x * x for x in lost) / sum(w * w for w in apart(wanted))
    assert float(compared.margins_recovered(SEEN).mean()) == pytest.approx(share(found, wanted), rel=1e-12)
    centred_share = share(apart(found), apart(wanted))
    assert float(compared.margins_recovered_centred(SEEN).mean()) == pytest.approx(centred_share, rel=1e-12)
    assert float(compared.margins_missed(SEEN).mean()) == pytest.approx(missed, rel=1e-12)


def test_what_shares_are_of_is_reading_s_squared_effect_query_by_query_centred_where_they_are():
    """Of two labels whose margin moves by w each moves by w / 2, one up and one down: w² / 2."""
    wanted = [read - before for read, before in zip(margins(ICL, 1), margins(ZERO, 1), strict=True)]
    mean = sum(wanted) / len(wanted)
    raw, apart = [w * w / 2 for w in wanted], [(w - mean) ** 2 / 2 for w in wanted]
    of_share = ((compared.margins_recovered, raw), *((one, apart) for one in CENTRED))
    for metric, expected in of_share:
        assert metric.whole is not None
        assert metric.whole(SEEN).tolist() == pytest.approx(expected, rel=1e-12)
    assert max(abs(a - b) for a, b in zip(raw, apart, strict=True)) > 0.01


def test_reading_itself_misses_nothing_and_doing_nothing_misses_all():
    for tuned, missed, brought in ((ICL, 0, 1), (ZERO, 1, 0)):
        seen = replace(SEEN, tuned=tuned)
        assert float(compared.margins_missed(seen).mean()) == pytest.approx(missed, abs=1e-12)
        for one in (compared.margins_recovered, compared.margins_recovered_centred):
            assert float(one(seen).mean()) == pytest.approx(brought, abs=1e-12)


def test_a_shift_that_all_queries_share_is_recovered_only_with_it():
    shift = torch.tensor([0.0, 0.7], dtype=torch.float64)
    seen = replace(SEEN, tuned=replace(ICL, scores=ICL.scores + shift))
    assert float(compared.margins_missed(seen).mean()) == pytest.approx(0, abs=1e-12)
    assert float(compared.margins_recovered_centred(seen).mean()) == pytest.approx(1)
    assert abs(float(compared.margins_recovered(seen).mean()) - 1) > 0.05


def test_where_reading_tells_no_query_from_another_there_is_nothing_to_miss():
    """Its effect is one shift and the rounding of float32: shares of that rounding would be any number."""
    zero = replace(ZERO, scores=ZERO.scores.float() * 10)
    read = replace(ICL, scores=zero.scores + torch.tensor([0.1, 1.7]))
    seen = replace(SEEN, zero=zero, icl=read)
    assert not torch.equal((read.scores - zero.scores)[0], (read.scores - zero.scores)[1])
    assert compared.margins_missed(seen).isnan().all()
    assert compared.margins_recovered_centred(seen).isnan().all()
    assert compared.margins_recovered(seen).isfinite().all()
    apart = replace(ICL, scores=read.scores + 1e-3 * torch.tensor([[1.0, 0], [0, 1], [1, 0], [0, 1]]))
    assert float(compared.margins_missed(replace(seen, icl=apart, tuned=zero)).mean()) == pytest.approx(1)
    still = replace(seen, icl=zero)
    assert compared.margins_recovered(still).isnan().all()
