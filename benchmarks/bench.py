"""Speed on the machine at hand, every way in one run: `make bench`, or

python benchmarks/bench.py                                   the embedded model on this machine
python benchmarks/bench.py --model 1.3b --precision float32,tf32,bfloat16 --device cuda
python benchmarks/bench.py --parts training --replicas 24
python benchmarks/bench.py --model 1.3b --parts long --context 32000 --queries 64  and contexts of a 16th, a 4th

Timings are of one run and one machine; the ratios are what is compared. All ways must agree on the numbers, or no
timing is printed. `--out FILE.json` keeps the tables as a record for docs/performance.md.
"""

import argparse
import platform
from pathlib import Path

import long
import torch
import traces
import training
from record import Record
from subjects import (
    SHAPES,
    VOCABULARY,
    Timing,
    block_parameters,
    ceiling,
    random_prompts,
    subject,
    task_prompts,
)

from iclgd.models.subject import Subject
from iclgd.prompts import Prompts

WITHIN = {"float32": 1e-4, "tf32": 2e-2, "bfloat16": 5e-2}  # of the largest attention output
# of the length of the update; in bfloat16 a plain loop rounds most of its steps away: nothing to agree with
WITHIN_TRAINING = {"float32": 1e-3, "tf32": 1e-1, "bfloat16": float("inf")}


def main() -> None:
    asked = _arguments()
    record = Record("Speed")
    for precision in asked.precision.split(","):
        one = subject(asked.model, precision, asked.device)
        prompts = _prompts(one, asked)
        top = ceiling(one.device, precision)
        about = (
            f"{one.name} on {_machine(one)} · {len(prompts.context)} context tokens · {len(prompts.queries)} queries"
        )
        record.what = record.what or f"{about} · matrix products"
        record.what += f"{', ' if record.sections else ' '}{precision} {top / 1e12:.3g} TFLOP/s"
        print(f"\n{record.what}")
        for part in asked.parts.split(","):
            PARTS[part](record, one, prompts, precision, top, asked)
            record.write(asked.out)  # what is there so far
        del one
        if asked.device == "cuda":
            torch.cuda.empty_cache()


def trace_table(
    record: Record, one: Subject, prompts: Prompts, precision: str, top: float, asked: argparse.Namespace
) -> None:
    found = traces.compare(one, prompts, asked.few, asked.batch, WITHIN[precision])
    plain, weights = found["plain port"].seconds, block_parameters(one)
    rows = []
    for name, t in found.items():
        flops = 2 * weights * t.tokens / t.seconds
        share = f"{flops / top:.0%}" if name in traces.SHARED else ""  # others encode the context for every query
        through = f"{t.tokens / t.seconds:,.0f}", f"{flops / 1e12:.3g}"
        rows.append([name, _seconds(t), f"{plain / t.seconds:.1f}", *through, share, _memory(t)])
    header = ["traces of reading", "s a query", "times the plain port", "tokens/s", "TFLOP/s"]
    header += ["share of the ceiling", "GiB"]
    record.add(f"Traces, {precision}", header, rows)


def training_table(
    record: Record, one: Subject, prompts: Prompts, precision: str, _top: float, asked: argparse.Namespace
) -> None:
    found = training.compare(one, prompts, asked.replicas, WITHIN_TRAINING[precision])
    plain = {kind: t.seconds for (kind, way), t in found.items() if way == "plain loop"}
    rows = [
        [f"{kind}, {way}", _seconds(t), f"{plain[kind] / t.seconds:.1f}", _memory(t)]
        for (kind, way), t in found.items()
    ]
    record.add(f"Training, {precision}", ["finetuning", "s a step and finetuning", "times the plain loop", "GiB"], rows)


def long_table(
    record: Record, one: Subject, _prompts: Prompts, precision: str, top: float, asked: argparse.Namespace
) -> None:
    rows = []
    for share in (16, 4, 1):
        prompts = random_prompts(VOCABULARY[asked.model], asked.context // share, 24, asked.queries)
        rows.append(long.row(one, prompts, long.compare(one, prompts, asked.batch, WITHIN[precision]), top))
    record.add(f"Long contexts, {precision}", long.HEADER, rows)


PARTS = {"traces": trace_table, "training": training_table, "long": long_table}


def _prompts(one: Subject, asked: argparse.Namespace) -> Prompts:
    if asked.model in SHAPES:
        return random_prompts(VOCABULARY[asked.model], asked.context, 24, asked.queries)
    return task_prompts(one, asked.task, asked.data, 32, asked.queries)


def _machine(one: Subject) -> str:
    if one.device.type == "cuda":
        return torch.cuda.get_device_name()
    return f"{platform.machine()} with {torch.get_num_threads()} threads"


def _seconds(timing: Timing) -> str:
    return f"{timing.seconds:.3g}"


def _memory(timing: Timing) -> str:
    return "" if timing.gib is None else f"{timing.gib:.1f}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m", help=f"a model, or random weights of {', '.join(SHAPES)}")
    parser.add_argument("--precision", default="float32", help="of float32, tf32, bfloat16, separated by commas")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--task", default="sentiment", help="a task; sst2 with --data")
    parser.add_argument("--data", type=Path, help="folder of data sets")
    parser.add_argument("--context", type=int, default=801, help="context tokens, for random weights (long: at most)")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--few", type=int, default=4, help="queries of the slow ways")
    parser.add_argument("--batch", type=int, help="tokens a batch; found from memory by default")
    parser.add_argument("--replicas", type=int, default=8, help="finetunings at once")
    parser.add_argument("--parts", default="traces,training", help="of traces, training and, for random weights, long")
    parser.add_argument("--out", type=Path, help="JSON file for the tables")
    return parser.parse_args()


if __name__ == "__main__":
    main()
