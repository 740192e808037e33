"""Learners: what turns demonstrations into a changed predictor.

A learner is a frozen dataclass whose fields are its options, with one method, ``learn(subject, prompts)``: a context
manager that yields a predictor and leaves the subject's weights as they were.
"""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from iclgd.registry import Registry

if TYPE_CHECKING:
    from iclgd.models.subject import Subject
    from iclgd.models.traces import Predictor
    from iclgd.prompts import Prompts


@runtime_checkable
class Learner(Protocol):
    def learn(self, subject: "Subject", prompts: "Prompts") -> "AbstractContextManager[Predictor]": ...


PROMPTED = ("zero-shot", "icl")  # what every study of learners has beside them, by these names
LEARNERS: Registry[Any] = Registry("learner", "iclgd known", "iclgd.learners", needs="learn")  # of classes
LEARNERS.add("gd", "iclgd.learners.descent:GradientDescent", "SGD on the demonstrations, one at a time (Dai 2022)")
LEARNERS.add("lcgd", "iclgd.learners.layercausal:LayerCausal", "layer-causal GD, as Deutch 2023's code has it")
LEARNERS.add("lcgd-paper", "iclgd.learners.layercausal:LayerCausalPaper", "the same as their equations have it")
LEARNERS.add("static-patch", "iclgd.learners.static_patch:StaticPatch", "one change of weights that stands in for them")
LEARNERS.add("task-vector", "iclgd.learners.task_vector:TaskVector", "one hidden state in their place (Hendel 2023)")
LEARNERS.add("function-vector", "iclgd.learners.function_vector:FunctionVector", "what a few heads write (Todd 2024)")
LEARNERS.add("in-context-vector", "iclgd.learners.context_vector:ContextVector", "steering along them (Liu 2024)")
