"""Two little tasks for every cell of `causal`."""

from pathlib import Path

import pytest

from little import little_task


@pytest.fixture(scope="package")
def tasks(tmp_path_factory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("causal")
    return little_task(folder), little_task(folder, "other", ("red", "blue"))
