"""The published grid on random weights of a shape, through `iclgd compare` itself: one number, its wall time.

python benchmarks/grid.py --shape 1.3b --dtype float32 --data DIR --store FOLDER --jobs 4

Six tasks, three draws, gd and lcgd, three initialisations, up to 2,000 queries of a test set (the papers evaluated no
more of any); metrics and the nulls that need no training. The words are those of the embedded model's tokenizer; the
weights are random: time does not ask what they say. `--init`, `--task` and `--queries` take a part of it;
`--whole-cell` is one cell with every null. With one job the model is used as it was made, and its loading is not
counted; several jobs share the GPU, and each loads it from a folder beside the store, within the time that is told.
"""

import argparse
import time
from pathlib import Path

import torch
from record import Record
from subjects import SHAPES, VOCABULARY
from transformers import AutoTokenizer

import iclgd
from iclgd.models.load import embedded_folder
from iclgd.models.subject import Subject

TASKS = "sst2,sst5,mr,subj,agnews,cb"


def main() -> None:
    asked = _arguments()
    tokenizer = AutoTokenizer.from_pretrained(asked.tokenizer or embedded_folder("smollm2-135m"))
    model = _subject(asked, tokenizer)
    if asked.jobs > 1:
        model = _folder(model, asked.store.with_name(f"{asked.store.name}-model"))
    given = {"task": asked.task, "seeds": asked.seeds, "k": 32, "queries": asked.queries, "truncate": True}
    if asked.whole_cell:
        given |= {"init": "trained", "learners": "gd", "floor": False}
    else:
        given |= {"init": asked.init, "nulls": "random,uniform,other-query", "contrast": False, "floor": False}
    if asked.jobs > 1:
        given |= {"jobs": asked.jobs, "dtype": asked.dtype, "device": asked.device}
    began = time.perf_counter()
    study = iclgd.compare(model=model, data=asked.data, store=asked.store, **given)
    seconds = time.perf_counter() - began
    asked_of = sum(result.facts["queries"] for cell, result in study.found() if "learner" not in cell.labels)
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    what = f"{asked.shape} with random weights on {device} · {asked.dtype} · {asked_of} queries behind a prompt"
    record = Record("The published grid", f"{what} · {len(study.cells)} cells, {asked.jobs} at a time")
    measurable = torch.cuda.is_available() and asked.jobs == 1
    memory = f"{torch.cuda.max_memory_allocated() / 2**30:.1f}" if measurable else ""
    row = [asked.dtype, asked.task, asked.init, str(asked.seeds), str(len(study.cells)), f"{seconds:.0f}", memory]
    record.add("Wall time", ["arithmetic", "tasks", "weights", "draws", "cells", "seconds", "GiB"], [row])
    record.write(asked.out)


def _subject(asked: argparse.Namespace, tokenizer: object) -> Subject:
    from transformers import AutoModelForCausalLM
    from transformers.models.llama import LlamaConfig

    config = LlamaConfig(
        **SHAPES[asked.shape], vocab_size=max(VOCABULARY[asked.shape], len(tokenizer)), max_position_embeddings=2048
    )
    torch.manual_seed(0)
    with torch.device(asked.device):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16 if asked.dtype == "bfloat16" else None)
    made = Subject(model, tokenizer, asked.shape)
    torch.set_float32_matmul_precision("high" if asked.dtype == "tf32" else "highest")
    return made


def _folder(subject: Subject, folder: Path) -> str:
    """The model written down, for workers to load; gone from this process, so that the GPU is theirs."""
    subject.model.save_pretrained(folder)
    subject.tokenizer.save_pretrained(folder)
    subject.model.to("meta")
    torch.cuda.empty_cache()
    return str(folder)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="1.3b", choices=SHAPES)
    parser.add_argument("--dtype", default="float32", choices=("float32", "tf32", "bfloat16"))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--task", default=TASKS)
    parser.add_argument("--init", default="trained,random,embeddings")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--jobs", type=int, default=1, help="workers that share the GPU")
    parser.add_argument("--whole-cell", action="store_true", help="gd on one task with every null, and nothing else")
    parser.add_argument("--tokenizer", type=Path, help="folder of a tokenizer; that of the embedded model by default")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
