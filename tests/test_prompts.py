"""Prompts: pieces, positions, separators, and what fits."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iclgd.errors import Refusal
from iclgd.prompts import Demo, Prompts, build_prompts, first_tokens, how_many_fit, tokenize
from iclgd.spec import PromptSpec
from iclgd.tasks.episodes import Episode
from iclgd.tasks.text import Example, TextTask
from tiny import tiny_tokenizer

TASK = TextTask(
    name="mine",
    version=1,
    title="t",
    source="s",
    template="Sentence: {text} Label:",
    labels=("Negative", "Positive"),
)
TOKENIZER = tiny_tokenizer()


def ids(text: str) -> tuple[int, ...]:
    return tuple(TOKENIZER.convert_tokens_to_ids(text.split()))


def episode(*texts: str, demos: int = 2, task: TextTask = TASK) -> Episode:
    made = tuple(Example({"text": text}, i % 2) for i, text in enumerate(texts))
    return Episode(task, made[:demos], made[demos:], "here")


EPISODE = episode("bad film", "good film", "good cat", "good good cat")
DEMO = ids("Sentence : Ġbad Ġfilm ĠLabel : ĠNegative")
OTHER = ids("Sentence : Ġgood Ġfilm ĠLabel : ĠPositive")
QUERY = ids("Sentence : Ġgood Ġcat ĠLabel :")
LONGEST = len(QUERY) + 1 + 1  # the longer query and a label word
NEWLINES = ids("ĊĊ")


def test_the_context_is_bos_then_each_demonstration_with_a_separator_after_it():
    prompts = build_prompts(TOKENIZER, EPISODE, PromptSpec(), None)
    assert prompts.context == (1, *DEMO, *NEWLINES, *OTHER, *NEWLINES)
    assert prompts.queries[0] == QUERY
    assert prompts.answers == (0, 1)


def test_without_a_bos_token_nothing_is_added():
    prompts = build_prompts(tiny_tokenizer(bos=False), EPISODE, PromptSpec(), None)
    assert prompts.bos == ()
    assert prompts.context == (*DEMO, *NEWLINES, *OTHER, *NEWLINES)


@pytest.mark.parametrize("bos", [True, False])
@pytest.mark.parametrize("start, token", [("eos", 2), ("separator", NEWLINES[0])])
def test_every_prompt_can_start_with_another_token_with_demonstrations_and_without(bos, start, token):
    prompts = build_prompts(tiny_tokenizer(bos), EPISODE, PromptSpec(start=start), None)
    assert prompts.bos == (token,)
    assert prompts.context == (token, *DEMO, *NEWLINES, *OTHER, *NEWLINES)
    plain = build_prompts(tiny_tokenizer(bos), EPISODE, PromptSpec(), None)
    assert prompts.queries == plain.queries
    assert plain.bos == ((1,) if bos else ())
    assert PromptSpec() == PromptSpec(start="bos")


def test_a_start_that_there_is_no_token_for_is_refused():
    with pytest.raises(Refusal, match="the separator has no token"):
        build_prompts(TOKENIZER, EPISODE, PromptSpec(separator="", start="separator"), None)
    tokenizer = tiny_tokenizer()
    tokenizer.eos_token = None
    with pytest.raises(Refusal, match="no end-of-text token, so no prompt can start with it"):
        build_prompts(tokenizer, EPISODE, PromptSpec(start="eos"), None)


def test_a_start_takes_its_place_in_the_context():
    room = len(DEMO) + len(NEWLINES) + LONGEST
    tokenizer = tiny_tokenizer(bos=False)
    assert len(build_prompts(tokenizer, EPISODE, PromptSpec(truncate=True), room).demos) == 1
    assert len(build_prompts(tokenizer, EPISODE, PromptSpec(truncate=True, start="eos"), room).demos) == 0


def test_the_separator_may_be_the_end_of_text_token():
    prompts = build_prompts(TOKENIZER, EPISODE, PromptSpec(separator="eos"), None)
    assert prompts.context == (1, *DEMO, 2, *OTHER, 2)


def test_an_end_of_text_separator_without_such_a_token_is_refused():
    tokenizer = tiny_tokenizer()
    tokenizer.eos_token = None
    with pytest.raises(Refusal, match="no end-of-text token"):
        build_prompts(tokenizer, EPISODE, PromptSpec(separator="eos"), None)


def test_a_query_has_the_same_tokens_whatever_stands_before_it():
    few = build_prompts(TOKENIZER, episode("good cat", "good cat", demos=1), PromptSpec(), None)
    none = build_prompts(TOKENIZER, episode("good cat", "good cat", demos=0), PromptSpec(separator=" "), None)
    assert few.queries[0] == none.queries[0] == none.queries[1]


def test_demonstrations_end_in_their_label_word_and_know_where_they_lie():
    prompts = build_prompts(TOKENIZER, EPISODE, PromptSpec(), None)
    assert [prompts.context[span.start : span.stop] for span in prompts.context_demos] == [DEMO, OTHER]
    assert [demo.ids[-len(demo.label) :] for demo in prompts.demos] == [demo.label for demo in prompts.demos]


def test_queries_without_content_are_asked_in_the_same_words():
    prompts = build_prompts(TOKENIZER, EPISODE, PromptSpec(), None)
    assert prompts.blanks[-1] == tokenize(TOKENIZER, "Sentence:  Label:")
    bare = TASK.model_copy(update={"template": "{text}"})
    assert all(build_prompts(TOKENIZER, episode("a", demos=0, task=bare), PromptSpec(), None).blanks)


def test_a_control_token_spelled_in_the_data_is_only_text():
    spelled = build_prompts(TOKENIZER, episode("<s> </s> good", demos=0), PromptSpec(), None).queries[0]
    assert not {1, 2} & set(spelled)
    assert not {1, 2} & set(tokenize(TOKENIZER, "</s>"))


def test_a_prompt_that_does_not_fit_is_refused_with_how_many_would():
    room = 1 + len(DEMO) + len(NEWLINES) + LONGEST
    with pytest.raises(Refusal, match=rf"do not fit the model's context of {room} tokens; 1 would: lower `k`"):
        build_prompts(TOKENIZER, EPISODE, PromptSpec(), room)
    assert len(build_prompts(TOKENIZER, EPISODE, PromptSpec(), room + len(OTHER) + len(NEWLINES)).demos) == 2


def test_truncation_drops_the_last_demonstrations_and_is_recorded():
    room = 1 + len(DEMO) + len(NEWLINES) + LONGEST
    prompts = build_prompts(TOKENIZER, EPISODE, PromptSpec(truncate=True), room)
    assert [demo.ids for demo in prompts.demos] == [DEMO]
    assert [demo.ids for demo in prompts.dropped] == [OTHER]


def test_nothing_is_dropped_when_everything_fits():
    assert build_prompts(TOKENIZER, EPISODE, PromptSpec(truncate=True), 1000).dropped == ()


def test_a_query_longer_than_the_context_is_refused_even_with_truncation():
    with pytest.raises(Refusal, match=f"the longest query has {LONGEST} tokens, more than the model's context of 5"):
        build_prompts(TOKENIZER, EPISODE, PromptSpec(truncate=True), 5)


@given(st.lists(st.integers(2, 9), max_size=8), st.integers(1, 80), st.integers(0, 2), st.integers(0, 1))
def test_as_many_fit_as_leave_room_for_the_longest_query(lengths, room, separator, bos):
    demos = tuple(Demo((7,) * n, (7,)) for n in lengths)
    prompts = Prompts((1,) * bos, demos, (9,) * separator, ((5,) * 3, (5,) * 6), ((6,), (6, 6)), (0, 0))
    fits = how_many_fit(prompts, room)

    def total(count: int) -> int:
        return bos + sum(n + separator for n in lengths[:count]) + 6 + 2

    assert fits == max([-1, *(count for count in range(len(lengths) + 1) if total(count) <= room)])


def test_label_words_the_tokenizer_cannot_tell_apart_are_refused():
    task = TASK.model_copy(update={"labels": ("ß", "ø"), "join": ""})
    with pytest.raises(Refusal, match="the same tokens"):
        build_prompts(TOKENIZER, episode("a", "b", "c", task=task), PromptSpec(), None)


def test_a_label_word_without_tokens_is_refused():
    tokenizer = tiny_tokenizer()
    from tokenizers import normalizers

    tokenizer.backend_tokenizer.normalizer = normalizers.Replace(" Negative", "")
    with pytest.raises(Refusal, match='no token for the label word "Negative"'):
        build_prompts(tokenizer, EPISODE, PromptSpec(), None)


def test_an_empty_query_is_refused():
    task = TASK.model_copy(update={"template": "{text}"})
    with pytest.raises(Refusal, match="query 2 of mine is empty"):
        build_prompts(TOKENIZER, episode("good", "cat", "", demos=1, task=task), PromptSpec(), None)


@given(st.text(alphabet="abc Ċ<s>/\n{}", max_size=30))
@settings(max_examples=50)
def test_pieces_join_to_the_same_ids_as_their_texts_whatever_the_text(text):
    prompts = build_prompts(TOKENIZER, episode(text, text, demos=1), PromptSpec(), None)
    assert prompts.demos[0].ids == prompts.queries[0] + prompts.labels[0]


def test_labels_that_begin_alike_are_refused():
    assert first_tokens([(5, 6), (7,)], "mine") == (5, 7)
    with pytest.raises(Refusal, match="two label words of mine begin with the same token"):
        first_tokens([(5, 6), (5, 7)], "mine")
