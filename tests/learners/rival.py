"""Prompts for learners that put something in the place of the demonstrations, and what these then do."""

from iclgd.prompts import Demo, Prompts
from tiny import tokens


def asked(demos: int = 4) -> Prompts:
    """Labels of two tokens and of one."""
    texts = [tuple(tokens(1, 5 + i, i)[0].tolist()) for i in range(demos + 5)]
    labels = ((7, 11), (9,))
    shown = tuple(Demo(text + labels[i % 2], labels[i % 2]) for i, text in enumerate(texts[:demos]))
    return Prompts((1,), shown, (5,), tuple(texts[demos:]), labels, (0, 1, 0, 1, 0))


def traced(learner, subject, prompts):
    with learner.learn(subject, prompts) as predictor:
        return predictor.trace(prompts)
