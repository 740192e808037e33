"""Deutch, Magar, Bar Natan and Dar 2023, "In-context Learning and Gradient Descent Revisited" (arXiv 2311.07772)."""

from math import sqrt

from iclgd.claims.claim import Within, claim


def _noise(metric: str, ratio: float, seed: int) -> float:
    from iclgd.metrics.nulls import noise_score

    return float(noise_score(metric, ratio, dim=4096, draws=200, seed=seed).mean())


claim(
    "deutch2023.noise-scores-a-quarter",
    says="SimAOU_norm gives ¼ to independent random updates of norm √3·‖z‖.",
    source="§3.1",
    expect=Within(0.25, 0.01),
    cost="seconds",
    run=lambda seed: _noise("SimAOU_norm", sqrt(3), seed),
)

claim(
    "deutch2023.noise-scores-nothing-unnormalised",
    says="SimAOU, without the normalisation, gives 0 to the same updates.",
    source="§3.1",
    expect=Within(0.0, 0.01),
    cost="seconds",
    run=lambda seed: _noise("SimAOU", sqrt(3), seed),
)
