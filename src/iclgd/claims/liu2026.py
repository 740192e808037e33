"""Liu, Elflein, Litany, Gojcic and Li 2026, "Test-Time Training with KV Binding Is Secretly Linear Attention"."""

from iclgd.claims.claim import Place, claim, exact, identity, number
from iclgd.claims.expect import AtLeast

exact(
    "liu2026.ascent-is-minus-descent",
    "Whether the inner loop descends or climbs does not matter: under −⟨Sk, v⟩ the states differ in sign alone.",
    Place("liu2026", "abstract; the experiments with gradient ascent"),
    "linear-attention-is-sgd",
    "ascent",
    note="A read-out that is trained along undoes a sign.",
)
exact(
    "liu2026.is-linear-attention",
    "Test-time training of a linear map is linear attention, on values that the training makes.",
    Place("liu2026", "title and abstract"),
    "learning-is-linear-attention",
)
claim(
    "liu2026.values-are-the-learning",
    "The values that training makes are not the layer's own: linear attention on its own values answers otherwise.",
    Place("liu2026", "title, audited"),
    AtLeast(0.1, each=True),
    identity("learning-is-linear-attention"),
    number("own values"),
    of="relative difference of the answers",
    note="The values that make it linear attention are the errors, which hold all of the learning.",
    chosen_after=True,
)
