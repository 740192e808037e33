"""Real data sets, where they are: ICLGD_DATA, or ../shared/data beside the repository."""

import os
from pathlib import Path

import pytest

_named = os.environ.get("ICLGD_DATA")
FOLDER = Path(_named) if _named else Path(__file__).parents[2] / "shared" / "data"

needs_data = pytest.mark.skipif(
    not (FOLDER / "meta.json").is_file(),
    reason="no real data sets here: set ICLGD_DATA to the folder that holds them and their meta.json",
)
