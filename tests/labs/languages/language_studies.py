"""Studies of the languages lab in memory: run small, or planted with numbers whose page is known."""

from iclgd.labs.languages.reading import readings
from iclgd.labs.languages.run import together
from iclgd.labs.languages.spec import RunSpec
from iclgd.results import Result, array
from iclgd.study import Study
from iclgd.tools import Tools

SMALL = {"language": "((a|b)c)*", "encoder": "pca", "seeds": 2}


def study_of(spec, results, lab="languages run"):
    cells = spec.cells()
    keys = [str(i) for i in range(len(cells))]
    return Study(lab, spec, cells, keys, dict(zip(keys, results, strict=True)))


def run_reading(**given):
    """The reading of a study that is run here and kept in memory."""
    spec = RunSpec.of(SMALL | given)
    (reading,) = readings(study_of(spec, list(together(spec.cells(), Tools()))))
    return reading


def planted(seed, learners, facts=None, more=()):
    """A result with these numbers: {learner: {quantity or (quantity, shuffled): number by seed}}."""
    arrays = list(more)
    for name, row in learners.items():
        for what, values in row.items():
            quantity, shuffled = what if isinstance(what, tuple) else (what, False)
            value = values[seed] if isinstance(values, list) else values
            arrays.append(array(value, part="learner", learner=name, quantity=quantity, shuffled=shuffled))
    return Result(
        facts or {"members": ["ac"], "others": ["ab"], "words": {"training": 9, "shown": 4, "asked": 3}}, arrays
    )


def planted_study(learners, seeds=3, more=lambda seed: (), facts=None, **given):
    spec = RunSpec.of(SMALL | {"seeds": seeds} | given)
    return study_of(spec, [planted(i, learners, facts, more(i)) for i in range(len(spec.seeds))])
