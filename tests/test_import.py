"""What `import iclgd` does by itself."""

import os
import subprocess
import sys

import pytest

SAYS = "import iclgd, os, sys; print(os.environ.get('GOMP_SPINCOUNT'), 'torch' in sys.modules)"
WAITS = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")


@pytest.mark.parametrize(
    ("set_before", "found"),
    [({}, "5000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, "None")],
)
def test_threads_spin_for_a_short_time_unless_something_else_was_asked_for_and_torch_is_not_there_yet(
    set_before, found
):
    around = {name: value for name, value in os.environ.items() if name not in WAITS} | set_before
    said = subprocess.run([sys.executable, "-c", SAYS], env=around, capture_output=True, text=True, check=True)
    assert said.stdout.split() == [found, "False"]
