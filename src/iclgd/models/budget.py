"""How much fits: tokens of a batch and of a chunk of context, from the memory that is free."""

import math
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import torch

from iclgd.errors import out_of_memory
from iclgd.models.attention import is_fused
from iclgd.models.layout import Layout
from iclgd.system import memory

Thing = TypeVar("Thing")
MOST = {"cuda": 16384, "cpu": 1024}  # tokens a batch beyond which nothing gets faster
LEAST = 64
GPU_SHARE = "ICLGD_GPU_SHARE"  # a worker's part of its GPU's memory, set by the engine
BATCH_COST = {"cuda": 256, "cpu": 32}  # tokens that take as long as one more batch: weights read, kernels started
SHARE = 0.5  # of the free memory, for one pass: the estimate below is rough
COPIES = 4  # of the scores while a softmax is taken: with and without mask, weights, and one on the way
FUSED_CHUNK = {"cuda": 2048, "cpu": 512}  # tokens of a context to encode at once, beyond which nothing gets faster
CHUNK = 2**29  # bytes of scores at once, where free memory is not known


def free_memory(device: torch.device) -> int | None:
    """Bytes that could be had on a device now; None where nobody says.

    Of a GPU that several workers share, a worker counts on its own share only: what is free now, others will want.
    """
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        held = torch.cuda.memory_reserved(device)
        free = min(free, int(total * float(os.environ.get(GPU_SHARE, "1"))) - held)
        return max(0, free + held - torch.cuda.memory_allocated(device))
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not everywhere
        return None
    return min(free, memory() or free)  # a container may have less than is free around it


def keep_to_share(device: torch.device) -> None:
    """A worker that wants more than its share of a GPU runs out of memory itself, and no other does."""
    share = float(os.environ.get(GPU_SHARE, "1"))
    if device.type == "cuda" and share < 1:
        torch.cuda.set_per_process_memory_fraction(share, device.index or 0)


def batch_tokens(layout: Layout, dtype: torch.dtype, device: torch.device, context: int, width: int) -> int:
    """Tokens of a batch of sequences of up to ``width`` tokens behind ``context`` others."""
    most = MOST.get(device.type, MOST["cpu"])
    free = free_memory(device)
    if free is None:
        return most
    return int(max(LEAST, min(most, SHARE * free / bytes_per_token(layout, dtype, device, context, width))))


def bytes_per_token(layout: Layout, dtype: torch.dtype, device: torch.device, context: int, width: int) -> int:
    """What one token of a batch takes while a layer runs, and its share of what is kept."""
    config, size = layout.config, dtype.itemsize
    hidden = int(config.hidden_size)
    inner = int(getattr(config, "intermediate_size", None) or 4 * hidden)
    scored = width if is_fused(device.type, dtype, context) else width + context
    scores = COPIES * layout.heads * scored * max(size, 4)
    rows = 2 / width  # two rows of a sequence are kept, and one is unembedded
    kept = rows * layout.layers * (3 * hidden + layout.heads * width) * size + rows * int(config.vocab_size) * 4
    return int(scores + (12 * hidden + 4 * inner) * size + kept)


def chunk_tokens(layout: Layout, dtype: torch.dtype, device: torch.device, context: int, registered: bool) -> int:
    """Tokens of a context to encode at once, so that their scores take a small part of the memory.

    Those over the whole context, or where a fused kernel attends the earlier chunks (in the attention that is
    ``registered`` here), those over the chunk alone, which is then shorter than it could be where that is quicker.
    """
    free = free_memory(device)
    room = CHUNK if free is None else min(CHUNK, SHARE * free)
    scores = room / (COPIES * layout.heads * 4)
    fused = registered and layout.sees_all(context) and is_fused(device.type, dtype, context)
    whole = math.isqrt(int(scores))
    if context > whole and fused:
        return max(LEAST, min(whole, FUSED_CHUNK.get(device.type, whole)))
    return max(LEAST, int(scores / context))


def batches(lengths: Sequence[int], tokens: int, cost: int) -> list[list[int]]:
    """Indices in batches of similar length, at most ``tokens`` each after padding; at least one a batch.

    They are cut where they take least: every token counts, padding too, and every batch ``cost`` tokens more.
    """
    order = sorted(range(len(lengths)), key=lambda i: (lengths[i], i))
    best, cuts = np.zeros(len(order) + 1), [0]
    for end in range(1, len(order) + 1):
        longest = lengths[order[end - 1]]
        starts = np.arange(max(0, end - max(1, tokens // longest)), end)
        taken = best[starts] + (end - starts) * longest
        cuts.append(int(starts[taken.argmin()]))
        best[end] = taken.min() + cost
    found, end = [], len(order)
    while end:
        found.append(order[cuts[end] : end])
        end = cuts[end]
    return found[::-1]


def attempt(work: Callable[..., None], *given: Any) -> bool:
    """Whether ``work`` was done; False where memory ran out. Nothing of a failed pass is held on to."""
    try:
        work(*given)
        return True
    except RuntimeError as error:
        if not out_of_memory(error):
            raise
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return False


def halved(work: Callable[[int], Thing], size: int) -> Thing | None:
    """What ``work`` gives of the first size that memory holds, of ``size``, half of it and so on; None of none."""
    found: list[Thing] = []

    def keep(size: int) -> None:
        found.append(work(size))

    while not attempt(keep, size):
        if size == 1:
            return None
        size //= 2
    return found[0]
