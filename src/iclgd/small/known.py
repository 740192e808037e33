"""Learners that a small model may be held against, by name; nothing is imported before one is asked for.

A learner is a builder: it takes the family, a sample to tune on and a number of steps, and returns what answers
episodes, by name.
"""

from typing import Any

from iclgd.errors import Refusal
from iclgd.registry import Registry, suggest

REFERENCES: Registry[Any] = Registry("learner", "iclgd linear train --help", "iclgd.references")

for _name, _builder, _summary in (
    ("gd", "gd", "Gradient descent from 0 at its best rate."),
    ("gd++", "gdpp", "Gradient descent that also shrinks the inputs."),
    ("momentum", "momentum", "Heavy-ball gradient descent."),
    ("preconditioned", "preconditioned", "Gradient descent with a matrix for a rate, its own at each step."),
    ("ridge", "ridge", "Ridge regression at its best penalty."),
    ("newton", "newton", "Newton's iteration for the inverse."),
    ("least-squares", "least_squares", "The least-squares weights of least norm."),
    ("mesa", "mesa", "Ridge regression kept up one demonstration after another, as a mesa layer does."),
    ("delta", "delta", "The delta rule: one demonstration a step, as many passes as layers."),
    ("gated-delta", "gated_delta", "The delta rule from a state that decays."),
    ("longhorn", "longhorn", "The proximal step of one demonstration after another."),
    ("ttt", "ttt", "Gradient steps on mini-batches of demonstrations."),
    ("kernel", "FunctionalDescent", "Functional gradient descent; kernel:kernel=exponential chooses the kernel."),
    ("averaging", "averaging", "The mean of label times input."),
    ("nearest", "neighbours", "The mean label of the nearest demonstrations."),
    ("zero", "zero", "0, whatever was shown; always in the table."),
):
    REFERENCES.add(_name, f"iclgd.small.references:{_builder}", _summary)

KINDS = ("softmax", "linear", "exponential", "relu", "rbf", "delta", "gated-delta", "longhorn", "ttt", "mesa")
"""What a layer can be: attention by softmax or a kernel (`kernels.KERNELS`), or a state that learns (`fast.RULES`)."""


def check_kind(name: str) -> str:
    """The name of a kind of layer, refused if there is none."""
    if name not in KINDS:
        raise Refusal(f'no attention "{name}". {suggest(name, KINDS)}There are {", ".join(KINDS)}.')
    return name


IDENTITIES: Registry[Any] = Registry("identity", "iclgd identities --help", "iclgd.identities", home="iclgd.labs")
"""Equations that hold exactly, or to what chance leaves, by name: a function of a seed that gives what is left over.

It draws its own sizes and inputs, computes both sides by the functions that everything else here uses, and returns
numbers by name: ``residual`` is how far apart the sides are, relative to the largest number met.
"""
