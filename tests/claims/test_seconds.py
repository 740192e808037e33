"""The claims that take seconds, run: what the ledger says is what is measured, and a planted fault turns it red."""

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from iclgd.claims.claim import CLAIMS
from iclgd.claims.kept import changed, kept
from iclgd.claims.ledger import run_claims
from iclgd.labs.dual.model import Dual
from iclgd.labs.dual.modified import Modification, Regularised, RegularisedSlide
from iclgd.learners import descent, layercausal
from iclgd.metrics import likeness, nulls, prediction
from iclgd.models import added, heads, last_token, replicas
from iclgd.papers import PAPERS
from iclgd.running import Where
from iclgd.small import construct, learners, recurrent
from iclgd.small.languages.automaton import Language

SECONDS = [name for name in CLAIMS if CLAIMS[name].tier == "seconds" and CLAIMS[name].paper in PAPERS]
ALLOWED = 60.0  # seconds of processor time, for all of them together
TAKEN: dict[str, float] = {}
STATES: dict[str, str] = {}  # of the claims that have run as they are


def by_cells(names: Sequence[str]) -> dict[str, list[str]]:
    """Claims that read the same cells first stand together, so that these run once."""
    groups: dict[str, list[str]] = {}
    for name in names:
        read = CLAIMS[name].reads[0]
        groups.setdefault(
            " ".join([read.lab, *(str(value) for name, value in read.fields.items() if name != "seeds")]), []
        ).append(name)
    return groups


GROUPS = by_cells(SECONDS)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("group", GROUPS)
def test_claims_that_take_seconds_are_as_the_ledger_says(tmp_path, group):
    start = time.process_time()
    rows = run_claims(GROUPS[group], Where(tmp_path))
    STATES.update({row.claim.name: row.state for row in rows})
    wrong = {row.claim.name: row.reason or row.judgement for row in rows if row.state != "as we say"}
    assert not wrong
    assert not {row.claim.name: why for row in rows if (why := changed(row, kept(row.claim), exactly=True))}
    TAKEN[group] = time.process_time() - start


def test_all_of_them_take_no_more_than_a_minute():
    """Of those that ran before, in this process: all, where the whole file was asked for."""
    assert sum(TAKEN.values()) < ALLOWED, TAKEN


def plant(monkeypatch: pytest.MonkeyPatch, original: Any, fault: Any) -> None:
    """Put a fault in a function's place, wherever in the package it was imported to."""
    for name, module in list(sys.modules.items()):
        if name.startswith("iclgd."):
            for attribute, value in list(vars(module).items()):
                if value is original:
                    monkeypatch.setattr(module, attribute, fault)


def minus(function: Callable) -> Callable:
    return lambda *given, **named: -function(*given, **named)


def _copies(zero, tuned, seed):
    return tuned.double()


def _backwards(dx, dy, rate, start=None):
    return original_layer(dx, dy, -rate, start)


def _one_more(x, y, steps, scale=None):
    return original_newton(x, y, steps + 1, scale)


def _no_penalty(keys, values, penalty):
    return original_mesa(keys, values, 1e-6)


def _whole_layer(subject, outputs, chosen):
    return original_written(subject, outputs, chosen.any(1, keepdim=True).expand_as(chosen))


original_outer, original_written = added.Outer.of, heads.written_by
original_layer, original_newton, original_mesa = construct.gd_layer, learners.newton, recurrent.mesa_weights
# what is planted → how, and claims of which at least one has to turn red
FAULTS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], tuple[str, ...]]] = {
    "a metric's sign": (
        lambda m: plant(m, likeness.cosine, minus(likeness.cosine)),
        ("deutch2023.simaou-is-a-direction",),
    ),
    "a learner that does nothing": (
        lambda m: m.setattr(replicas.Stacked, "descend", lambda self, gradients, sizes: None),
        ("deutch2023.size-follows-rate", "deutch2023.finetuning-learns"),
    ),
    "a null that copies the learner": (
        lambda m: plant(m, nulls.isotropic, _copies),
        ("dai2022.random-scores-nothing", "deutch2023.nulls-are-no-learner"),
    ),
    "a normalisation that is left out": (
        lambda m: plant(m, likeness.sim_aou_norm, likeness.sim_aou),
        ("deutch2023.noise-quarter",),
    ),
    "a constructed layer that climbs": (
        lambda m: plant(m, construct.gd_layer, _backwards),
        ("vonoswald2023.step-on-every-token", "vonoswald2023.k-layers-k-steps"),
    ),
    "a dual that forgets where it starts": (
        lambda m: m.setattr(Dual, "step", lambda self, rate=1.0: self.update(rate)),
        ("ren2024.thm31",),
    ),
    "a printed formula that is mended in silence": (
        lambda m: m.setattr(RegularisedSlide, "weights", Regularised.weights),
        ("ren2024.regularised-as-printed",),
    ),
    "a modification whose dual does nothing": (
        lambda m: m.setattr(Regularised, "dual", Modification.dual),
        ("ren2024.regularised",),
    ),
    "layer-causal training that sees deeper layers": (
        lambda m: m.setattr(layercausal.LayerCausal, "gradients", descent.GradientDescent.gradients),
        ("deutch2023.lcgd-is", "deutch2023.parallel-sum"),
    ),
    "a base rate of nothing": (
        lambda m: m.setattr(prediction.Recall, "base", property(lambda self: 0.0)),
        ("dai2022.rec2ftp-without-a-base-rate",),
    ),
    "one step too many": (lambda m: plant(m, learners.newton, _one_more), ("fu2023.newton-residual",)),
    "a penalty that is ignored": (
        lambda m: plant(m, recurrent.mesa_weights, _no_penalty),
        ("vonoswald2023b.mesa",),
    ),
    "a language that takes every word": (
        lambda m: m.setattr(Language, "accepts", lambda self, words: (words >= 0).all(-1)),
        ("languages2024.membership-is-decided",),
    ),
    "a patch that is a little too long": (
        lambda m: m.setattr(added.Outer, "of", lambda self, query: 1.01 * original_outer(self, query)),
        ("goldwaser2026.gated-blocks", "goldwaser2026.last-map-is-enough", "innocenti2025.any-block-with-norms"),
    ),
    "values that are not exchanged": (
        lambda m: m.setattr(last_token.Edits, "at", lambda self, layer, own: own),
        ("dai2022.through-attention", "hendel2023.last-state"),
    ),
    "heads that write their whole layer": (
        lambda m: plant(m, heads.written_by, _whole_layer),
        ("todd2024.heads-add-up",),
    ),
    "weights that are not restored": (
        lambda m: m.setattr(replicas, "_forward_as_before", lambda module: lambda: None),
        ("deutch2023.nulls-are-no-learner",),
    ),
}


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_turns_a_claim_red(tmp_path, monkeypatch, fault):
    put, names = FAULTS[fault]
    if not set(names) <= set(STATES):  # this test was asked for alone
        STATES.update({row.claim.name: row.state for row in run_claims(names, Where(tmp_path / "sound"))})
    assert [STATES[name] for name in names] == ["as we say"] * len(names)
    put(monkeypatch)
    assert [row for row in run_claims(names, Where(tmp_path / "faulty")) if row.state in ("not as we say", "error")]


def test_there_are_ten_faults_and_more():
    assert len(FAULTS) >= 10
