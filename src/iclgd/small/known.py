"""Learners that a small model may be held against, by name; nothing is imported before one is asked for.

A learner is a builder: it takes the family, a sample to tune on and a number of steps, and returns what answers
episodes, by name.
"""

from typing import Any

from iclgd.registry import Registry

REFERENCES: Registry[Any] = Registry("learner", "iclgd linear train --help", "iclgd.references")

for _name, _builder, _summary in (
    ("gd", "gd", "Gradient descent from 0 at its best rate."),
    ("gd++", "gdpp", "Gradient descent that also shrinks the inputs."),
    ("momentum", "momentum", "Heavy-ball gradient descent."),
    ("preconditioned", "preconditioned", "A gradient step with a matrix for a rate."),
    ("ridge", "ridge", "Ridge regression at its best penalty."),
    ("newton", "newton", "Newton's iteration for the inverse."),
    ("least-squares", "least_squares", "The least-squares weights of least norm."),
    ("averaging", "averaging", "The mean of label times input."),
    ("nearest", "neighbours", "The mean label of the nearest demonstrations."),
):
    REFERENCES.add(_name, f"iclgd.small.references:{_builder}", _summary)
