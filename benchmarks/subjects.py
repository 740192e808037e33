"""What is benchmarked: a model by name or a shape with random weights, and an episode in tokens."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from iclgd.models.subject import Subject
from iclgd.prompts import Demo, Prompts
from iclgd.spec import EpisodeSpec, ModelSpec, PromptSpec

Precision = str  # float32, tf32, bfloat16
SHAPES: dict[str, dict[str, Any]] = {
    "1.3b": {"hidden_size": 2048, "intermediate_size": 5504, "num_hidden_layers": 24, "num_attention_heads": 32},
    "7b": {"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32},
    "tiny": {"hidden_size": 128, "intermediate_size": 352, "num_hidden_layers": 4, "num_attention_heads": 8},
}
VOCABULARY = {"1.3b": 50272, "7b": 32000, "tiny": 512}


def subject(name: str, precision: Precision, device: str) -> Subject:
    """A model of that name, or a Llama of that shape with random weights."""
    dtype = {"bfloat16": "bfloat16"}.get(precision, "float32")
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    if name not in SHAPES:
        from iclgd.models.load import load_subject

        return load_subject(ModelSpec(name=name, dtype=dtype, device=device), lambda _what: None)
    from transformers import AutoModelForCausalLM
    from transformers.models.llama import LlamaConfig

    config = LlamaConfig(**SHAPES[name], vocab_size=VOCABULARY[name], max_position_embeddings=40_000)
    torch.manual_seed(0)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype))
    return Subject(model, None, f"{name} (random)")


def random_prompts(vocabulary: int, context: int, query: int, queries: int, demos: int = 32) -> Prompts:
    """An episode of random tokens: ``demos`` demonstrations that fill the context, and queries of one length."""
    generator = torch.Generator().manual_seed(0)

    def ids(length: int) -> tuple[int, ...]:
        return tuple(torch.randint(3, vocabulary, (length,), generator=generator).tolist())

    labels = ((3,), (4,))
    length = (context - 1) // demos - 1  # a separator of one token behind each
    if length < 2:
        raise SystemExit(f"{context} tokens of context are too few for {demos} demonstrations of two tokens or more")
    made = tuple(Demo(ids(length - 1) + labels[i % 2], labels[i % 2]) for i in range(demos))
    asked = tuple(ids(query) for _ in range(queries))
    return Prompts((1,), made, (2,), asked, labels, tuple(i % 2 for i in range(queries)))


def task_prompts(one: Subject, task: str, data: Path, k: int, queries: int) -> Prompts:
    """An episode of a real task in the subject's tokens."""
    from iclgd.prompts import build_prompts
    from iclgd.tasks.episodes import load_episode

    episode = load_episode(task, EpisodeSpec(k=k, queries=queries, seed=0), data)
    return build_prompts(one.tokenizer, episode, PromptSpec(), one.room)


@dataclass(frozen=True)
class Timing:
    """Seconds, the most memory that was in use (GPU only), and tokens that went through the model in that time."""

    seconds: float
    gib: float | None
    tokens: float = 0.0


def timed(work: Callable[[], object], device: torch.device, repeats: int = 3) -> Timing:
    """The least of a few timings, after one that is not counted."""
    cuda = device.type == "cuda"
    work()
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    seconds = []
    for _ in range(repeats):
        if cuda:
            torch.cuda.synchronize()
        began = time.perf_counter()
        work()
        if cuda:
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    return Timing(min(seconds), torch.cuda.max_memory_allocated() / 2**30 if cuda else None)


def ceiling(device: torch.device, precision: Precision) -> float:
    """FLOP/s of a large matrix product: what this machine can do in that precision."""
    size = 8192 if device.type == "cuda" else 2048
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    return 2 * size**3 / timed(lambda: a @ b, device, 5).seconds


def block_parameters(one: Subject) -> int:
    return sum(p.numel() for block in one.layout.blocks for p in block.parameters())
