"""What counts as memory that ran out, whoever says it."""

import pytest
import torch

from iclgd.errors import Refusal, memory_told, out_of_memory


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


@pytest.mark.parametrize("shape", [(2**60,), (10**12, 10**7), (10**12, 10**12)])
def test_what_torch_says_here_is_understood(shape):
    """Of what fits no number of bytes, and no number of elements, too."""
    with pytest.raises(RuntimeError) as raised:
        torch.empty(shape, dtype=torch.float32)
    assert out_of_memory(raised.value)


@pytest.mark.parametrize("error", [RuntimeError("shapes differ"), ValueError("out of memory of names")])
def test_other_errors_are_not(error):
    assert not out_of_memory(error)


def test_memory_that_was_asked_for_and_not_given_is_a_sentence_with_its_size():
    with pytest.raises(Refusal, match=r"^this takes more memory than there is \(1,152,921,504\.6 GB at once\): ask"):
        with memory_told():
            torch.empty(2**60, dtype=torch.uint8)
    with pytest.raises(RuntimeError, match="shapes differ"), memory_told():
        raise RuntimeError("shapes differ")
