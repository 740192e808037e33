"""Speed of the linear lab: `python benchmarks/linear.py`. Every ratio is measured in the same run.

1. Eight seeds trained at once against eight runs one after another, data drawing included.
2. A training step by number of demonstrations, where these are drawn and where only their second moment is.
3. The second-moment form against the token form, by number of demonstrations: a training step given the episodes.
4. If JAX is installed: a step of the same model against the shape of computation of von Oswald's public code
   (key, query, value and output matrices on all tokens, vmap over episodes, value_and_grad, Adam), written here.
"""

import argparse
import platform
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from record import Record

from iclgd.labs.linear.spec import TrainSpec
from iclgd.metrics.functions import half_square
from iclgd.small import attention
from iclgd.small import moments as moments_
from iclgd.small.attention import Weights
from iclgd.small.streams import stream
from iclgd.small.train import Adam, stack, train

SEEDS, STEPS = 8, 96
PUBLIC = 160  # steps beside the public code


def milliseconds(work: Callable[[], object], repeats: int = 7, clock: Callable[[], float] = time.process_time) -> float:
    """The least of a few timings, after one that is not counted.

    Processor time, which on one thread is what an idle machine takes, whatever else this one is doing.
    """
    work()
    times = []
    for _ in range(repeats):
        began = clock()
        work()
        times.append(clock() - began)
    return 1e3 * min(times)


def fit(spec: TrainSpec, seeds: list[int]) -> None:
    model, task, adam = spec.model, spec.family, Adam(torch.full((len(seeds),), spec.rate))
    by_moments = spec.draws == "moments"
    draw = partial(moments_.draw, task) if by_moments else task.draw
    batches = stream([(seed, draw) for seed in seeds], spec.batch)
    train(model.moment_loss if by_moments else model.loss, stack([model.init(s) for s in seeds]), batches, STEPS, adam)


def together(record: Record) -> None:
    rows = []
    for layers in (1, 2):
        for batch in (32, 64, 128, 512):
            e = TrainSpec(layers=layers, batch=batch)
            once = milliseconds(lambda e=e: fit(e, list(range(SEEDS))), 3) / STEPS
            apart = milliseconds(lambda e=e: [fit(e, [seed]) for seed in range(SEEDS)], 3) / STEPS
            rows.append([f"{layers} layers, batch {batch}", f"{once:.2f}", f"{apart:.2f}", f"{apart / once:.1f}"])
    record.add(f"{SEEDS} seeds at once", ["ms a step of all seeds", "at once", "one by one", "ratio"], rows)


def by_demonstrations(record: Record) -> None:
    """A whole training step, drawing included: demonstrations drawn, or their moment (normal inputs)."""
    rows, many = [], (10, 160, 640)
    for layers in (1, 2):
        for draws in ("tokens", "moments"):
            specs = [TrainSpec(task="gaussian", layers=layers, k=k, draws=draws) for k in many]
            times = [milliseconds(lambda s=s: fit(s, list(range(SEEDS))), 3) / STEPS for s in specs]
            rows.append([f"{layers} layers, {draws}", *(f"{time:.2f}" for time in times)])
    record.add("A step by demonstrations", [f"ms a step of {SEEDS} seeds", *(f"k = {k}" for k in many)], rows)


def moments(record: Record) -> None:
    """A step given what the form takes: tokens, or their second moment (computed once per episode, outside)."""
    rows = []
    for demos in (10, 40, 160):
        e = TrainSpec(layers=2, k=demos)
        episodes = e.family.draw(256, torch.Generator().manual_seed(0))
        state = attention.tokens(episodes.x, episodes.y, episodes.query)
        context, query = state[:, :demos], state[:, demos:]
        c = attention.moment(context)
        weights = Weights(*(value.requires_grad_() for value in e.model.init(0).values()))

        def by_moment(c=c, query=query, weights=weights, target=episodes.target) -> object:
            last = attention.query_states(c, query, weights, 2)[-1]
            return torch.autograd.grad(half_square(-last[..., -1:], target), weights)

        def by_token(state=state, demos=demos, weights=weights, target=episodes.target) -> object:
            last = attention.states(state, demos, weights, 2)[-1]
            return torch.autograd.grad(half_square(attention.answer(last, demos, 1), target), weights)

        fast, slow = milliseconds(by_moment, 30), milliseconds(by_token, 30)
        making = milliseconds(lambda context=context: attention.moment(context), 30)
        rows.append([f"k = {demos}", f"{fast:.2f}", f"{slow:.2f}", f"{slow / fast:.1f}", f"{making:.2f}"])
    header = ["ms a step, 256 episodes, 2 layers", "by moment", "by token", "ratio", "making the moment"]
    record.add("Second moments", header, rows)


def public_shape(record: Record) -> None:
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        print("\nJAX is not installed: the comparison with the public code's shape is left out.")
        return
    batch, demos, dx = 2048, 10, 10
    e = TrainSpec(batch=batch)
    names = ("key", "query", "value", "out")

    def predict(params, tokens):  # [token, dim], the query last: keys and values from the others
        k, v = tokens[:-1] @ params["key"], tokens[:-1] @ params["value"]
        return -(tokens + (tokens @ params["query"]) @ k.T @ v @ params["out"])[-1, -1]

    def loss(params, tokens, target):
        return 0.5 * jnp.mean((jax.vmap(predict, (None, 0))(params, tokens) - target) ** 2)

    @jax.jit
    def step(params, first, second, key, t):
        kx, kw, kq = jax.random.split(key, 3)
        x = jax.random.uniform(kx, (batch, demos, dx), minval=-0.5, maxval=0.5)
        w, q = jax.random.normal(kw, (batch, dx)), jax.random.uniform(kq, (batch, dx), minval=-0.5, maxval=0.5)
        y = jnp.einsum("bnd,bd->bn", x, w)[..., None]
        tail = jnp.concatenate([q, jnp.zeros((batch, 1))], -1)[:, None]
        tokens = jnp.concatenate([jnp.concatenate([x, y], -1), tail], 1)
        grads = jax.grad(loss)(params, tokens, jnp.sum(q * w, -1))
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
        second = jax.tree.map(lambda v, g: 0.98 * v + 0.02 * g * g, second, grads)
        move = jax.tree.map(
            lambda m, v: 1e-3 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.98**t)) + 1e-8), first, second
        )
        return jax.tree.map(jnp.subtract, params, move), first, second

    key = jax.random.PRNGKey(0)
    keys = jax.random.split(key, len(names))
    params = {n: 0.05 * jax.random.normal(k, (dx + 1, dx + 1)) for n, k in zip(names, keys, strict=True)}
    zeros = jax.tree.map(jnp.zeros_like, params)

    def theirs() -> None:
        state = (params, zeros, zeros)
        for t in range(1, PUBLIC + 1):
            state = step(*state, jax.random.fold_in(key, t), float(t))
        jax.block_until_ready(state)

    def ours() -> None:
        adam = Adam(torch.tensor([1e-3]))
        train(e.model.loss, stack([e.model.init(0)]), stream([(0, e.family.draw)], batch), PUBLIC, adam)

    jax_ms, torch_ms = (milliseconds(work, 7, time.perf_counter) / PUBLIC for work in (theirs, ours))  # JAX has threads
    rows = [["public shape in JAX (jit, its own threads)", f"{jax_ms:.2f}", "1.0"]]
    rows += [["this lab (one thread; another draws)", f"{torch_ms:.2f}", f"{jax_ms / torch_ms:.1f}"]]
    record.add("Beside the public code", [f"one seed, batch {batch}", "ms a step", "times"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file for the tables")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    record = Record("Speed of the linear lab", f"{platform.machine()}, one thread")
    for part in (by_demonstrations, together, moments, public_shape):
        part(record)
    record.write(asked.out)


if __name__ == "__main__":
    main()
