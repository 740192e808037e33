"""Membership of words in a regular language, learned in context."""

from iclgd.lab import GROUPS, LABS

GROUPS["languages"] = "Regular languages, learned in context by layers of attention."
LABS.add(
    "languages run",
    "iclgd.labs.languages.lab:RUN",
    "Train layers to say in context whether a word belongs to a language, and compare them with learners.",
)
LABS.add(
    "languages all", "iclgd.labs.languages.lab:ALL", "Every kind of label, negative and code on several languages."
)
LABS.add("languages sample", "iclgd.labs.languages.words:SAMPLE", "Words of a language, or of its complement.")
LABS.add("languages list", "iclgd.labs.languages.words:LIST", "The built-in languages and their automata.")
