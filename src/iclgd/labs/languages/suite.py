"""The whole set: the document's three languages with every kind of label, negative and code, and random languages."""

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

from iclgd.labs.languages.run import Experiment, Result, run, usual
from iclgd.small.languages.expressions import BUILT_IN
from iclgd.small.languages.prepare import Data, prepare
from iclgd.small.languages.words import NEGATIVES

DOCUMENT = tuple(BUILT_IN[f"document-{i}"] for i in (1, 2, 3))


def experiments(seeds: int, seed: int = 0, shrink: int = 1) -> list[Experiment]:
    """Every cell of the set; ``shrink`` divides steps and numbers of languages, for a trial run."""

    def cell(language: str, **given: Any) -> Experiment:
        given = usual(given["labels"], given["encoder"]) | given
        made = Experiment(language=language, seed=seed, seeds=seeds, **given)
        return replace(
            made,
            steps=max(1, made.steps // shrink),
            encoder_steps=max(1, made.encoder_steps // shrink),
            languages=max(10, made.languages // shrink),
        )

    cells = [
        cell(language, encoder=encoder, negatives=negatives, labels=labels, start=start)
        for encoder in ("autoencoder", "pca")
        for negatives in NEGATIVES
        for language in DOCUMENT
        for labels, start in (("fixed", "random"), ("sign", "gd"))
    ]
    for language in DOCUMENT:
        cells += [cell(language, encoder="pca", labels="fixed", start="gd")]
        cells += [cell(language, encoder=encoder, labels="sign", start="random") for encoder in ("autoencoder", "pca")]
        cells += [cell(language, encoder="pca", labels="sign", layers=2, start="gd", rate=0.01)]
        cells += [cell(language, encoder="end-to-end", labels=labels, steps=1500) for labels in ("fixed", "sign")]
    cells += [
        cell("random", encoder=encoder, labels="language", start="gd", min_length=low, max_length=8)
        for encoder, low in (("autoencoder", 8), ("pca", 8), ("pca", 1))
    ]
    return cells


def run_all(cells: list[Experiment], jobs: int, done: Callable[[int], None]) -> list[Result]:
    """Run every cell, ``jobs`` at a time; cells with the same words and codes share them. In the order given."""
    groups: dict[Data, list[Experiment]] = {}
    for cell in sorted(cells, key=lambda cell: cell.language != "random"):  # the longest first: no core waits for them
        groups.setdefault(cell.data, []).append(cell)
    results: dict[Experiment, Result] = {}
    for batch in _batches(list(groups.values()), jobs):
        results |= {result.experiment: result for result in batch}
        done(len(batch))
    return [results[cell] for cell in cells]


def _batches(groups: list[list[Experiment]], jobs: int) -> Iterator[list[Result]]:
    if jobs == 1:
        yield from map(run_group, groups)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(run_group, groups)


def run_group(cells: list[Experiment]) -> list[Result]:
    """Cells that share words and codes."""
    prepared = prepare(cells[0].data)
    return [run(cell, prepared) for cell in cells]
