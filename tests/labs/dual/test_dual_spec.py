"""What the dual lab can be asked, and the cells that it makes of it."""

from typing import Any

import pytest

from iclgd.errors import Refusal
from iclgd.labs.dual.modifications import MODIFICATIONS, TRAINED, chosen
from iclgd.labs.dual.modified import Regularised, RegularisedSlide
from iclgd.labs.dual.small import Recipe
from iclgd.labs.dual.spec import BoundSpec, CheckSpec, ModifySpec, TrainSpec
from iclgd.spec import Spec


def keyed(spec: Any) -> list[dict[str, Any]]:
    return [cell.spec.keyed() for cell in spec.cells()]


def test_a_cell_of_check_does_not_know_how_many_queries_there_are() -> None:
    few, many = CheckSpec(queries=2), CheckSpec(queries=5)
    assert keyed(few) == keyed(many)[:2]
    assert [cell.labels["query"] for cell in many.cells()] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("change", [{"dtype": "float32"}, {"separator": "; "}, {"truncate": True}])
def test_what_changes_a_number_is_in_the_key_of_a_cell(change: dict[str, Any]) -> None:
    assert keyed(CheckSpec(**change))[0] != keyed(CheckSpec())[0]


def test_a_device_is_not_in_the_key() -> None:
    assert keyed(CheckSpec(device="cpu")) == keyed(CheckSpec())


def test_the_demonstrations_held_out_are_in_the_key_of_a_bound() -> None:
    assert keyed(BoundSpec(held=2))[0] != keyed(BoundSpec(held=3))[0]


def test_modify_reads_plain_attention_first_and_once() -> None:
    cells = ModifySpec(modifications="negative:k=1,plain,centred").cells()
    assert [cell.labels["modification"] for cell in cells] == ["plain", "negative k=1", "centred"]
    assert keyed(ModifySpec(modifications="negative:k=1"))[1] != keyed(ModifySpec(modifications="negative:k=2"))[1]


def test_five_seeds_after_three_are_two_new_cells() -> None:
    three, five = TrainSpec(tasks="linear", seeds=3), TrainSpec(tasks="linear", seeds=5)
    known = {cell.spec.key() for cell in three.cells()}
    new = [cell for cell in five.cells() if cell.spec.key() not in known]
    assert {cell.labels["seed"] for cell in new} == {3, 4}
    assert len(new) == 2 * (1 + len(TRAINED))


def test_seeds_of_an_arm_are_one_group_and_a_languages_arms_share_theirs() -> None:
    regressions = TrainSpec(tasks="linear,sparse", arms="centred", seeds=2).cells()
    assert len({cell.group for cell in regressions}) == 4
    assert all(a.group == b.group for a, b in zip(regressions[::2], regressions[1::2], strict=True))
    words = TrainSpec(languages="a*bc*,random", arms="centred", seeds=2).cells()
    assert {cell.group for cell in words} == {"a*bc*", "random"}


def test_defaults_that_depend_on_the_task_are_written_out() -> None:
    assert (TrainSpec().tasks, TrainSpec().k) == (("linear", "trigonometric", "exponential"), 15)
    words = TrainSpec(languages="a*bc*,random")
    assert (words.tasks, words.k) == ((), 20)
    cells: dict[Any, Spec] = {cell.labels["task"]: cell.spec for cell in words.cells()}
    assert [cells[name].max_length for name in ("a*bc*", "random")] == [12, 8]
    assert all(cell.spec.max_length is None for cell in TrainSpec().cells())
    assert TrainSpec(languages="a*bc*", max_length=6).cells()[0].spec.words().max_length == 6
    again = TrainSpec.of(words.model_dump(mode="json"))
    assert again == words


def test_the_comma_of_an_expression_separates_no_languages() -> None:
    assert TrainSpec(languages="a{1,2}b, (ab)*").languages == ("a{1,2}b", "(ab)*")


def test_a_cells_words_are_those_of_its_seed() -> None:
    spec = TrainSpec(languages="a*bc*", alphabet="abcd", dx=4, seeds="7,")
    words = spec.cells()[0].spec.words()
    assert (words.seeds, words.dims, words.k, words.alphabet) == ((7,), 4, 20, "abcd")


def test_the_recipe_of_a_cell_is_what_was_asked() -> None:
    given = {"epochs": 3, "steps": 4, "batch": 5, "rate": 0.25, "episodes": 6}
    recipe = TrainSpec(**given).cells()[0].spec.recipe
    assert {name: getattr(recipe, name) for name in given} == given


@pytest.mark.parametrize(
    "kind, given, says",
    [
        (TrainSpec, {"tasks": "linnear"}, "no regression .*Did you mean linear"),
        (TrainSpec, {"tasks": "sine"}, "give `dx` 1"),
        (TrainSpec, {"rate": "nan"}, "`rate` .*finite number|`rate` must be above 0"),
        (TrainSpec, {"rate": 0}, "`rate` must be above 0"),
        (TrainSpec, {"k": 2}, "needs 3 demonstrations to choose from, not 2: raise `k`"),
        (TrainSpec, {"languages": "a*(b"}, "is not a regular expression"),
        (TrainSpec, {"languages": "a*bc*", "k": 7}, "give an even `k`, not 7"),
        (TrainSpec, {"languages": "a*bc*", "tasks": "linear"}, "give `tasks` or `languages`"),
        (TrainSpec, {"alphabet": "abc"}, "give `languages` with them"),
        (TrainSpec, {"max_length": 4}, "give `languages` with them"),
        (TrainSpec, {"arms": "negativ"}, "Did you mean negative"),
        (TrainSpec, {"seeds": 0}, "from 1 to 10000"),
        (CheckSpec, {"k": 0}, "`k` must be at least 1"),
        (CheckSpec, {"dtype": "bfloat16"}, "`dtype` takes float32, float64"),
        (BoundSpec, {"k": 4, "held": 4}, "of 4 demonstrations none is left when 4 are held out: lower `held`"),
        (BoundSpec, {"held": 0}, "`held` must be at least 1"),
        (ModifySpec, {"k": 2, "modifications": "negative:k=3"}, "needs 3 demonstrations .* not 2: raise `k`"),
        (ModifySpec, {"modifications": ""}, "`modifications` needs at least 1 value"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_sentence(kind: Any, given: dict[str, Any], says: str) -> None:
    with pytest.raises(Refusal, match=says):
        kind.of(given)


def test_as_many_demonstrations_as_a_modification_asks_for_are_enough() -> None:
    assert ModifySpec(k=3, modifications="negative:k=3").k == 3
    assert BoundSpec(k=5, held=4).held == 4


def test_what_a_modification_does_unasked() -> None:
    wanted = {
        "regularised": {"alpha": 0.5},
        "regularised-slide": {"alpha": 0.5},
        "augmented": {"c": 1.0},
        "negative": {"k": 3, "beta": 0.5},
        "arbitrary": {"k": 3, "beta": 0.5, "seed": 0},
        "centred": {"beta": 1.0},
    }
    for name, options in wanted.items():
        made = MODIFICATIONS[name]()
        assert {option: getattr(made, option) for option in options} == options


def test_which_modifications_are_run_unasked() -> None:
    slides = [f"{name}:alpha={{}}" for name in ("regularised", "regularised-slide")]
    few = [one.format(alpha) for one in slides for alpha in ("0.1", "-0.1")]
    few += ["negative:k=1:beta=0.1", "negative:k=3:beta=0.1", "arbitrary:k=3:beta=0.1", "centred:beta=0.1"]
    assert ModifySpec.of({}).modifications == chosen([*few, "augmented:c=0.1"])
    many = [one.format(alpha) for one in slides for alpha in ("0.5", "-0.5")]
    many += ["augmented:adapters=g1", "augmented:adapters=g2", "augmented:adapters=both"]
    many += ["negative:k=1:beta=0.1", "negative:k=1:beta=0.5", "negative:k=3:beta=0.1", "negative:k=3:beta=0.5"]
    assert TrainSpec.of({}).arms == chosen([*many, "arbitrary:k=3:beta=0.5", "centred:beta=1"])


def test_a_recipe_is_that_of_the_command_unless_it_says_otherwise() -> None:
    assert Recipe() == Recipe(epochs=100, steps=20, batch=128, rate=0.01, episodes=4096)
    assert TrainSpec.of({}).cells()[0].spec.recipe == Recipe()


def test_what_is_printed_is_held_against_the_loss_at_the_same_strength() -> None:
    assert RegularisedSlide().alpha == Regularised().alpha
