"""A comparison as large as people run: 6 tasks, 3 seeds, 5 rates, 3 learners, on a model of 30 layers and 9 heads."""

import numpy as np

from iclgd.lab import Cell
from iclgd.labs.compare.spec import CompareSpec
from iclgd.metrics import METRICS
from iclgd.report.explorer import Episode
from iclgd.results import Array, Result, array
from iclgd.study import Study

QUERIES, LAYERS, HEADS, TOKENS, OWN = 100, 30, 9, 180, 20
LOOKED = 12
FIELDS = {
    "task": "sentiment,kinds,continents,sst2,mr,subj",
    "seeds": 3,
    "rates": [1e-4, 3e-4, 1e-3, 3e-3, 1e-2],
    "learners": "gd,lcgd,lcgd-paper",
    "floor": False,
}


def large() -> Study:
    spec = CompareSpec.of({"model": "smollm2-135m", **FIELDS})
    cells = spec.cells()
    results = {str(i): _result(cell, np.random.default_rng(i)) for i, cell in enumerate(cells)}
    return Study("compare", spec, cells, list(results), results)


def _result(cell: Cell, random: np.random.Generator) -> Result:
    facts = {"demonstrations": 8, "queries": QUERIES, "labels": ["bad", "good"]}
    if "versus" in cell.labels:
        return Result(facts, [_by_layer(random, "alpha")])
    trained = cell.labels["init"] == "trained"
    scores = array(np.log(random.dirichlet([1, 1], QUERIES)), "query", "label", quantity="scores")
    if "learner" not in cell.labels:
        arrays = [Array({**scores.labels, "learner": who}, scores.axes, scores.values) for who in ("zero-shot", "icl")]
        for who in ("zero-shot", "icl"):
            arrays.append(array(random.integers(0, 2, QUERIES).astype(float), "query", metric="accuracy", learner=who))
        if trained:
            facts["looked"] = _texts()
            arrays += [_bytes(random, OWN, "own attention", learner=who) for who in ("zero-shot", "icl")]
            arrays += [_bytes(random, TOKENS, what, learner="icl") for what in ("attention", "contribution")]
        return Result(facts, arrays)
    nulls = [None, *(choice.label for choice in cell.spec.nulls)]
    arrays = [scores] + ([_bytes(random, OWN, "own attention")] if trained else [])
    arrays.append(array(np.linspace(3, 2, 8), "step", quantity="loss"))
    arrays.append(array(random.uniform(0.1, 1, LAYERS), "layer", quantity="weight change"))
    for choice in cell.spec.metrics:
        for null in nulls:
            labels = {"null": null} if null else {}
            if METRICS[choice.name].by == "layer":
                arrays.append(_by_layer(random, choice.label, **labels))
            elif not null:
                right = random.integers(0, 2, QUERIES).astype(float)
                arrays.append(array(right, "query", metric=choice.label))
    return Result(facts, arrays)


def _by_layer(random: np.random.Generator, metric: str, **labels: str) -> Array:
    values = np.clip(0.1 + 0.1 * random.standard_normal((2, QUERIES, LAYERS), dtype=np.float32), -1, 1)
    if metric == "label-share":
        values = np.abs(values)
    where = {"position": ("prompt", "label")}
    return array(values, "position", "query", "layer", coordinates=where, metric=metric, **labels)


def episode() -> Episode:
    """All queries of one draw, as the explorer has them."""
    random, everyone = np.random.default_rng(0), ("zero-shot", "icl", "gd 0.001")
    return Episode(
        title="sentiment",
        texts=_texts(QUERIES),
        labels=["bad", "good"],
        scores={who: np.log(random.dirichlet([1, 1], QUERIES)) for who in everyone},
        own={who: _shares(random, QUERIES, OWN) for who in everyone},
        attention=_shares(random, QUERIES, TOKENS),
        contribution=_shares(random, QUERIES, TOKENS),
        alike={"gd 0.001": random.uniform(-1, 1, (QUERIES, LAYERS))},
    )


def _shares(random: np.random.Generator, queries: int, keys: int) -> np.ndarray:
    return np.round(255 * np.sqrt(random.dirichlet([0.2] * keys, (queries, LAYERS, HEADS)))).astype(np.uint8)


def _bytes(random: np.random.Generator, keys: int, quantity: str, **labels: str) -> Array:
    return array(_shares(random, LOOKED, keys), "query", "layer", "head", "key", quantity=quantity, **labels)


def _texts(queries: int = LOOKED) -> dict[str, object]:
    demo = [f" word{i}" for i in range(17)]
    texts = {"start": ["<s>"], "demos": [demo] * 8, "label_tokens": [1] * 8, "separator": ["\n", "\n", "\n"]}
    return texts | {"queries": [[f" q{i}" for i in range(OWN - 1)]] * queries, "answers": [0] * queries}
