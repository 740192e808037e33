"""What a study of the languages lab is asked for, and its cells: one setting and one seed each."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from pydantic import model_validator

from iclgd.choices import parse_one
from iclgd.errors import Refusal
from iclgd.lab import Cell, Label, LabSpec
from iclgd.small.languages.data import ENCODER, Coding, Labels
from iclgd.small.languages.encoders import ENCODERS, Encoder
from iclgd.small.languages.expressions import BUILT_IN
from iclgd.small.languages.words import Negatives
from iclgd.spec import Seed, Seeds, option

Start = Literal["random", "gd"]
RATES = (0.03, 0.003)  # that train: on codes, and end to end
MANY = 32  # queries of a training episode where labels are drawn: many make the gradient less noisy
NAMED = ("language", "negatives", "encoder", "labels", "layers", "start", "min_length", "max_length")
REPORT = tuple(BUILT_IN[f"report-{i}"] for i in (1, 2, 3))
SEEDS = "How many seeds, trained together, or which: 2,3,4; a comma makes one a list: 7,  [default: 5]"


class Setting(Coding):
    """Everything that changes the numbers, but for the seed."""

    labels: Labels = option(
        "fixed", "Fixed, a random sign in every episode, or another language in every episode (--language random)."
    )
    layers: int = option(1, "LSA layers.", ge=1)
    start: Start = option(
        "random",
        "Where training starts: at random, or near a small step of plain GD and free to leave it.  "
        "[default: gd where labels are drawn; random with fixed labels or end to end]",
    )
    steps: int = option(2000, "Training steps of the layers.", ge=1)
    batch: int = option(128, "Episodes in a step, for each seed.", ge=1)
    queries: int = option(0, "Queries of a training episode.  [default: 32; 1 with fixed labels or end to end]", ge=1)
    rate: float = option(0.0, "Adam's learning rate.  [default: 0.03; 0.003 end to end]", gt=0)
    episodes: int = option(2000, "Episodes to judge on.", ge=1)

    @model_validator(mode="before")
    @classmethod
    def _usual(cls, given: Any) -> Any:
        """The defaults that depend on labels and encoder."""
        if not isinstance(given, Mapping):
            return given
        encoder: Encoder = parse_one(given.get("encoder", ENCODER), ENCODERS).make()
        one = encoder.end_to_end or given.get("labels", "fixed") == "fixed"
        usual = {"queries": 1 if one else MANY, "start": "random" if one else "gd", "rate": RATES[encoder.end_to_end]}
        return {**usual, **given}

    @model_validator(mode="after")
    def _check_training(self) -> "Setting":
        if (self.labels == "language") != self.random:
            raise Refusal(
                "a language is drawn for each episode where `labels` is language and `language` is random: give both."
            )
        if self.end_to_end and self.start != "random":
            raise Refusal("end to end there is no step of GD on codes to start near; leave out `start`.")
        return self

    def name(self) -> str:
        """The setting in a few words."""
        parts = [self.language, self.negatives, self.encoder.label, self.labels]
        parts += [f"length {self.max_length}"] if self.min_length == self.max_length else []
        parts += [f"{self.layers} layers"] if self.layers > 1 else []
        parts += ["random start"] if self.start == "random" and self.labels != "fixed" and not self.end_to_end else []
        parts += ["gd start"] if self.start == "gd" and self.labels == "fixed" else []
        return " · ".join(parts)

    def where(self) -> dict[str, Label]:
        """What tells the setting's cells from those of other settings of a study."""
        return {name: value if isinstance(value := getattr(self, name), int) else _text(value) for name in NAMED}

    def seed_cells(self, seeds: Iterable[int]) -> list[Cell]:
        """A cell for every seed; cells with the same words and codes are one group, which prepares them once."""
        group = self.part(Coding).key()[:16]
        return [
            Cell("languages run", self.part(SeedSpec, seed=seed), {**self.where(), "seed": seed}, group)
            for seed in seeds
        ]


def _text(value: Any) -> str:
    return str(getattr(value, "label", value))


class SeedSpec(Setting):
    """A setting with one seed: its own split, words outside, encoder and layers."""

    seed: Seed


class RunSpec(LabSpec, Setting):
    """Train layers of linear self-attention to say in context whether a word belongs to a language.

    Words become codes, labelled codes become episodes; the trained layers are held against gradient descent and other
    learners on words they have not seen, with the labels of the demonstrations as they are and shuffled.
    """

    seeds: Seeds = option((0, 1, 2, 3, 4), SEEDS)

    def cells(self) -> list[Cell]:
        return self.seed_cells(self.seeds)

    def settings(self) -> list[Setting]:
        return [self.part(Setting)]


class AllSpec(LabSpec):
    """Every kind of label, negative and code on three languages, and random languages."""

    seeds: Seeds = option((0, 1, 2, 3, 4), SEEDS)
    shrink: int = option(1, "Divide steps and numbers of languages, for a trial run.", ge=1)

    def cells(self) -> list[Cell]:
        """Random languages take longest and come first; then neighbours share words and codes."""
        every = [cell for setting in self.settings() for cell in setting.seed_cells(self.seeds)]
        order = list(dict.fromkeys(cell.group for cell in every))
        return sorted(every, key=lambda cell: (cell.labels["language"] != "random", order.index(cell.group)))

    def settings(self) -> list[Setting]:
        """In the order in which they are shown."""
        made = [
            self._setting(language=language, encoder=encoder, negatives=negatives, labels=labels)
            for encoder in ("autoencoder", "pca")
            for negatives in get_args(Negatives)
            for language in REPORT
            for labels in ("fixed", "sign")
        ]
        for language in REPORT:
            made += [self._setting(language=language, encoder="pca", labels="fixed", start="gd")]
            made += [
                self._setting(language=language, encoder=encoder, labels="sign", start="random")
                for encoder in ("autoencoder", "pca")
            ]
            made += [self._setting(language=language, encoder="pca", labels="sign", layers=2, rate=0.01)]
            made += [
                self._setting(language=language, encoder="end-to-end", labels=labels, steps=1500)
                for labels in ("fixed", "sign")
            ]
        made += [
            self._setting(language="random", encoder=code, labels="language", min_length=low, max_length=8)
            for code, low in (("autoencoder", 8), ("pca", 8), ("pca", 1))
        ]
        return made

    def _setting(self, **given: Any) -> Setting:
        given["steps"] = max(1, given.get("steps", 2000) // self.shrink)
        if given["encoder"] == "autoencoder":
            encoder = parse_one(given["encoder"], ENCODERS)
            given["encoder"] = encoder.changed(steps=max(1, encoder["steps"] // self.shrink))
        return Setting(**given, languages=max(10, 1000 // self.shrink))
