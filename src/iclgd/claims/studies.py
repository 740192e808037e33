"""Studies that many claims read."""

from dataclasses import replace

from iclgd.claims.claim import Read

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
        "task": ("sst2", "sst5", "mr", "subj", "agnews", "cb"),
        "k": 32,
        "queries": 64,
        "truncate": True,
        "seeds": 5,
        "rates": (1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
        "init": ("trained", "random", "embeddings"),
        "learners": ("gd", "gd:target=label", "lcgd"),
        "nulls": ("default", "shuffled-labels"),
    },
    only={"init": ("trained", "random"), "learner": (None, "gd 0.001", "lcgd 0.001")},
)
"""Hours, or minutes on a GPU: of the published study (six tasks of the papers, five draws of 32 demonstrations, five
rates, three initialisations) the part at the rate 10⁻³ with trained and untrained weights."""
STRONG_LABELS = replace(STRONG, only={"init": ("trained",), "learner": (None, "gd 0.001", "gd 0.001 target=label")})
STRONG_READ = replace(STRONG, only={"init": ("trained",), "learner": (None,)})

_SMALL = {"task": ("sentiment",), "k": 8, "seeds": 3, "init": ("trained",)}
IMPLICIT = Read(
    "implicit",
    {**_SMALL, "queries": 16, "calibration": (16,), "ranks": (1, 4), "rates": (0.01,)},
    only={"part": ("static", "trained")},
)
"""Minutes: an embedded task, three draws; one patch for all queries, and finetuning of the patched matrices."""
LABELS = Read(
    "compare",
    {
        **_SMALL,
        "seeds": 5,
        "queries": 40,
        "learners": ("gd:rate=0.01", "gd:rate=0.01:target=label"),
        "metrics": ("contrast-AOU", "label-share", "accuracy"),
        "nulls": ("other-query", "other-demos", "wrong-labels"),
        "floor": False,
    },
)
"""Minutes: the same task, five draws; right labels against wrong ones, in reading and under either loss."""
CAUSAL = Read("causal", {**_SMALL, "queries": 12})
"""Minutes: the same task and draws; layers exchanged, heads taken out."""
RIVALS = Read(
    "compare",
    {
        **_SMALL,
        "queries": 40,
        "learners": (
            *("gd:rate=0.01", "lcgd:rate=0.01", "static-patch", "task-vector", "function-vector", "in-context-vector"),
        ),
        "nulls": ("random", "other-query"),
        "contrast": False,
        "floor": False,
    },
)
"""Minutes: the same task and draws; everything that stands in for demonstrations, beside descent."""
