"""Which words, how they are split and coded: what numbers depend on before any label is given."""

from typing import TYPE_CHECKING, Literal

from pydantic import model_validator

from iclgd.choices import Choice, one_of
from iclgd.errors import Refusal
from iclgd.small.languages.automaton import MOST_WORDS
from iclgd.small.languages.encoders import ENCODERS, Encoder
from iclgd.small.languages.expressions import check_alphabet, language
from iclgd.small.languages.regbench import LETTERS
from iclgd.small.languages.words import Negatives
from iclgd.spec import Seeds, Spec, option

if TYPE_CHECKING:
    EncoderChoice = Choice
else:
    EncoderChoice = one_of(ENCODERS)

RANDOM = "random"  # instead of an expression: languages of random automata
Labels = Literal["fixed", "sign", "language"]
ENCODER = "autoencoder"  # unless another is asked for


class Coding(Spec):
    """Words of a language and their codes."""

    language: str = option("a*bc*", "Built-in name or expression; random: languages of random automata.")
    alphabet: str = option("", "More symbols than the expression has.")
    negatives: Negatives = option(
        "complement", "Words outside: blind to the language, one or two edits from a member, or uniform by length."
    )
    encoder: EncoderChoice = option(
        ENCODER, "How words become numbers: autoencoder, pca, end-to-end (an MLP before the layers) or yours."
    )
    min_length: int = option(1, "Shortest word.", ge=1)
    max_length: int = option(12, "Longest word.", ge=1, le=40)
    dims: int = option(10, "Numbers in a code.", ge=1, le=40)
    languages: int = option(1000, "How many random languages, a fifth of them held out.", ge=5)
    k: int = option(20, "Demonstrations in an episode, half of them members.", ge=2)

    @model_validator(mode="after")
    def _check_words(self) -> "Coding":
        if self.random:
            check_alphabet(self.letters)
            if len(self.letters) ** self.max_length > MOST_WORDS:
                raise Refusal(
                    f"there are more than 2⁶³ words of length {self.max_length} over {self.letters}; "
                    "lower `max_length`."
                )
        else:
            language(self.language, self.alphabet)  # refuses what is none
        if self.k % 2:
            raise Refusal(f"half of the demonstrations are members: give an even `k`, not {self.k}.")
        if self.min_length > self.max_length:
            raise Refusal(
                f"no word is at least {self.min_length} and at most {self.max_length} symbols long; "
                "lower `min_length` or raise `max_length`."
            )
        return self

    @property
    def random(self) -> bool:
        return self.language == RANDOM

    @property
    def letters(self) -> str:
        """The alphabet of random languages."""
        return self.alphabet or LETTERS

    @property
    def lengths(self) -> range:
        return range(self.min_length, self.max_length + 1)

    @property
    def end_to_end(self) -> bool:
        encoder: Encoder = self.encoder.make()
        return encoder.end_to_end


class Data(Coding):
    """Words and codes for several seeds: each has its own split, its own words outside and its own encoder."""

    seeds: Seeds = option((0, 1, 2, 3, 4), "How many seeds, or which: 5 is 0 to 4, and 7, is 7 alone.")
