"""Words, labels and splits: nothing gives the answer away."""

import itertools
import math
from typing import get_args

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from iclgd.errors import Refusal
from iclgd.small.languages.automaton import decode, encode
from iclgd.small.languages.encoders import centred, one_hot, principal
from iclgd.small.languages.expressions import language
from iclgd.small.languages.membership import Membership, accuracy, membership, shuffled, side, split_many, split_one
from iclgd.small.languages.regbench import random_languages
from iclgd.small.languages.words import Negatives, asked, distinct, edits, held_out, labelled, uniform

LENGTHS = range(1, 13)


def lengths(words, symbols):
    return (words < symbols).sum(1)


def strings(words):
    return {tuple(row) for row in words.tolist()}


@pytest.mark.parametrize("kind", get_args(Negatives))
@pytest.mark.parametrize("name", ["report-1", "report-2", "report-3", "tomita-4", "tomita-7"])
def test_members_are_members_others_are_not_and_none_comes_twice(name, kind):
    found = language(name)
    words = labelled(found, kind, LENGTHS, 64, np.random.default_rng(0))
    assert found.accepts(words.members).all()
    assert not found.accepts(words.others).any()
    assert len(strings(words.members)) == len(words.members)
    assert len(strings(words.others)) == len(words.others)
    assert len(words.members) == pytest.approx(len(words.others), rel=0.05)


@pytest.mark.parametrize("kind", ["edits", "complement"])
@pytest.mark.parametrize("name", ["report-1", "report-2", "report-3", "tomita-4"])
def test_length_gives_nothing_away(name, kind):
    found = language(name)
    words = labelled(found, kind, LENGTHS, 64, np.random.default_rng(0))
    ours, theirs = (np.bincount(lengths(part, found.symbols), minlength=13) for part in words)
    assert (ours == theirs).all()


def test_random_negatives_ignore_the_language():
    """Members of ((a|b)c)* have even lengths; blind negatives have all lengths alike."""
    words = labelled(language("report-2"), "random", LENGTHS, 64, np.random.default_rng(0))
    odd = lengths(words.others, 3) % 2
    assert 0.3 < odd.mean() < 0.7


def test_hard_negatives_are_one_or_two_edits_from_a_member():
    found = language("report-2")
    words = labelled(found, "edits", range(6, 7), 8, np.random.default_rng(0))

    def one_edit(word):
        spots = range(len(word))
        replaced = {word[:i] + c + word[i + 1 :] for i in spots for c in "abc"}
        moved = {(r := word[:i] + word[i + 1 :])[:j] + c + r[j:] for i in spots for j in spots for c in "abc"}
        return replaced | moved

    members = decode(found.words(np.arange(8), 6), "abc")
    near = set().union(*(one_edit(w) for m in members for w in {m} | one_edit(m)))
    assert set(decode(words.others, "abc")) <= near


def test_an_edit_keeps_the_length_and_reaches_every_neighbour():
    word = encode(["abca"], "abc")
    reached = set(decode(edits(np.repeat(word, 5000, 0), 3, np.random.default_rng(0)), "abc"))
    assert {len(other) for other in reached} == {4}
    spots = range(4)
    moved = {(r := "abca"[:i] + "abca"[i + 1 :])[:j] + c + r[j:] for i in spots for j in spots for c in "abc"}
    assert reached == moved | {"abca"}  # a replacement is a move to the same place


def test_complement_negatives_are_uniform():
    found, random = language("a*bc*"), np.random.default_rng(0)
    draws = [decode(labelled(found, "complement", range(3, 4), 64, random).others, "abc") for _ in range(2000)]
    counts = {}
    for word in itertools.chain(*draws):
        counts[word] = counts.get(word, 0) + 1
    assert len(counts) == 27 - 3
    assert chisquare(list(counts.values())).pvalue > 1e-3


def test_a_words_side_depends_on_the_word_and_the_seed_alone():
    words = distinct(uniform(5000, range(6, 13), 3, np.random.default_rng(0)))
    shown = held_out(words, 0)
    assert (held_out(words[::-1], 0) == shown[::-1]).all()
    assert shown.mean() == pytest.approx(0.4, abs=0.03)
    assert asked(words, 0).mean() == pytest.approx(0.5, abs=0.03)
    assert (asked(words, 0) & shown).mean() == pytest.approx(0.2, abs=0.03)  # independent
    assert (held_out(words, 1) & shown).mean() == pytest.approx(0.16, abs=0.03)


def test_siblings_that_differ_in_their_last_symbol_are_split_as_by_chance():
    """Were the last symbol mixed in badly, a test word would always have training words beside it."""
    words = np.array(list(itertools.product(range(4), repeat=8)))
    for chosen in (held_out(words, 0), asked(words, 0)):
        share = chosen.mean()
        together = np.bincount(chosen.reshape(-1, 4).sum(1), minlength=5)
        chance = [math.comb(4, k) * share**k * (1 - share) ** (4 - k) * len(words) / 4 for k in range(5)]
        assert chisquare(together, chance).pvalue > 1e-3


def test_where_edits_are_few_members_are_left_out_by_chance():
    kept = [
        strings(labelled(language("tomita-4"), "edits", range(7, 8), 64, np.random.default_rng(seed)).members)
        for seed in range(30)
    ]
    found = language("tomita-4")
    first, last = (strings(found.words(np.array([rank]), 7)) for rank in (0, found.count(7) - 1))
    counts = [sum(bool(word & part) for part in kept) for word in (first, last)]
    assert min(counts) > 0


@pytest.mark.parametrize("seed", range(5))
def test_no_string_is_on_two_sides(seed):
    split = split_one(language("report-3"), "complement", LENGTHS, seed)
    parts = [strings(np.concatenate(role)) for (words,) in split for role in words]
    for a, b in itertools.combinations(parts, 2):
        assert not a & b


def test_no_language_and_no_string_is_on_two_sides():
    drawn = []

    def families(random):
        for found in random_languages("abcd", random, (4, 6)):
            drawn.append(found)
            yield found

    split = split_many(families, 20, "complement", range(1, 9), 0)
    assert (len(split.train), len(split.test)) == (16, 4)
    train, test = (strings(np.concatenate([p for words in part for role in words for p in role])) for part in split)
    assert not train & test
    last = split.test[-1]
    assert drawn[-1].accepts(last.demos.members).all()
    assert not drawn[-1].accepts(last.queries.others).any()


@pytest.mark.parametrize(
    "name, alphabet, sentence",
    [
        ("a{13}", "", "has no words of length 1 to 12"),
        ("(a|b)*", "", "nothing to tell apart"),
        ("tomita-1", "", "allow longer with `max_length`"),
        ("abc|cba", "", "it has 2 words in all, so write a larger one"),
        ("[^ab]", "", "is the empty language"),
    ],
)
def test_a_language_that_cannot_be_split_gets_a_sentence(name, alphabet, sentence):
    with pytest.raises(Refusal, match=sentence):
        split_one(language(name, alphabet), "complement", LENGTHS, 0)


@pytest.fixture(scope="module")
def task():
    words = [side(labelled(language(n), "complement", LENGTHS, 64, np.random.default_rng(0)), 0, False) for n in NAMES]
    return words, membership(words, lambda w: one_hot(w, 3), 10, signs=False)


NAMES = ("report-1", "report-2")


def test_episodes_are_balanced_labelled_right_and_never_ask_what_they_show(task):
    _, family = task
    drawn = family.draw(400, torch.Generator().manual_seed(0))
    assert (drawn.y.sum(1) == 0).all()
    assert drawn.target.mean().abs() < 0.15
    back = drawn.x.unflatten(-1, (12, 4)).argmax(-1).numpy()  # one-hot codes are words again
    queries = drawn.query.unflatten(-1, (12, 4)).argmax(-1).numpy()[:, 0]
    languages = [language(name) for name in NAMES]
    used = set()
    for rows, labels, query, target in zip(back, drawn.y[..., 0].numpy(), queries, drawn.target[:, 0, 0], strict=True):
        fits = [i for i, one in enumerate(languages) if (one.accepts(rows) == (labels > 0)).all()]
        used |= set(fits)
        assert any(languages[i].accepts(query[None])[0] == (target > 0) for i in fits)
        assert tuple(query) not in strings(rows)
    assert used == {0, 1}


def test_a_random_sign_turns_all_labels_of_an_episode(task):
    words, _ = task
    family = membership(words[:1], lambda w: one_hot(w, 3), 10, signs=True)
    drawn = family.draw(500, torch.Generator().manual_seed(0))
    found = language(NAMES[0])
    back = drawn.x.unflatten(-1, (12, 4)).argmax(-1).numpy()
    sign = np.array([found.accepts(rows) for rows in back]) * 2 - 1
    turned = (sign * drawn.y[..., 0].numpy()).mean(1)
    assert set(turned.tolist()) == {-1.0, 1.0}
    assert abs(turned.mean()) < 0.15


def test_shuffling_moves_labels_only(task):
    drawn = task[1].draw(50, torch.Generator().manual_seed(0))
    mixed = shuffled(drawn, torch.Generator().manual_seed(1))
    assert (mixed.y.sort(1).values == drawn.y.sort(1).values).all()
    assert (mixed.y != drawn.y).float().mean() == pytest.approx(0.5, abs=0.1)
    assert mixed.x is drawn.x


def test_accuracy_counts_signs():
    assert accuracy(torch.tensor([[0.2], [-3.0], [0.1]]), torch.tensor([[1.0], [-1.0], [-1.0]])) == pytest.approx(2 / 3)


def test_principal_components_are_orthogonal_scaled_and_refused_beyond_the_rank():
    x = one_hot(uniform(300, LENGTHS, 3, np.random.default_rng(0)), 3)
    codes = principal(x, 10)(x)
    assert np.abs(codes.mean(0)).max() < 1e-4
    spread = codes.T @ codes / len(codes)
    assert np.trace(spread) == pytest.approx(10, rel=1e-4)
    assert np.abs(spread - np.diag(np.diag(spread))).max() < 1e-3
    assert (np.diff(np.diag(spread)) <= 1e-4).all()
    assert np.square(centred(x)(x)).sum(1).mean() == pytest.approx(x.shape[1], rel=1e-4)
    with pytest.raises(Refusal, match="span 35 dimensions, fewer than 40"):
        principal(x, 40)


@pytest.mark.parametrize("seed", [0, 1])
def test_one_language_is_split_in_exact_shares(seed):
    split = split_one(language("report-1"), "complement", LENGTHS, seed)
    (train,), (test,) = split
    for words, count in ((train, 94), (test, 62)):
        assert sum(len(part) for role in words for part in role) == count
    assert [len(part) for part in test.demos] == [15, 15]
    assert [len(part) for part in test.queries] == [16, 16]


def test_another_seed_splits_other_words():
    members = [strings(split_one(language("report-2"), "complement", LENGTHS, s).test[0].demos.members) for s in (0, 1)]
    assert members[0] != members[1]


def test_the_smallest_pool_that_is_split_has_three_words():
    """Ten members: four to test, two of them shown and two asked about, which is too few; twenty-two are enough."""
    with pytest.raises(Refusal, match="only 2 are left for a part that needs 3"):
        split_one(language("a{1,10}", "ab"), "complement", LENGTHS, 0)
    split = split_one(language("a+|bbb+", "ab"), "complement", LENGTHS, 0)
    assert split.test[0].fewest >= 3


@pytest.mark.parametrize("queries", [6, 7])
def test_many_queries_take_members_and_others_in_turn_and_spread_over_their_words(queries):
    codes = torch.zeros(1, 2, 2, 3, 1)
    codes[0, 0, :, :, 0] = torch.tensor([[-1.0, -2.0, -3.0], [1.0, 2.0, 3.0]])  # shown
    codes[0, 1, :, :, 0] = torch.tensor([[-4.0, -5.0, -6.0], [4.0, 5.0, 6.0]])  # asked
    family = Membership(codes, torch.full((1, 2, 2), 3), 4, False)
    drawn = family.draw(200, torch.Generator().manual_seed(0), queries=queries)
    assert torch.equal(drawn.target.sign(), drawn.query.sign())
    assert (drawn.target[:, 1:] == -drawn.target[:, :-1]).all()
    assert 0.4 < (drawn.target[:, 0] > 0).float().mean() < 0.6
    assert drawn.query.abs().min() == 4
    assert drawn.x.abs().max() == 3
    for words in drawn.query[..., 0]:
        mine = words[words > 0]
        if len(mine) == 3:  # as many as there are words: each comes once
            assert set(mine.tolist()) == {4.0, 5.0, 6.0}
    assert set(drawn.query.abs().flatten().tolist()) == {4.0, 5.0, 6.0}


def test_hard_negatives_of_one_length_are_no_more_of_the_first_than_of_the_last():
    """Were the first in alphabetical order kept where there are too many, non-members would begin with a."""
    firsts = [
        labelled(language("report-1"), "edits", range(8, 9), 64, np.random.default_rng(seed)).others[:, 0]
        for seed in range(40)
    ]
    assert (np.concatenate(firsts) == 2).mean() > 0.04


def test_the_test_side_has_the_words_that_are_held_out():
    words = labelled(language("report-2"), "complement", LENGTHS, 64, np.random.default_rng(0))
    for test in (True, False):
        for role, query in zip(side(words, 4, test), (False, True), strict=True):
            for part in role:
                assert len(part)
                assert (held_out(part, 4) == test).all()
                assert (asked(part, 4) == query).all()
