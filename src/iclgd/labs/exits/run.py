"""Every block's output at the prompt's last token, read out by the unembedding head."""

import torch

from iclgd.bench import Bench
from iclgd.lab import Cell
from iclgd.labs.exits.lab import ExitsCell
from iclgd.results import Array, Result, array
from iclgd.tools import Tools


def run(cell: Cell, tools: Tools) -> Result:
    spec = cell.asks(ExitsCell)
    subject, episode = tools.subject(spec.model), tools.episode(spec.task, spec.episode)
    bench = Bench(subject, episode, spec.prompt, spec.episode.seed, tools.episode, tools.progress)
    words = torch.tensor([label[0] for label in bench.prompts.labels])
    answers = torch.tensor(bench.prompts.answers)
    arrays: list[Array] = []
    for learner, trace in (("zero-shot", bench.zero), ("icl", bench.icl)):
        said, right = [], []
        for layer in range(subject.layout.layers):
            hidden = trace.blocks[:, layer, 0].to(subject.device, subject.dtype)
            with torch.no_grad():
                logits = subject.unembed(hidden).cpu()
            said.append(logits.argmax(-1))
            right.append(logits[:, words].argmax(-1) == answers)
        agrees = torch.stack(said, 1) == said[-1][:, None]  # query layer
        arrays.append(array(agrees.float(), "query", "layer", quantity="agrees", learner=learner))
        arrays.append(array(torch.stack(right, 1).float(), "query", "layer", quantity="right", learner=learner))
    return Result(bench.facts() | {"model": subject.name}, arrays)
