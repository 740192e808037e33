"""A study in a process of its own, and the rows that are printed of it."""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import iclgd
import toy

SOURCE = Path(iclgd.__file__).parents[1]


def rows(out: str) -> dict[str, list[str]]:
    return {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.strip()}


def started(place, *args, **environment):
    path = os.pathsep.join([str(SOURCE), str(Path(toy.__file__).parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", "import toy; from iclgd.cli import main; main()", *map(str, args)]
    surroundings = {**os.environ, "PYTHONPATH": path, **environment}
    heard = partial(signal.signal, signal.SIGINT, signal.default_int_handler)  # what runs in the background ignores it
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=place, env=surroundings, preexec_fn=heard, stdout=pipe, stderr=pipe, text=True)
