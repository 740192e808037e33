"""The checker of types and shapes in signatures; an int passes for a float, as Python has it."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
