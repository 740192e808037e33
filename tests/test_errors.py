"""What counts as memory that ran out, whoever says it."""

import pytest
import torch

from iclgd.errors import out_of_memory


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."),
        RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes."),
    ],
)
def test_every_allocator_is_understood(error):
    assert out_of_memory(error)


def test_what_torch_says_here_is_understood():
    with pytest.raises(RuntimeError) as raised:
        torch.empty(2**60, dtype=torch.uint8)
    assert out_of_memory(raised.value)


@pytest.mark.parametrize("error", [RuntimeError("shapes differ"), ValueError("out of memory of names")])
def test_other_errors_are_not(error):
    assert not out_of_memory(error)
