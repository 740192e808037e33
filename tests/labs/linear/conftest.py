"""Tuning every learner takes seconds, and few tests are about it: the others rank three."""

import pytest

from iclgd.small import references


@pytest.fixture(autouse=True, scope="module")
def few_candidates(request):
    def few(task, sample):
        builders = (references.gd, references.averaging, references.neighbours)
        return {name: p for build in builders for name, p in build(task, sample, 1).items()}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("iclgd.labs.linear.exam.candidates", few)
        yield
