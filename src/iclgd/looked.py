"""What a cell keeps of its first queries so that a page can show them token by token (iclgd.models.looks says what)."""

from typing import Any

from iclgd.bench import Bench
from iclgd.learners.prompted import InContext
from iclgd.models.looks import how_many, look, own_attention, texts_of
from iclgd.models.traces import Trace
from iclgd.results import Array, array

AXES = ("query", "layer", "head", "key")
ATTENTION, CONTRIBUTION, OWN_ATTENTION = "attention", "contribution", "own attention"


def looked(bench: Bench) -> tuple[list[Array], dict[str, Any]]:
    """Where reading attends, head by head, what every token contributes, and the texts of all tokens."""
    count = how_many(bench.subject, bench.prompts)
    with InContext().learn(bench.subject, bench.prompts) as predictor:
        found = look(predictor, bench.prompts, count)
    arrays = [looked_after(bench, trace, learner=who) for who, trace in (("zero-shot", bench.zero), ("icl", bench.icl))]
    if found is not None:
        arrays.append(array(found.weights, *AXES, quantity=ATTENTION, learner="icl"))
        arrays.append(array(found.terms, *AXES, quantity=CONTRIBUTION, learner="icl"))
    return arrays, texts_of(bench.subject.tokenizer, bench.prompts, count)


def looked_after(bench: Bench, trace: Trace, **labels: str) -> Array:
    """Attention among the query's own tokens, of a learner's trace."""
    values = own_attention(trace, how_many(bench.subject, bench.prompts))
    return array(values, *AXES, quantity=OWN_ATTENTION, **labels)
