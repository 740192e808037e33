"""Cells of the dual lab: every head's dual, the bound, attention modified in a model and trained from scratch."""

from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from iclgd.choices import parse_one
from iclgd.labs.dual import bound, heads, small
from iclgd.labs.dual.modifications import MODIFICATIONS, TRAINED
from iclgd.labs.dual.modified import Modification
from iclgd.labs.dual.pretrained import ModifiedInContext, with_adapters
from iclgd.models.subject import Subject
from iclgd.prompts import build_prompts
from iclgd.small.languages.prepare import Data, prepare
from iclgd.spec import EpisodeSpec, PromptSpec
from iclgd.tasks.episodes import load_episode
from little import little_task
from tiny import tiny_model, tiny_tokenizer

Arrays = dict[str, Tensor]
IN_A_MODEL = (
    "plain", "regularised:alpha=0.1", "regularised-slide:alpha=-0.1", "negative:k=3:beta=0.1", "augmented:c=0.1",
)  # fmt: skip


def dual_heads(architecture: str) -> Arrays:
    """Every head's dual in float64, the bound, and attention modified inside the model."""
    model = tiny_model(architecture, dtype=torch.float64)
    if architecture == "gpt-oss":
        model.set_experts_implementation("eager")  # the fast one does not know float64
    subject = Subject(model, tiny_tokenizer(), architecture)
    with TemporaryDirectory() as folder:
        episode = load_episode(str(little_task(Path(folder))), EpisodeSpec(k=4, queries=2))
    prompts = build_prompts(subject.tokenizer, episode, PromptSpec(), subject.room)
    query = prompts.queries[0]
    analysis = heads.analyse(subject, prompts, query, sizes=(8, 32))
    found = {f"head/{name}": value for name, value in vars(analysis).items()}
    for count, pair in bound.sweep(subject, prompts, query, (1, 2), 2).items():
        for split, one in zip(("own split", "best split"), pair, strict=True):
            found |= {f"bound/{count}/{split}/{f.name}": getattr(one, f.name) for f in fields(one)}
    for text in IN_A_MODEL:
        modification = with_adapters(parse_one(text, MODIFICATIONS).make(), subject)
        with ModifiedInContext(modification).learn(subject, prompts) as predictor:
            trace = predictor.trace(prompts)
        found |= {f"modified/{text}/scores": trace.scores, f"modified/{text}/outputs": trace.outputs[..., :4]}
    return found


def dual_trained() -> Arrays:
    """Test losses by epoch and seed: all arms on one regression, the plain one on others and on words."""
    recipe = small.Recipe(epochs=3, steps=8, batch=16, episodes=64)

    def on(sources: list[small.Source], modification: Modification) -> Tensor:
        return small.curves(list(enumerate(sources)), modification, recipe)

    tasks: dict[str, Any] = {name: small.find_task(name, 4, 6) for name in (*small.LINKS, "relu")}
    sources = {name: [small.Source(task, task)] * 3 for name, task in tasks.items()}
    words = prepare(Data(language="((a|b)c)*", encoder="pca", max_length=6, dims=4, k=6, seeds=3))
    sources["((a|b)c)*"] = [small.Source(*pair) for pair in words.tasks(6, True)]
    found = {f"{name}/plain": on(source, Modification()) for name, source in sources.items()}
    arms = {text: parse_one(text, MODIFICATIONS).make() for text in TRAINED}
    return found | {f"trigonometric/{text}": on(sources["trigonometric"], arm) for text, arm in arms.items()}
