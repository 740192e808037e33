"""Xie, Yuan, Rossi and Hannagan 2025, "The Initialization Determines Whether In-Context Learning Is …" (2512.04268)."""

from iclgd.claims.claim import Place, claim, identity, number
from iclgd.claims.expect import AtLeast, Within

claim(
    "xie2025.mean-is-missed",
    "With weights of a mean other than 0, any number of heads of linear attention miss one step of gradient descent.",
    Place("xie2025", "§3"),
    AtLeast(1.05),
    identity("start-decides", 5),
    number("missed"),
    of="least loss of any number of heads over that of one step from the mean",
    note="The limit of 5% is ours.",
)
claim(
    "xie2025.guess-restores-it",
    "A first guess in the query's label slot restores it.",
    Place("xie2025", "§4"),
    Within(1.0, 0.05),
    identity("start-decides", 5),
    number("guessed"),
    of="the same with the guess",
)
