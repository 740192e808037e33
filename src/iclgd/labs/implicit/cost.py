"""What a cell of `implicit` costs before any was run: its passes, in multiplications and additions."""

from collections.abc import Iterator, Sequence

from iclgd.lab import Cell
from iclgd.labs.implicit.alike import NOISE, OF_READING, OF_TRAINING
from iclgd.labs.implicit.ground import OWN, READ, Asked, Demos, Ground
from iclgd.labs.implicit.run import NULLS_READ, SCORED, TRAINED, depths
from iclgd.labs.implicit.spec import ExactCell, ImplicitCell, StaticCell, TrainedCell
from iclgd.labs.implicit.weights import ROUNDS, SPARE
from iclgd.learners.descent import GradientDescent
from iclgd.models.arithmetic import PRODUCT, WIDE, Arithmetic, Unloaded
from iclgd.models.patches import FORMS
from iclgd.prompts import Ids, build_prompts
from iclgd.tools import Tools, silent


def flops(cell: Cell, tools: Tools) -> float:
    """What cells of an episode share (readings, fits of the last count) is counted with the patches for all queries."""
    spec = cell.spec
    assert isinstance(spec, ImplicitCell)
    subject = tools.shared(("unloaded", spec.model.name), lambda: Unloaded(spec.model))
    episode, other = (tools.episode(task, spec.episode) for task in (spec.task, spec.other))
    if isinstance(spec, ExactCell):
        prompts = build_prompts(subject.tokenizer, episode, spec.prompt, subject.room)
        wide = WIDE if spec.precision == "float64" else 1
        return wide * sum(_exact(spec, subject.cost, prompts.bos, prompts.context, prompts.queries))
    assert isinstance(spec, StaticCell | TrainedCell)
    ground = Ground(subject, episode, other, spec.prompt, spec.episode.seed, spec.calibration[-1], silent)
    if isinstance(spec, StaticCell):
        return sum(_static(spec, ground, subject.cost))
    return sum(_trained(spec, ground, subject.cost))


def _read(cost: Arithmetic, texts: Sequence[Ids], context: int = 0) -> float:
    return cost.read(map(len, texts), context, rows=len(texts))


def _fit(cost: Arithmetic, texts: Sequence[Ids]) -> float:
    """A pass in which every last map is solved for at the last tokens, and gives what it has to at all of them."""
    return _read(cost, texts) + PRODUCT * cost.trained["down"] * (len(texts) + sum(map(len, texts)))


def _static(spec: StaticCell, ground: Ground, cost: Arithmetic) -> Iterator[float]:
    """Readings with and without demonstrations; every fit, and what it gives on the queries held out."""
    read: tuple[tuple[Demos, Asked], ...] = (
        *(("right", "held"), ("right", "calibration"), ("right", "others")),
        *(("wrong", "held"), ("wrong", "calibration"), ("other task", "calibration"), ("filler", "calibration")),
    )
    contexts = {demos: len(ground.prompts[demos].context) for demos in ("right", *NULLS_READ.values())}
    yield sum(cost.read([length]) for length in contexts.values())
    yield sum(_read(cost, ground.queries[asked], contexts[demos]) for demos, asked in read)
    calibration, held, others = (ground.whole(asked) for asked in ("calibration", "held", "others"))
    yield sum(_read(cost, texts) for texts in (calibration, held, others))
    for count in spec.calibration:
        kinds = 2 + sum(rank < count for rank in spec.ranks)
        yield kinds * (_fit(cost, calibration[:count]) + _read(cost, held))
    parts = len(depths(cost.layers)) * spec.depth
    fits = len(NULLS_READ) + parts  # random matrices and the first part of a patch are not fitted
    yield fits * _fit(cost, calibration) + (fits + 1 + parts) * _read(cost, held) + 2 * _read(cost, others)


def _trained(spec: TrainedCell, ground: Ground, cost: Arithmetic) -> Iterator[float]:
    """Trainings, some of them asked; own patches behind what is read; matrices compared."""
    learner = GradientDescent(trains="down")
    for demos in TRAINED:
        steps = learner.course(ground.prompts[demos])
        yield sum(cost.train("down", len(step.ids), len(step.targets)) for step in steps)
    yield len(SCORED) * (_read(cost, ground.whole("calibration")) + _read(cost, ground.whole("held")))
    yield _read(cost, ground.queries["held"], len(ground.prompts["filler"].context))
    held, weights = ground.whole("held")[:OWN], cost.trained["down"]
    yield len(READ) * _fit(cost, held)
    nulls = (*OF_TRAINING, *OF_READING, NOISE)
    contrasts = 3  # of training, on other demonstrations, and noise
    products = 1 + len(nulls) + 2 * contrasts  # of own patches with a change; a contrast has two patches
    yield WIDE * PRODUCT * weights * len(held) * products
    changes = len(READ) + 1 + len(OF_TRAINING) + 1 + contrasts  # patches, trainings, noise; labels' part: one is noise
    yield PRODUCT * weights * (spec.ranks[-1] + SPARE) * 2 * (ROUNDS + 1) * changes


def _exact(spec: ExactCell, cost: Arithmetic, bos: Ids, context: Ids, queries: Sequence[Ids]) -> Iterator[float]:
    """Patches of every form and what is left with each; generation, behind the prompt and patched; settling."""
    texts = [bos + query for query in queries]
    yield cost.read([len(context)]) + _read(cost, queries, len(context)) + _read(cost, texts)
    yield len(FORMS) * _fit(cost, texts) + (len(FORMS) + 1) * _read(cost, texts)
    grown = [queries[0] + (0,) * count for count in range(spec.tokens)]
    yield 2 * (cost.read([len(context)]) + _read(cost, grown, len(context)))
    yield _fit(cost, [bos + text for text in grown]) + _read(cost, [bos + text for text in grown])
    if spec.settling:
        sizes = [2**p for p in range(1, (len(context) - 1).bit_length()) if len(bos) < 2**p < len(context)]
        for size in sizes:
            yield 2 * (cost.read([size]) + _read(cost, queries[:1], size) + _fit(cost, texts[:1]))
