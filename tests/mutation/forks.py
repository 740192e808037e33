"""Runs of tests in copies of the tree, each a fork of one process that has imported all that takes seconds."""

import gc
import importlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from mutation.early import NAME, moved

ROOT = Path(__file__).resolve().parents[2]
WARM = """
torch torch._dynamo torch.func transformers transformers.modeling_utils transformers.generation.utils accelerate gguf
transformers.models.llama.modeling_llama transformers.models.gpt2.modeling_gpt2 tokenizers.implementations networkx
safetensors.torch scipy.stats scipy.optimize pandas matplotlib.pyplot matplotlib.backends.backend_svg pydantic.main
jinja2 beartype beartype.vale jaxtyping automata.fa.dfa automata.fa.nfa sympy click rich.console rich.table
anyio.pytest_plugin anyio._backends._asyncio pytest_timeout
"""
NOT_COPIED = (".git", ".venv", "build", "runs", "__pycache__", "*.egg-info", ".*_cache", ".hypothesis", "shared")


@dataclass(frozen=True)
class Job:
    run: Callable[[Path], int]  # in a copy, in a child
    after: Callable[[Path, int | None], Any]  # here: what is made of its exit code, None where its time ran out
    limit: float  # seconds


def warm() -> None:
    os.environ |= {"OMP_NUM_THREADS": "1", "ONEDNN_MAX_CPU_ISA": "AVX2", "CUDA_VISIBLE_DEVICES": ""}  # before torch
    for module in WARM.split():
        with suppress(ImportError):  # then the tests that need it say so
            importlib.import_module(module)
    sys.modules["torch"].set_num_threads(1)
    gc.freeze()  # a child that looks for garbage, as pytest does when it ends, need not look there


def copied(folder: Path, number: int) -> list[Path]:
    """Trees to be changed: never this one."""
    copies = [folder / str(i) for i in range(number)]
    for copy in copies:
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*NOT_COPIED))
    return copies


def in_parallel(jobs: Iterator[Job], copies: list[Path]) -> Iterator[Any]:
    """What each job gives, as they finish; one at a time in each copy."""
    free, running = list(copies), {}
    try:
        while True:
            while free and (job := next(jobs, None)):
                copy = free.pop()
                running[_forked(job, copy)] = (job, copy, time.monotonic())
            if not running:
                return
            for child, (job, copy, began) in list(running.items()):
                done, status = os.waitpid(child, os.WNOHANG)
                if done or time.monotonic() - began > job.limit:
                    _end(child)
                    del running[child]
                    code = os.waitstatus_to_exitcode(status) if done else None
                    yield job.after(copy, code)
                    free.append(copy)
            time.sleep(0.01)
    finally:
        for child in running:
            _end(child)


def _forked(job: Job, copy: Path) -> int:
    """The id of a child that does the job, with the copy's package before every other."""
    sys.stdout.flush()
    if child := os.fork():
        return child
    code = 70
    try:
        os.setsid()
        os.chdir(copy)
        said = os.open(copy / "said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1)
        os.dup2(said, 2)
        ours = {str(ROOT / "src"), str(ROOT / "tests"), str(ROOT), ""}
        sys.path[:] = [str(copy / "src"), *(path for path in sys.path if path not in ours)]
        os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
        moved(copy / "src" / NAME)
        code = job.run(copy)
        sys.stdout.flush()
    finally:
        os._exit(code)


def _end(child: int) -> None:
    """The child, if it still runs, and processes that its tests left behind."""
    try:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    except (ProcessLookupError, ChildProcessError):
        return


def pytest_run(files: Iterable[str], plugin: Any, *more: str) -> int:
    """Without a memory of earlier failures, and without shrinking the examples that fail."""
    quick = settings(
        database=None,
        derandomize=True,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
    )
    settings.register_profile("mutants", quick)
    settings.load_profile("mutants")
    always = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", "-m", "not slow", "--tb=line", "--assert=plain"]
    return int(pytest.main([*always, *more, *files], plugins=[plugin]))
