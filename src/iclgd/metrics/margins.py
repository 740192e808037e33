"""What happens to label margins: the change that one thing makes, and how much of it another brings about."""

from collections.abc import Callable, Sequence

import numpy as np

Scores = np.ndarray  # (query, label): log p of the label words
ROUNDING = 1e-6  # of an effect: what is left of a shift that all queries share, once it is taken off in float32


def effect(one: Scores, base: Scores) -> Scores:
    """What changed in the label margins: log p less its mean over labels, minus the same before."""
    change = one - base
    return change - change.mean(-1, keepdims=True)


def recovered(found: Scores, wanted: Scores, centred: bool) -> np.ndarray:
    """Σ⟨found, wanted⟩ / Σ⟨wanted, wanted⟩ over queries: 1 where an effect is brought back in full, 0 where nothing is.

    Both effects start from the same base z, so 0 is not what knows nothing of the query: answers that are the same for
    all of them, found = −z and a constant, recover (Var z − Cov(z, one)) / Var(one − z) where wanted = one − z.
    ``missed`` has no such gift.

    ``centred``: after the mean over queries is taken off both, so that a shift that is the same for every query counts
    for nothing. A value for each query, whose mean is that ratio: each query enters by its first-order effect on it
    (Taylor linearisation, Woodruff 1971), so that the values' spread is the ratio's.
    """
    if centred:
        found, wanted = found - found.mean(0), _beyond_the_mean(wanted)
    return _ratio((found * wanted).sum(-1), (wanted * wanted).sum(-1))


def missed(found: Scores, wanted: Scores, centred: bool) -> np.ndarray:
    """Σ‖found − wanted‖² / Σ‖wanted‖² over queries: 0 for the effect itself, 1 where nothing happens, more if worse.

    A distance, which ``recovered`` is not: an effect ten times as large recovers 10, and misses 81. By query, and
    ``centred``, as there.

    A mean over draws is one of ratios, with a long tail where wanted is small in some draws. Simulated coverage of its
    95% interval over three or five draws is 95% where the sizes of wanted are alike, 92 to 94% where they vary by a
    factor of 1.35 (the standard deviation of their logarithm is .3), 80% at 1.8, 55% at 2.7.
    """
    if centred:
        found, wanted = found - found.mean(0), _beyond_the_mean(wanted)
    return _ratio(((found - wanted) ** 2).sum(-1), (wanted * wanted).sum(-1))


def _beyond_the_mean(wanted: Scores) -> Scores:
    """What tells queries apart; nothing where that is no more than rounding, of which a share would be any number."""
    rest = wanted - wanted.mean(0)
    return rest if (rest * rest).sum() > ROUNDING**2 * (wanted * wanted).sum() else np.zeros_like(rest)


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Values by query whose mean is Σ part / Σ whole; nan where the whole is nothing."""
    if not whole.sum() > 0:
        return np.full(len(part), np.nan)
    ratio = part.sum() / whole.sum()
    return ratio + (part - ratio * whole) / whole.mean()


def over_episodes(
    tasks: Sequence[str], seeds: Sequence[int], value: Callable[[str, int], np.ndarray | None]
) -> np.ndarray:
    """Values of every episode's queries side by side, (task, seed, query, …); nan where an episode has none."""
    found = {(task, seed): value(task, seed) for task in tasks for seed in seeds}
    known = [one for one in found.values() if one is not None]
    width, rest = max((len(one) for one in known), default=0), known[0].shape[1:] if known else ()
    values = np.full((len(tasks), len(seeds), width, *rest), np.nan)
    for (task, seed), one in found.items():
        if one is not None:
            values[list(tasks).index(task), list(seeds).index(seed), : len(one)] = one
    return values
