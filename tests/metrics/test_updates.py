"""How large an update is."""

import torch

from iclgd.metrics.updates import update_size


def test_an_update_is_measured_in_lengths_of_what_it_changes():
    zero = torch.tensor([[[3.0, 4.0], [0.0, 0.0]], [[0.0, 2.0], [1.0, 0.0]]])  # query layer dim
    changed = torch.tensor([[[3.0, 14.0], [1.0, 0.0]], [[3.0, 6.0], [1.0, 0.0]]])
    wanted = torch.tensor([[2.0, torch.nan], [2.5, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(update_size(zero, changed), wanted, equal_nan=True)
