"""What is declared: sources that are known, needs that are true, readings that exist, and nothing heavy imported."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import iclgd
from iclgd.claims import kept as kept_
from iclgd.claims import pages
from iclgd.claims.claim import CLAIMS, TIERS, Read
from iclgd.claims.kept import FOLDER, kept, models_of
from iclgd.claims.ledger import Asked, cells_of, spec_of
from iclgd.claims.state import SECTIONS, STANDS
from iclgd.errors import Refusal
from iclgd.papers import PAPERS

OWN = pages.own()
EMBEDDED = {"sentiment", "kinds", "continents"}
READ: list[Read] = []  # what has been found to have cells


def test_there_are_130_claims_and_more():
    assert len(OWN) >= 130


@pytest.mark.parametrize("claim", OWN, ids=lambda claim: claim.name)
def test_a_claim_is_a_sentence_with_a_source_and_a_tier(claim):
    assert claim.says.endswith(".")
    assert claim.source.document in PAPERS
    assert claim.source.where
    assert claim.tier in TIERS
    assert claim.paper in PAPERS
    assert str(claim.expect)


@pytest.mark.parametrize("claim", OWN, ids=lambda claim: claim.name)
def test_what_a_claim_reads_exists_and_needs_what_it_says(claim):
    specs = [spec_of(read, Asked()) for read in claim.reads]
    for read in claim.reads:
        if read not in READ:  # many claims read the same study
            assert cells_of(read, Asked())
            READ.append(read)
    assert ("model" in claim.needs) == any("model" in type(spec).model_fields for spec in specs)
    tasks = {task for spec in specs for task in _tasks(spec) if not task.endswith(".json")}
    assert ("data" in claim.needs) == bool(tasks - EMBEDDED)


def _tasks(spec) -> tuple[str, ...]:
    if "model" not in type(spec).model_fields:  # a regression is no text
        return ()
    return (spec.task,) if isinstance(spec.task, str) else spec.task


def test_what_takes_seconds_needs_nothing():
    assert not [claim.name for claim in OWN if claim.tier == "seconds" and claim.needs]


def test_a_kept_verdict_is_of_a_claim_that_is_there():
    for path in FOLDER.glob("*.json"):
        assert set(json.loads(path.read_text(encoding="utf-8"))) <= {claim.name for claim in OWN}, path.name


def test_every_claim_that_takes_seconds_has_a_kept_verdict():
    assert not [claim.name for claim in OWN if claim.tier == "seconds" and kept(claim) is None]


def test_a_sentence_on_the_state_of_the_question_rests_on_claims_that_stand_as_it_says():
    for stand in STANDS:
        said = {CLAIMS[name].stands.split()[0] for name in stand.claims}
        wanted = "holds" if stand.section == "exact" else stand.section
        assert said == {wanted}, stand.says


def test_every_sentence_that_does_not_simply_hold_is_on_the_page_of_the_state():
    told = {name for stand in STANDS for name in stand.claims}
    assert not [claim.name for claim in OWN if claim.stands != "holds" and claim.name not in told]


@pytest.mark.parametrize("claim", OWN, ids=lambda claim: claim.name)
def test_a_sentence_holds_or_fails_only_if_every_model_that_was_asked_says_so(claim):
    """One that is decided on one embedded model, and otherwise or not at all on another, depends or is open."""
    found = [record["verdict"] for model in models_of(claim) if (record := kept(claim, model)) is not None]
    assert claim.stands not in ("holds", "fails") or set(found) <= {claim.stands}


@pytest.mark.parametrize("claim", OWN, ids=lambda claim: claim.name)
def test_a_sentence_can_be_read_alone(claim):
    """`claims show` and `--match` print it without the one before it."""
    assert claim.says.split()[0] not in {"It", "Its", "They", "Them", "Their", "Those", "These", "So", "And", "There"}
    assert not claim.says.startswith(("The same with", "The same on", "The two "))


def test_a_mean_over_tasks_is_said_to_be_over_tasks():
    for claim in OWN:
        if "data" in claim.needs and models_of(claim):  # of the papers' six tasks, and run
            tasks = claim.reads[0].fields["task"]
            found = [kept(claim, model)["findings"] for model in models_of(claim)]
            by_task = all(set(one) == set(tasks) for one in found)
            assert (claim.over == "seed") == by_task, claim.name
            assert {part["count"] for one in found for part in one.values()} == {5 if by_task else len(tasks)}


def test_a_line_of_the_state_says_how_many_of_its_claims_a_model_was_asked():
    lines = pages.answered(["state", "fails"]).splitlines()
    (ranks,) = [line for line in lines if "attention-ranks" in line]
    assert "(1 ✓ on gemma3-270m and smollm2-135m: " in ranks
    (cheap,) = [line for line in lines if "low-resource" in line]
    assert "(3 ✓, of them 2 on gemma3-270m, 2 on smollm2-135m: " in cheap
    (training,) = [line for line in lines if "is-training" in line]
    assert "(1 ✓ on gemma3-270m and smollm2-135m: " in training


def test_a_verdict_on_a_model_is_over_draws_where_chance_enters():
    """Queries of one draw say nothing of other draws; an identity has no chance in it."""
    assert not [claim.name for claim in OWN if claim.over == "query" and not getattr(claim.expect, "each", False)]


def test_what_is_called_exact_is_judged_seed_by_seed():
    for stand in STANDS:
        if stand.section == "exact":
            for name in stand.claims:
                expect = CLAIMS[name].expect
                assert all(part.each for part in getattr(expect, "parts", {"": expect}).values()), name


def test_a_sentence_of_which_no_claim_was_run_stands_among_the_open_ones(monkeypatch, tmp_path):
    asked = STANDS[0].claims[0].partition(".")[2]
    assert asked in pages.answered(["state", "exact"])
    monkeypatch.setattr(kept_, "FOLDER", tmp_path)  # nothing was ever run
    kept_._file.cache_clear()
    assert asked not in pages.answered(["state", "exact"])
    assert "Expected, not yet run (exact): A layer of linear attention" in pages.answered(["state", "open"])
    kept_._file.cache_clear()


def test_the_page_of_the_state_has_every_section():
    text = (Path(__file__).parents[2] / "docs/state.md").read_text(encoding="utf-8")
    for name, (title, means) in SECTIONS.items():
        assert f"## {title}\n\n{means}\n" in text
        assert f"<!-- fill ledger state {name} -->" in text


def test_the_page_of_the_state_takes_five_minutes_to_read():
    """At 250 words a minute; links to the evidence are followed, not read."""
    text = (Path(__file__).parents[2] / "docs/state.md").read_text(encoding="utf-8")
    text = re.sub(r"<!--.*?-->|\(\d+ [✓○].*\)$", "", text, flags=re.MULTILINE)
    assert 500 < len(re.findall(r"[^\W\d_][\w'-]*", text)) <= 1300


def test_every_link_to_a_claim_leads_to_its_entry():
    docs = Path(__file__).parents[2] / "docs"
    there = (docs / "claims.md").read_text(encoding="utf-8")
    for claim in OWN:
        assert there.count(f'<a id="{pages.anchor(claim.name)}"></a>') == 1


@pytest.mark.parametrize("words", [["nothing"], ["state", "nothing"], ["table", "nobody2020"]])
def test_a_block_that_asks_the_ledger_for_what_it_has_not_is_refused(words):
    with pytest.raises(Refusal):
        pages.answered(words)


def test_listing_all_claims_imports_nothing_heavy():
    code = (
        "import sys; from iclgd.cli import main; main(['claims'])\n"
        "heavy = {'torch', 'transformers', 'scipy', 'pandas', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    path = str(Path(iclgd.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stdout.splitlines()[-1].endswith(("as we say", "open", "not", "not run", "errors"))
