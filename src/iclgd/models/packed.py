"""Texts of many lengths in one sequence, one behind the other, so that no row of a pass is padding.

Only attention looks at more than one row of what it is given. There the texts are laid side by side, padded on the
right; every other module sees text and nothing else. Each text has positions of its own, from 0.
"""

from functools import cached_property
from itertools import accumulate
from weakref import finalize

import torch
from jaxtyping import Float, Int
from torch import Tensor


class Packed:
    """Where texts of these lengths stand in the one sequence, and where side by side; on a CPU."""

    def __init__(self, lengths: tuple[int, ...]):
        self.lengths, self.width = lengths, max(lengths)
        self.starts = (0, *accumulate(lengths[:-1]))
        self._masks: dict[int, Tensor] = {}  # of one pass, by identity

    @cached_property
    def positions(self) -> Int[Tensor, "1 token"]:
        return torch.cat([torch.arange(length) for length in self.lengths])[None]

    @cached_property
    def _places(self) -> Int[Tensor, " token"]:
        """Of every token in the flattened batch side by side."""
        return torch.cat([r * self.width + torch.arange(length) for r, length in enumerate(self.lengths)])

    def padded(self, states: Float[Tensor, "1 token *rest"]) -> Float[Tensor, "text width *rest"]:
        """Side by side, zeros behind the shorter ones."""
        whole = states.new_zeros(len(self.lengths) * self.width, *states.shape[2:])
        return whole.index_copy_(0, self._places, states[0]).unflatten(0, (-1, self.width))

    def joined(self, states: Float[Tensor, "text width *rest"]) -> Float[Tensor, "1 token *rest"]:
        """`padded` taken back."""
        return states.flatten(0, 1).index_select(0, self._places)[None]

    def own(self, mask: Float[Tensor, "1 1 token token"]) -> Float[Tensor, "text 1 width width"]:
        """What a mask over the one sequence hides of each text from itself; what stands behind a token is hidden.

        All layers of a pass have the same mask, or one of two: they are made once, and go when the pass is over. A
        training has a `Packed` for each step, and the masks of all steps would be more than everything else.
        """
        if id(mask) not in self._masks:
            places = torch.arange(self.width)
            rows = torch.tensor(self.starts)[:, None] + places.minimum(torch.tensor(self.lengths)[:, None] - 1)
            blocks = mask[0, 0][rows[:, :, None], rows[:, None, :]]
            hidden = blocks.masked_fill(places > places[:, None], torch.finfo(mask.dtype).min)
            self._masks[id(mask)] = hidden[:, None]
            finalize(mask, self._masks.pop, id(mask))  # before another tensor can have its identity
        return self._masks[id(mask)]
