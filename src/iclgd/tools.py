"""What a run is lent: subjects, episodes, what neighbouring cells have in common, and a way to say how far it is."""

from collections.abc import Callable, Hashable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from iclgd.errors import Refusal
from iclgd.spec import EpisodeSpec, ModelSpec

if TYPE_CHECKING:
    from iclgd.models.subject import Subject
    from iclgd.tasks.episodes import Episode

Thing = TypeVar("Thing")
Progress = Callable[[str, int], None]  # what is being done, and how many queries (or steps) of it were just finished
MEMORY = "memory:"  # begins the name of a model that was handed over as an object


def silent(_what: str, _done: int = 0) -> None:
    """Nobody is watching."""


class Tools:
    """Lent to a run. Nothing here changes a number: weights and data are named by the cell's identity."""

    def __init__(
        self, data: Path | None = None, progress: Progress = silent, subjects: "Mapping[str, Subject] | None" = None
    ):
        self.data, self.progress, self.subjects = data, progress, dict(subjects or {})
        self.budget = 1.0  # share of the usual batch, where memory ran out before
        self._shared: dict[Hashable, Any] = {}
        self._loaded: "tuple[ModelSpec, Subject] | None" = None

    def subject(self, spec: ModelSpec) -> "Subject":
        """The model of a spec; the last one is kept, so that cells in a row load it once."""
        if self._loaded is None or self._loaded[0] != spec:
            self._loaded = None  # one model in memory at a time
            self._loaded = (spec, self._load(spec))
        return self._loaded[1]

    def _load(self, spec: ModelSpec) -> "Subject":
        from iclgd.models.load import load_subject

        if not spec.name.startswith(MEMORY):
            return load_subject(spec, self.progress_note)
        if spec.name not in self.subjects:
            raise Refusal("this study is of a model that was in memory: load it again and give it as `model`.")
        from iclgd.models.load import set_products

        set_products(spec)  # whatever was set by whoever made the model, or by the one before it
        held = self.subjects[spec.name]
        if spec.init == "trained":
            return held
        from iclgd.models.subject import Subject
        from iclgd.models.untrained import reinitialise

        fresh = deepcopy(held.model)
        reinitialise(fresh, spec.init, spec.init_seed)
        return Subject(fresh, held.tokenizer, held.name)

    def within(self, batch: int) -> int:
        """How many tokens (rows, replicas) to take at once where ``batch`` are usual: fewer after memory ran out."""
        return max(1, int(batch * self.budget))

    def progress_note(self, what: str) -> None:
        self.progress(what, 0)

    def weights(self, spec: ModelSpec) -> str:
        """What names the weights of a model, whatever the model is called; fresh ones by how they are drawn, too."""
        from iclgd.models.hub import ask_hub
        from iclgd.models.identity import UNTRAINED, weights_identity

        held = spec.name.startswith(MEMORY)
        if not held:
            ask_hub(spec)
        name = spec.name if held else self.shared(("weights", spec), lambda: weights_identity(spec))
        return name if spec.init == "trained" else f"{name}, untrained {UNTRAINED}"

    def episode(self, task: str, spec: EpisodeSpec) -> "Episode":
        from iclgd.tasks.episodes import load_episode

        return self.shared(("episode", task, spec), lambda: load_episode(task, spec, self.data))

    def shared(self, what: Hashable, make: Callable[[], Thing]) -> Thing:
        """What was made before under this name by a cell of the same group, or made now."""
        if what not in self._shared:
            self._shared[what] = make()
        return self._shared[what]

    def forget(self) -> None:
        """The group is done: what its cells shared goes."""
        self._shared.clear()
