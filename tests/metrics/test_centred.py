"""What is left of an update without what all queries have in common."""

import torch

from iclgd.metrics.likeness import centred, centred_maps


def test_an_update_that_every_query_shares_is_nothing_and_layers_are_kept_apart():
    random = torch.Generator().manual_seed(0)
    shared = torch.randn(1, 3, 4, generator=random, dtype=torch.float64)  # layers differ, queries do not
    own = torch.randn(5, 3, 4, generator=random, dtype=torch.float64)
    own = own - own.mean(0)
    torch.testing.assert_close(centred(shared.expand(5, -1, -1) + own), own)


def test_maps_are_aligned_at_the_last_key_before_their_mean_is_taken_off():
    maps = torch.zeros(2, 1, 1, 4, dtype=torch.float64)
    maps[0, 0, 0, :2] = torch.tensor([5.0, 7.0])  # two keys
    maps[1, 0, 0, :4] = torch.tensor([1.0, 2.0, 5.0, 9.0])  # four keys
    found = centred_maps(maps, torch.tensor([2, 4]))[:, 0, 0]
    # aligned: (·, ·, 5, 7) and (1, 2, 5, 9); means 1, 2, 5, 8
    torch.testing.assert_close(found, torch.tensor([[0.0, 0, 0, -1], [0, 0, 0, 1]], dtype=torch.float64))
