"""Cells on language models: comparisons and traces."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from iclgd.choices import parse_one
from iclgd.labs.compare.run import run
from iclgd.learners import LEARNERS
from iclgd.learners.prompted import InContext, ZeroShot
from iclgd.models.load import load_subject
from iclgd.models.subject import Subject
from iclgd.models.traces import Trace
from iclgd.prompts import Prompts, build_prompts
from iclgd.results import Result
from iclgd.spec import EpisodeSpec, ModelSpec, PromptSpec
from iclgd.tasks.episodes import load_episode
from little import NULLS, little_cell, little_model, little_task, little_tools
from tiny import tiny_subject

Arrays = dict[str, Tensor]


@contextmanager
def little_tasks() -> Iterator[tuple[Path, Path]]:
    """A task of a user's own, and another one."""
    with TemporaryDirectory() as folder:
        yield little_task(Path(folder)), little_task(Path(folder), "other", ("red", "blue"))


OLD_NAMES = {"SimAM_delta": "SimAM_Δ", "tau": "τ", "alpha": "α", "loss": "losses", "gradient norm": "gradients"}
NEW = {"accuracy", "calibrated", "contextual", "agreement", "KL", "Rec2FTP", "SimBlock", "label-share", "weight change"}
NEW |= {"margins-missed", "margins-recovered", "margins-recovered-centred"}
NEW |= {f"whole of {name}" for name in ("margins-missed", "margins-recovered", "margins-recovered-centred")}
NEW |= {"attention", "contribution", "own attention"}  # what a page lets people look at
OLD_NULLS = {"other-query": "other query", "shuffled-labels": "shuffled labels"}


def cell_arrays(subject: Subject, learners: Mapping[str, str], trains: bool = False, **changes: Any) -> Arrays:
    """Everything the cells of one episode give, as `learner/what` or `learner/metric/null`, in our learners' names."""
    with little_tasks() as (task, other):
        asked: dict[str, Any] = {"task": str(task), "episode": EpisodeSpec(k=3, queries=4)} | changes
        nulls = NULLS + (("shuffled-labels", f"other-task:task={other}") if trains else ())
        tools, found = little_tools(subject), {}
        found |= renamed(run(little_cell(**asked), tools), None)
        for name, text in learners.items():
            found |= renamed(run(little_cell(learner=text, nulls=nulls, **asked), tools), name)
        for (one, a), (two, b) in combinations(learners.items(), 2):
            pair = {**asked, "floor": False, "metrics": ()}
            if parse_one(a, LEARNERS)["rate"] == parse_one(b, LEARNERS)["rate"] and a.split(":")[0] != b.split(":")[0]:
                found |= renamed(run(little_cell(learner=a, versus=b, **pair), tools), f"{one} ~ {two}")
    return found


def renamed(result: Result, learner: str | None) -> Arrays:
    """The arrays of a result under the names of the golden files; what these do not have is left out."""
    found = {}
    for one in result.arrays:
        labels = dict(one.labels)
        who = str(labels.get("learner", learner))
        what = str(labels.get("metric", labels.get("quantity")))
        if what == "answers":
            found["answers"] = torch.from_numpy(one.values)
            continue
        if who == "zero-shot" and what == "SimAM":
            who, what = "icl", "SimAM/before"
        null = str(labels.get("null", labels.get("floor", "")))
        null = "other task" if null.startswith("other-task") else OLD_NULLS.get(null, null)
        if what in NEW or (labels.get("floor") and what == "tau"):
            continue
        name = f"{who}/{OLD_NAMES.get(what, what)}" + (f"/{null}" if null else "")
        found[name] = torch.from_numpy(one.values)
    return found


def compare_tiny(architecture: str, *kinds: str) -> Arrays:
    """With all nulls and both noise floors."""
    learners = {kind: f"{kind}:rate=0.01" for kind in kinds}
    return cell_arrays(tiny_subject(architecture), learners, trains=True, floor=True)


OPTIONS = {
    "gd qkv": "gd:rate=0.01:trains=qkv",
    "gd attention": "gd:rate=0.01:trains=attention",
    "gd all": "gd:rate=0.01:trains=all",
    "gd label": "gd:rate=0.01:target=label",
    "gd 2 epochs": "gd:rate=0.01:epochs=2",
    "gd order 3": "gd:rate=0.01:order=3",
    "gd clip": "gd:rate=0.01:clip=0.05",
    "gd everything": "gd:rate=0.01:trains=all:target=label:epochs=2:order=3:clip=0.05",
    "lcgd everything": "lcgd:rate=0.01:trains=qkv:target=label:epochs=2:order=3:clip=0.05",
}


def compare_options() -> Arrays:
    """Each set of options in a cell of its own: in one cell learners of one kind and rate would share a name."""
    subject, found = tiny_subject("llama"), {}
    for name, options in OPTIONS.items():
        cell = cell_arrays(subject, {name: options})
        found |= {key: array for key, array in cell.items() if key.startswith(f"{name}/") and key.count("/") == 1}
    short = {"episode": EpisodeSpec(k=36, queries=2), "prompt": PromptSpec(truncate=True)}  # not all of them fit
    name = "gd dropped too"
    cell = cell_arrays(subject, {name: "gd:rate=0.01:dropped_too=true"}, **short)
    return found | {key: array for key, array in cell.items() if key.startswith(f"{name}/") and key.count("/") == 1}


def compare_floor() -> Arrays:
    """Texts so long that the noise floor's other batches are other ones."""
    learners = {"gd": "gd:rate=0.01"}
    with TemporaryDirectory() as folder:
        task, rows = little_task(Path(folder)), Path(folder, "mine.csv")
        for label in (",0", ",1"):
            rows.write_text(rows.read_text().replace(label, " cat rose car" * 16 + label))
        asked = {"task": str(task), "episode": EpisodeSpec(k=1, queries=8), "floor": True}
        cell = cell_arrays(tiny_subject("llama"), learners, **asked)
    return {key: array for key, array in cell.items() if key.endswith(("/other batch", "/other precision"))}


def compare_untrained() -> Arrays:
    """A model with fresh weights, and one that keeps its embeddings, in the other ways to ask for an episode."""
    found = {}
    with TemporaryDirectory() as folder:
        model = str(little_model(Path(folder)))
        for init in ("random", "embeddings"):
            subject = load_subject(ModelSpec(name=model, device="cpu", init=init, init_seed=1))
            episode = EpisodeSpec(k=4, seed=2, queries=4, query_seed=3, balanced=True)
            learners = {"gd": "gd:rate=0.01"}
            cell = cell_arrays(subject, learners, episode=episode, prompt=PromptSpec(separator="eos"))
            found |= {f"{init}: {key}": array for key, array in cell.items()}
    return found


@cache
def embedded() -> Subject:
    return load_subject(ModelSpec(name="smollm2-135m", device="cpu"))


def compare_embedded() -> Arrays:
    subject = embedded()
    learners = {kind: f"{kind}:rate=0.001" for kind in ("gd", "lcgd")}
    return cell_arrays(subject, learners, task="sentiment", episode=EpisodeSpec(k=2, queries=3))


def part_of(trace: Trace, layers: int = 1, dims: int = 8) -> Arrays:
    """A trace without most of its size: one layer in ``layers``, and the first coordinates of vectors."""
    return {
        "scores": trace.scores,
        "blanks": trace.blanks,
        "outputs": trace.outputs[:, ::layers, :, :dims],
        "logits": trace.logits[:, ::layers, :, :2],
        "keys": trace.keys,
        "context": trace.context[:, ::layers],
        "vectors": trace.vectors[:, ::layers, :, :dims],
        "answers": torch.tensor(trace.answers),
    }


def both_traces(subject: Subject, prompts: Prompts, layers: int = 1) -> Arrays:
    found = {}
    for name, learner in {"zero-shot": ZeroShot(), "icl": InContext()}.items():
        with learner.learn(subject, prompts) as predictor:
            trace = predictor.trace(prompts)
        found |= {f"{name}/{key}": array for key, array in part_of(trace, layers).items()}
    return found


def prompts_of(subject: Subject, task: str, k: int, queries: int) -> Prompts:
    episode = load_episode(task, EpisodeSpec(k=k, queries=queries))
    return build_prompts(subject.tokenizer, episode, PromptSpec(), subject.room)


def trace_tiny() -> Arrays:
    """Captured through the registered function, intercepted, and with label words of more than one token."""
    found = {}
    with little_tasks() as (task, _):
        long = little_task(task.parent, "long", ("good film", "bad car"))
        for name, architecture, of in (
            ("llama", "llama", task),
            ("bloom", "bloom", task),
            ("long labels", "gpt2", long),
        ):
            subject = tiny_subject(architecture)
            arrays = both_traces(subject, prompts_of(subject, str(of), 3, 3))
            found |= {f"{name}: {key}": array for key, array in arrays.items()}
    return found


def trace_embedded() -> Arrays:
    subject = embedded()
    return both_traces(subject, prompts_of(subject, "sentiment", 2, 2), layers=10)
