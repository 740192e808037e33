"""The benchmark on a little model: every way agrees with the plain one, and ours is faster by what it shares.

Ratios of processor time in one run, never seconds; the limits are far below what an idle machine shows.
"""

import json
import sys
import time
from pathlib import Path

import pytest
import torch

BENCHMARKS = str(Path(__file__).parents[2] / "benchmarks")
REPEATS = 3


@pytest.fixture(scope="module")
def bench():
    """The benchmark's modules, timed by this process's own work."""
    sys.path.insert(0, BENCHMARKS)
    threads = torch.get_num_threads()
    try:
        import long
        import subjects
        import traces
        import training

        def timed(work, _device, _repeats=3):
            taken = []
            for _ in range(REPEATS):
                began = time.process_time()
                work()
                taken.append(time.process_time() - began)
            return subjects.Timing(min(taken), None)

        torch.set_num_threads(1)
        traces.timed = training.timed = long.timed = timed
        yield subjects, traces, training, long
    finally:
        torch.set_num_threads(threads)
        sys.path.remove(BENCHMARKS)


@pytest.fixture(scope="module")
def tiny(bench):
    return bench[0].subject("tiny", "float32", "cpu")


def prompts(bench, context, queries, demos=4):
    return bench[0].random_prompts(bench[0].VOCABULARY["tiny"], context, 16, queries, demos)


def test_a_shared_prefix_makes_traces_several_times_faster_than_the_plain_port(bench, tiny):
    found = bench[1].compare(tiny, prompts(bench, 600, 32), 4, None, 1e-4)
    assert found["plain port"].seconds / found["iclgd"].seconds > 6  # the arithmetic's own ratio is 35


def test_peers_that_are_not_installed_are_named_and_every_way_says_how_many_tokens_it_took(
    bench, tiny, monkeypatch, capsys
):
    monkeypatch.setattr(bench[1], "find_spec", lambda _name: None)
    asked = prompts(bench, 129, 8)
    found = bench[1].compare(tiny, asked, 2, None, 1e-4)
    said = capsys.readouterr().out
    assert "TransformerLens is not installed" in said
    assert "nnsight is not installed" in said
    context, own = len(asked.context), len(asked.queries[0]) + 1
    assert found["plain port"].tokens == context + own
    for way in ("cache expanded per query", "iclgd", "iclgd, with metrics and nulls"):
        assert (
            found[way].tokens == context / 8 + own
        )  # of eight queries, though sixteen were allowed for the slower way


def test_a_long_context_is_encoded_about_as_fast_as_a_plain_pass_reads_it_once(bench, tiny):
    found = bench[3].compare(tiny, prompts(bench, 6_000, 32), None, 1e-4)
    assert found.encoding.seconds < 4 * found.plain.seconds  # 1.8 by the fused kernel, 5.8 with every score in memory
    assert found.plain.seconds * 32 > 6 * (found.encoding.seconds + found.queries.seconds)


def test_a_long_context_that_gives_other_numbers_gets_no_timing(bench, tiny, monkeypatch):
    asked = prompts(bench, 60, 2)
    wrong = bench[3].plain(tiny, asked) * 1.01
    monkeypatch.setattr(bench[3], "plain", lambda *_: wrong)
    with pytest.raises(SystemExit, match=f"{len(asked.context)} tokens: iclgd and a plain pass differ by 0.0"):
        bench[3].compare(tiny, asked, None, 1e-4)


def test_many_finetunings_at_once_are_faster_than_one_after_another(bench, tiny):
    found = bench[2].compare(tiny, prompts(bench, 80, 2), 8, 1e-3)
    for kind in ("gd", "lcgd"):
        assert found[kind, "plain loop"].seconds / found[kind, "8 at once"].seconds > 1.5
        assert found[kind, "1 at once"].seconds / found[kind, "8 at once"].seconds > 1.5


def test_a_way_that_gives_other_numbers_gets_no_timing(bench, tiny, monkeypatch):
    asked = prompts(bench, 60, 2)
    wrong = bench[1].plain(tiny, asked) * 1.01
    monkeypatch.setattr(bench[1], "expanded", lambda *_: wrong)
    with pytest.raises(SystemExit, match="cache expanded per query and the plain port differ by 0.01"):
        bench[1].compare(tiny, asked, 2, None, 1e-4)


def test_a_record_is_what_was_shown_with_the_command_that_repeats_it(bench, tmp_path, monkeypatch, capsys):
    from record import Record

    file = tmp_path / "found.json"
    monkeypatch.setattr(sys, "argv", ["somewhere/bench.py", "--data", "/a", "--store", "/b", "--out", str(file)])
    record = Record("Speed", "a machine")
    record.add("Traces", ["way", "s"], [["ours", "1"]])
    record.write(file)
    found = json.loads(file.read_text())
    assert found["command"] == "python benchmarks/bench.py --data DIR --store FOLDER"
    assert found["sections"] == [{"title": "Traces", "table": {"header": ["way", "s"], "rows": [["ours", "1"]]}}]
    assert "| ours | 1 |" in capsys.readouterr().out
