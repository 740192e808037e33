"""Garg, Tsipras, Liang and Valiant 2022, "What Can Transformers Learn In-Context?" (2208.01066): its baselines."""

from iclgd.claims.claim import Place, claim, identity, number
from iclgd.claims.expect import Within

claim(
    "garg2022.least-squares",
    "Least squares on k of d = 20 demonstrations has an error of d(1 − k/d).",
    Place("garg2022", "fig. 2, baselines; in closed form"),
    Within(1.0, 0.1),
    identity("plain-baselines", 5),
    number("least squares, k = 5", "least squares, k = 10", "least squares, k = 15"),
    of="sampled error over the closed form",
    chosen_after=True,
)
claim(
    "garg2022.averaging",
    "Averaging label times input has an error of d(d + 1)/k.",
    Place("garg2022", "fig. 2, baselines; in closed form"),
    Within(1.0, 0.15),
    identity("plain-baselines", 5),
    number("averaging, k = 5", "averaging, k = 10", "averaging, k = 15"),
    of="sampled error over the closed form",
    chosen_after=True,
)
