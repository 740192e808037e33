"""Liu, Elflein, Litany, Gojcic and Li 2026, "Test-Time Training with KV Binding Is Secretly Linear Attention"."""

from iclgd.claims.claim import Place, exact

exact(
    "liu2026.ascent-is-minus-descent",
    "Whether the inner loop descends or climbs does not matter: under −⟨Sk, v⟩ the states differ in sign alone.",
    Place("liu2026", "abstract; the experiments with gradient ascent"),
    "linear-attention-is-sgd",
    "ascent",
    note="A read-out that is trained along undoes a sign.",
)
