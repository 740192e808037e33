"""Studies that many claims read."""

from dataclasses import replace

from iclgd.claims.claim import Read

TASKS = ("sst2", "sst5", "mr", "subj", "agnews", "cb")
LEARNERS = ("gd:rate=0.001", "gd:rate=0.001:target=label", "lcgd:rate=0.001")

_FEW = Read(
    "compare",
    {
        "task": ("sentiment",),
        "k": 8,
        "queries": 40,
        "seeds": 3,
        "init": ("trained", "random"),
        "metrics": ("SimAOU", "SimAOU_norm", "SimAM", "SimAM_delta", "accuracy", "calibrated", "agreement"),
        "nulls": ("random", "other-query", "wrong-labels"),
        "contrast": False,
        "floor": False,
    },
)
"""Minutes: an embedded task, three draws of eight demonstrations."""
FEW = replace(_FEW, only={"init": ("trained",)})
FEW_UNTRAINED = replace(_FEW, only={"init": ("random",), "learner": (None,)})  # asked and reading, never trained

STRONG = Read(
    "compare",
    {
        "task": TASKS,
        "k": 32,
        "queries": 100,
        "seeds": 3,
        "truncate": True,
        "init": ("trained", "random"),
        "learners": LEARNERS,
        "floor": False,
    },
)
"""Hours, or minutes on a GPU: the six tasks of the papers, three draws of 32 demonstrations."""
STRONG_READ = replace(STRONG, only={"init": ("trained",), "learner": (None,)})
