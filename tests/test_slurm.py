"""The recipes for Slurm, run dry: `sbatch`, `srun` and `scontrol` are stand-ins that do their work on this machine."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import iclgd
import toy

SLURM = Path(__file__).parents[1] / "examples" / "slurm"
SOURCE = Path(iclgd.__file__).parents[1]
STANDINS = {
    # an array job after another; what a job gets from its options and from Slurm
    "sbatch": "first=0; last=0; nodes=1\n"
    'while [[ "$1" == --* ]]; do case "$1" in --array=*) a="${1#*=}"; first="${a%-*}"; last="${a#*-}";;\n'
    '  --nodes=*) nodes="${1#*=}";; esac; shift; done\n'
    'export SLURM_JOB_NUM_NODES="$nodes" SLURM_CPUS_PER_TASK=1 SLURM_JOB_NODELIST=nodes\n'
    'for task in $(seq "$first" "$last"); do SLURM_ARRAY_TASK_ID="$task" bash "$@" || exit $?; done\n',
    # a step has the cores that it asks for itself: one, unless it says more
    "srun": 'cores=none; while [[ "$1" == --* ]]; do [[ "$1" == --cpus-per-task=* ]] && cores="${1#*=}"; shift; done\n'
    'echo "$cores" >> steps\nexec "$@"\n',
    "scontrol": "echo 127.0.0.1\necho other\n",
    "iclgd": f"exec {sys.executable} -c 'from iclgd.cli import main; main()' \"$@\"\n",
}


@pytest.fixture
def place(tmp_path):
    """An empty folder, and a machine on which Slurm seems to be."""
    (tmp_path / "bin").mkdir()
    for name, text in STANDINS.items():
        stand_in(tmp_path, name, text)
    return tmp_path


def stand_in(place: Path, name: str, text: str) -> None:
    (place / "bin" / name).write_text(f"#!/usr/bin/env bash\n{text}")
    (place / "bin" / name).chmod(0o755)


def submit(place: Path, *args: object) -> subprocess.Popen:
    beside = str(Path(sys.executable).parent)  # where ray is
    env = {
        **os.environ,
        "PATH": os.pathsep.join([str(place / "bin"), beside, os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")]),
        "RAY_PORT": "6391",
    }
    command = ["sbatch", *map(str, args)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=env, cwd=place, start_new_session=True, **pipes)


@pytest.mark.parametrize("script", sorted(SLURM.iterdir()), ids=lambda path: path.name)
def test_a_script_is_valid_bash(script):
    subprocess.run(["bash", "-n", script], check=True)


def test_an_array_of_jobs_fills_one_store_and_the_whole_study_then_runs_nothing(place):
    given = ["toy", "--plugin", Path(toy.__file__).resolve(), "--store", place / "cells"]
    job = submit(place, "--array=0-2", "--partition=short", SLURM / "array.sbatch", *given)
    out, err = job.communicate(timeout=120)
    assert job.returncode == 0, err
    assert out.count("The mean is") == 3
    assert (place / "steps").read_text().split() == ["1"] * 3
    assert len(list((place / "cells").iterdir())) == 3
    study = iclgd.toy(seeds=3, store=place / "cells")
    assert study.fresh == 0


def test_the_ray_job_starts_a_head_and_workers_runs_the_study_and_ends_them(place):
    stand_in(place, "ray", 'echo "ray $*" >> log; [[ "$1" == health-check ]] || exec sleep 60\n')
    stand_in(place, "iclgd", 'sleep 0.5; echo "iclgd $*" >> log; exit 3\n')
    job = submit(place, "--nodes=3", SLURM / "ray.sbatch", "compare", "--task", "sst2")
    job.communicate(timeout=60)
    assert job.returncode == 3  # the study's own
    log = (place / "log").read_text().splitlines()
    head = "--head --port=6391 --num-cpus=1 --include-dashboard=false --disable-usage-stats --block"
    assert set(log) == {
        f"ray start {head}",
        "ray health-check --address 127.0.0.1:6391",
        "ray start --address=127.0.0.1:6391 --num-cpus=1 --disable-usage-stats --block",
        "iclgd compare --task sst2 --engine ray --address 127.0.0.1:6391",
    }
    assert (place / "steps").read_text().split() == ["1", "1"]
    with pytest.raises(ProcessLookupError):
        os.killpg(job.pid, 0)


def test_a_head_that_does_not_start_ends_the_job_with_a_sentence(place):
    stand_in(place, "ray", "exit 1\n")
    job = submit(place, "--nodes=2", SLURM / "ray.sbatch", "compare")
    _, err = job.communicate(timeout=60)
    assert job.returncode == 1
    assert err == "Ray does not start at 127.0.0.1:6391: set RAY_PORT if it is taken\n"


def test_a_job_whose_time_is_up_tells_the_study_to_stop_and_waits_for_what_it_says(place):
    stand_in(place, "ray", '[[ "$1" == health-check ]] || exec sleep 60\n')
    stand_in(place, "iclgd", "trap 'sleep 0.5; echo kept; exit 143' TERM; touch began; while :; do sleep 0.1; done\n")
    env = {"SLURM_JOB_NUM_NODES": "1", "SLURM_CPUS_PER_TASK": "1", "SLURM_JOB_NODELIST": "nodes"}
    env |= {**os.environ, "PATH": os.pathsep.join([str(place / "bin"), os.environ["PATH"]])}
    command = ["bash", str(SLURM / "ray.sbatch"), "compare"]
    job = subprocess.Popen(command, env=env, cwd=place, start_new_session=True, stdout=subprocess.PIPE, text=True)
    while not (place / "began").exists():
        time.sleep(0.05)
    os.kill(job.pid, signal.SIGTERM)  # the batch shell's, as --signal=B: has it
    out, _ = job.communicate(timeout=30)
    assert (job.returncode, out) == (143, "kept\n")


@pytest.mark.slow
def test_the_ray_job_works_with_ray_itself(place):
    given = ["toy", "--plugin", Path(toy.__file__).resolve(), "--store", place / "cells", "--seeds", 4]
    job = submit(place, "--nodes=2", SLURM / "ray.sbatch", *given)
    try:
        out, err = job.communicate(timeout=240)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
    assert job.returncode == 0, err
    assert "The mean is" in out
    assert len(list((place / "cells").iterdir())) == 4
