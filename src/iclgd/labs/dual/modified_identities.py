"""Modified attention as the step of a modified loss, and where the printed models depart from their losses."""

from dataclasses import replace

import torch
from torch import Tensor

from iclgd.labs.dual.modified import (
    Adapter,
    Arbitrary,
    Augmented,
    Block,
    Centred,
    Modification,
    Negative,
    Regularised,
    RegularisedSlide,
    attend,
    dual_of,
)
from iclgd.small.identities.drawn import F64, apart, source, whole


def _head(seed: int, own: int | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor, Block]:
    """Query, keys, values, the tokens they are made from, and which belongs to whom."""
    g = source(seed)
    demos, dim = whole(5, 9, g), whole(3, 6, g)
    mine = own or whole(2, 4, g)
    query, keys, values, inputs = (
        torch.randn(*s, generator=g, dtype=F64) for s in ((dim,), *[(demos + mine, dim)] * 3)
    )
    return (
        query,
        keys,
        values,
        inputs,
        Block(torch.tensor([*range(demos), *[-1] * mine]), torch.tensor([demos + mine - 1])),
    )


def _both(seed: int, modification: Modification) -> tuple[Tensor, Tensor]:
    """Modified attention, and the step of its dual."""
    query, keys, values, inputs, block = _head(seed)
    dual = dual_of(query, keys, values, block, modification, inputs)
    return attend(query[None], keys, values, block, modification, inputs)[0], dual.predict(dual.step(0.3))


def modified_steps(seed: int) -> dict[str, float]:
    """Every modified attention against the step of its loss; and at strength 0 against plain attention."""
    g = source(seed + 1)
    dim = _head(seed)[0].shape[0]
    value, key = Adapter.random(dim, dim, 5, g), Adapter.random(dim, dim, 5, g)
    kinds: dict[str, tuple[Modification, Modification]] = {
        "regularised": (Regularised(0.5), Regularised(0.0)),
        "augmented": (Augmented(0.7, value=value, key=key), Augmented(0.0, value=value, key=key)),
        "negative": (Negative(3, 0.5), Negative(3, 0.0)),
        "centred": (Centred(1.0), Centred(0.0)),
        "arbitrary": (Arbitrary(3, 0.5), Arbitrary(3, 0.0)),
    }
    found = {name: apart(*_both(seed, strong)) for name, (strong, _) in kinds.items()}
    plain = _both(seed, Modification())[0]
    return found | {"strength 0": max(apart(_both(seed, off)[0], plain) for _, off in kinds.values())}


def regularised_as_printed(seed: int) -> dict[str, float]:
    """V (A − αI), as printed, against the step of the loss with α/(2η) ‖W‖²; their difference; where they agree.

    They differ by α (v_q − Σ_T A_i v_i); with one own token they agree when α is replaced by α A_qq.
    """
    alpha = 0.5
    query, keys, values, inputs, block = _head(seed)

    def out(modification: Modification, case: tuple[Tensor, Tensor, Tensor, Tensor, Block]) -> Tensor:
        return attend(case[0][None], *case[1:3], case[4], modification, case[3])[0]

    case = (query, keys, values, inputs, block)
    exact, printed = out(Regularised(alpha), case), out(RegularisedSlide(alpha), case)
    weights = (keys @ query / keys.shape[-1] ** 0.5).softmax(-1)
    own = ~block.demos
    difference = alpha * (values[-1] - weights[own] @ values[own])
    single = _head(seed, own=1)
    share = float((single[1] @ single[0] / single[1].shape[-1] ** 0.5).softmax(-1)[-1])
    return {
        "as printed": float((printed - exact).norm() / exact.norm()),
        "difference": apart(exact - printed, difference),
        "one own token": apart(out(RegularisedSlide(alpha * share), single), out(Regularised(alpha), single)),
    }


def negatives_as_printed(seed: int) -> dict[str, float]:
    """The loss with v_jᵀ W φ(k_i), and as printed with φ(k_j), against the model v_i − (β/k) Σ v_j; sets of one's own.

    ``own sets``: each demonstration has negatives that are not its neighbour's, drawn here at random.
    """
    query, keys, values, _, block = _head(seed)
    modification = Negative(3, 0.5)
    dual = dual_of(query, keys, values, block, Modification())
    demos = block.demos
    sets = modification.sets(dual.scores, torch.ones_like(dual.scores, dtype=torch.bool))
    wanted = attend(query[None], keys, values, block, modification)[0]

    def step(inputs: Tensor, labels: Tensor) -> Tensor:
        """The prediction after a step on more pairs."""
        more = replace(dual, inputs=torch.cat([dual.inputs, inputs]), labels=torch.cat([dual.labels, labels]))
        return more.predict(more.step())

    means = sets @ dual.labels  # (1/k) Σ_j v_j of each i
    spread = torch.einsum("ij,jf->ijf", sets, dual.inputs).flatten(0, 1)  # φ(k_j) / k for each i and j
    each = dual.labels.repeat(len(sets), 1)
    drawn = torch.rand(sets.shape, generator=source(seed + 2), dtype=F64).fill_diagonal_(-1)
    chosen = (drawn >= drawn.topk(3, -1).values[:, -1:]).to(F64) / 3
    weights = (keys @ query / keys.shape[-1] ** 0.5).softmax(-1)
    changed = values.clone()
    changed[demos] -= 0.5 * chosen @ values[demos]
    return {
        "residual": apart(step(dual.inputs, -0.5 * means), wanted),
        "as printed": float((step(spread, -0.5 * each) - wanted).norm() / wanted.norm()),
        "own sets": apart(step(dual.inputs, -0.5 * chosen @ dual.labels), weights @ changed),
    }
