"""Deutch, Magar, Bar Natan and Dar 2023, "In-context Learning and Gradient Descent Revisited" (arXiv 2311.07772)."""

from iclgd.claims.claim import Place, claim, identity, number
from iclgd.claims.expect import Within


def at(where: str) -> Place:
    return Place("deutch2023", where)


claim(
    "deutch2023.noise-quarter",
    says="SimAOU_norm gives ¼ to independent random updates of norm √3·‖z‖.",
    source=at("§3.1"),
    expect=Within(0.25, 0.01),
    reads=identity("noise-scores"),
    measure=number("norm, √3"),
)
