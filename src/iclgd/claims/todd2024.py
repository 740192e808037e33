"""Todd et al. 2024, "Function Vectors in Large Language Models" (arXiv 2310.15213)."""

from iclgd.claims.claim import Place, claim, exact
from iclgd.claims.expect import Above, Below
from iclgd.claims.reading import difference
from iclgd.claims.reading_prompts import left_less
from iclgd.claims.studies import CAUSAL, RIVALS

MINUTES = {"tier": "minutes", "needs": ("model",)}

exact(
    "todd2024.heads-add-up",
    "An attention layer's output is the sum of its heads' outputs, each through its part of the output projection.",
    Place("todd2024", "§2"),
    "heads-add-up",
)
claim(
    "todd2024.few-heads",
    "A small number of heads transports the task: without them less of it is left than without others.",
    Place("todd2024", "abstract; §2"),
    Below(0.0),
    CAUSAL,
    left_less("function vector"),
    of="reading's effect left without ten function-vector heads, less without random heads of the same layers",
    stands="open",
    note="They put heads in; here they are taken out, heads giving their mean over another task's prompt. Three "
    "draws of one task show it of SmolLM2 and not of Gemma; five draws of three tasks show it of neither "
    "(docs/implicit.md).",
    **MINUTES,
)
claim(
    "todd2024.triggers-the-task",
    "The sum of what those heads write triggers the task without demonstrations.",
    Place("todd2024", "abstract; §3"),
    Above(0.0),
    RIVALS,
    difference({"learner": "function-vector", "metric": "accuracy"}, {"learner": "zero-shot", "metric": "accuracy"}),
    of="accuracy with the function vector less zero-shot accuracy",
    stands="open",
    note="Heads and vector come from eight demonstrations, where they draw prompts of many tasks. After reading, too, "
    "SmolLM2 answers worse than zero-shot here.",
    **MINUTES,
)
