"""Is in-context learning gradient descent? A laboratory where every answer can be run.

Each lab is a function: ``iclgd.compare(model=…, task=…, learners=[…], seeds=3)``, ``iclgd.dual_check(k=8)``. Its
arguments are the fields of the lab's spec, which are the options of its command. What comes back is a `Study`, the same
thing that ``iclgd.open(folder)`` gives for a finished one.

The public names are imported when they are first used: `import iclgd` itself loads neither torch nor transformers.
"""

import os
from importlib import import_module
from typing import Any

# Torch's threads wait for each other spinning, but not for long, then asleep: beside programs that keep every core busy
# a long spin makes small operations tens of times slower. GNU's OpenMP reads this when torch is loaded; who has set how
# threads wait keeps what was set.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "5000")

_PUBLIC = {
    "open": "iclgd.study:open_study",
    "Study": "iclgd.study:Study",
    "show": "iclgd.study:show",
    "Refusal": "iclgd.errors:Refusal",
    # what a lab is made of
    "LABS": "iclgd.lab:LABS",
    "Lab": "iclgd.lab:Lab",
    "LabSpec": "iclgd.lab:LabSpec",
    "Cell": "iclgd.lab:Cell",
    "Spec": "iclgd.spec:Spec",
    "option": "iclgd.spec:option",
    "Seeds": "iclgd.spec:Seeds",
    "Result": "iclgd.results:Result",
    "array": "iclgd.results:array",
    "Page": "iclgd.report.page:Page",
    "Section": "iclgd.report.page:Section",
    "Table": "iclgd.report.page:Table",
    "Drawing": "iclgd.report.page:Drawing",
    "Number": "iclgd.report.numbers:Number",
    # what can be added
    "LEARNERS": "iclgd.learners:LEARNERS",
    "METRICS": "iclgd.metrics:METRICS",
    "NULLS": "iclgd.nulls:NULLS",
    "TASKS": "iclgd.tasks.text:TASKS",
    "CLAIMS": "iclgd.claims:CLAIMS",
    "metric": "iclgd.metrics.compared:metric",
    "Compared": "iclgd.metrics.compared:Compared",
    "Null": "iclgd.nulls:Null",
    "IDENTITIES": "iclgd.small.known:IDENTITIES",
    "claim": "iclgd.claims:claim",
    "Place": "iclgd.claims:Place",
    "Read": "iclgd.claims:Read",
    "identity": "iclgd.claims:identity",
    "number": "iclgd.claims:number",
    "AtLeast": "iclgd.claims:AtLeast",
    "AtMost": "iclgd.claims:AtMost",
    "Within": "iclgd.claims:Within",
    # the pieces
    "ModelSpec": "iclgd.spec:ModelSpec",
    "EpisodeSpec": "iclgd.spec:EpisodeSpec",
    "PromptSpec": "iclgd.spec:PromptSpec",
    "load_subject": "iclgd.models.load:load_subject",
    "load_episode": "iclgd.tasks.episodes:load_episode",
    "build_prompts": "iclgd.prompts:build_prompts",
    "Predictor": "iclgd.models.traces:Predictor",
    "Trace": "iclgd.models.traces:Trace",
    "Bench": "iclgd.bench:Bench",
    "ZeroShot": "iclgd.learners.prompted:ZeroShot",
    "InContext": "iclgd.learners.prompted:InContext",
    "GradientDescent": "iclgd.learners.descent:GradientDescent",
    "LayerCausal": "iclgd.learners.layercausal:LayerCausal",
    "LayerCausalPaper": "iclgd.learners.layercausal:LayerCausalPaper",
    "sim_am": "iclgd.metrics.likeness:sim_am",
    "sim_am_delta": "iclgd.metrics.likeness:sim_am_delta",
    "sim_aou": "iclgd.metrics.likeness:sim_aou",
    "sim_aou_norm": "iclgd.metrics.likeness:sim_aou_norm",
    "update_size": "iclgd.metrics.updates:update_size",
}

__all__ = list(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        module, _, attribute = _PUBLIC[name].partition(":")
        return getattr(import_module(module), attribute)
    if not name.startswith("_"):
        from iclgd.calls import lab_function

        if (found := lab_function(name)) is not None:
            return found
    raise AttributeError(f"module 'iclgd' has no attribute {name!r}")


def __dir__() -> list[str]:
    from iclgd.calls import lab_functions

    return sorted([*globals(), *_PUBLIC, *lab_functions()])
