"""What claims read from studies of `implicit`, `causal` and rivals in `compare`, on studies that take a moment."""

from dataclasses import replace

import numpy as np
import pytest

from iclgd.claims import reading_prompts
from iclgd.claims.claim import CLAIMS, Read
from iclgd.claims.ledger import run_claims
from iclgd.claims.pages import own
from iclgd.claims.studies import CAUSAL, IMPLICIT, RIVALS
from iclgd.lab import LABS
from iclgd.labs.causal.view import View as CausalView
from iclgd.labs.implicit.view import View
from iclgd.running import Where, run_study
from little import little_model, little_task

OF_PROMPTS = [claim.name for claim in own() if claim.reads[0].lab in ("implicit", "causal") or claim.reads[0] == RIVALS]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    made = tmp_path_factory.mktemp("readers")
    little_model(made / "tiny")
    little_task(made, "one")
    little_task(made, "other", ("red", "blue"))
    return made


def small(place, read: Read) -> Read:
    """The same cells of a tiny model and a little task."""
    given = {"model": str(place / "tiny"), "task": (str(place / "one.yaml"),), "k": 3, "queries": 4}
    given |= {name: read.fields[name] and 2 for name in ("seeds", "tokens") if name in read.fields}
    if read.lab != "compare":
        given["other"] = str(place / "other.yaml")
    given |= (
        {"calibration": (2,)} if read.lab == "implicit" else {"sets": 2, "heads": 2} if read.lab == "causal" else {}
    )
    return replace(read, fields={**read.fields, **given})


def study_of(place, read: Read):
    few = small(place, read)
    return run_study(few.lab, LABS[few.lab].spec.of(dict(few.fields)), Where(place / "cells"))


def test_every_claim_about_prompts_can_be_judged(place, monkeypatch):
    things = dict(CLAIMS._known)
    for name in OF_PROMPTS:
        things[name] = replace(CLAIMS[name], reads=tuple(small(place, read) for read in CLAIMS[name].reads))
    monkeypatch.setattr(CLAIMS, "_things", things)
    rows = run_claims(OF_PROMPTS, Where(place / "cells"))
    assert len(rows) >= 13
    for row in rows:
        assert row.state != "error", (row.claim.name, row.reason)
        for finding in row.judgement.findings.values():
            assert np.isfinite(finding.value), (row.claim.name, finding)


def test_what_is_missed_recovered_and_the_cosine_are_those_of_the_page(place):
    study = study_of(place, IMPLICIT)
    view = View(study)
    whole = {"patch": "matrix", "fitted": 2}
    for centred in (False, True):
        missed = view.missing("trained", centred, **whole).mean()
        found = reading_prompts.missed_less(centred)(study)
        assert found["less doing nothing"].mean == pytest.approx(missed - 1)
        alike = view.missing("trained", centred, patch="constant").mean()
        assert found["less one answer for all"].mean == pytest.approx(missed - alike)
    right, wrong = (view.recovery("trained", True, **whole, null=null).mean() for null in (None, "wrong labels"))
    assert reading_prompts.recovery_less("wrong labels")(study).mean == pytest.approx(right - wrong)
    arrays = study.arrays(quantity="cosine", patch="matrix", null=None)
    assert reading_prompts.patch_cosine(study).mean == pytest.approx(np.mean([one.values.mean() for one in arrays]))


def test_shares_and_what_is_left_are_those_of_the_page(place):
    study = study_of(place, CAUSAL)
    view = CausalView(study)
    found = reading_prompts.carried("gd", "icl")(study).mean
    (scores, icl, zero) = (
        study.arrays(quantity="scores", source="gd", into="zero-shot", site="attention", layers="all", null=None),
        study.arrays(quantity="scores", part="swaps", run="icl"),
        study.arrays(quantity="scores", part="swaps", run="zero-shot"),
    )
    sums = np.zeros(2)  # over both draws
    for one, two, base in zip(scores, icl, zero, strict=True):
        moved, wanted = ((x.values - base.values) @ np.array([-0.5, 0.5]) for x in (one, two))  # margins of two labels
        sums += (moved * wanted).sum(), (wanted * wanted).sum()
    np.testing.assert_allclose(found, sums[0] / sums[1], rtol=1e-5)
    left = {name: view.left(name).mean() for name in ("function vector", "induction")}
    np.testing.assert_allclose(
        reading_prompts.left_less("function vector", "induction")(study).mean,
        left["function vector"] - left["induction"],
    )
    random = view.random_left("induction").mean()
    np.testing.assert_allclose(reading_prompts.left_less("induction")(study).mean, left["induction"] - random)


def test_residuals_and_tokens_are_those_of_exact_cells(place):
    read = small(place, next(claim for claim in own() if claim.name == "goldwaser2026.fifty-tokens").reads[0])
    study = run_study("implicit", LABS["implicit"].spec.of(dict(read.fields)), Where(place / "cells"))
    assert reading_prompts.tokens_alike(study) == [1.0]
    assert len(reading_prompts.block_residuals(study)) == 3
    assert 0 < max(reading_prompts.block_residuals(study)) < 1e-4
