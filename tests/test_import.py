"""What `import iclgd` does by itself."""

import os
import subprocess
import sys

import pytest

SAYS = "import iclgd, os, sys; print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules)"


@pytest.mark.parametrize(("set_before", "found"), [(None, "passive"), ("active", "active")])
def test_threads_wait_asleep_unless_something_else_was_asked_for_and_torch_is_not_there_yet(set_before, found):
    around = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    if set_before is not None:
        around["OMP_WAIT_POLICY"] = set_before
    said = subprocess.run([sys.executable, "-c", SAYS], env=around, capture_output=True, text=True, check=True)
    assert said.stdout.split() == [found, "False"]
