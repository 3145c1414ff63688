import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.train.heldout_case import (
    LENGTH,
    SIZE,
    VOCABULARY,
    LetterTokenizer,
    cohort_of,
    log_probs,
    one_device,
    params_of,
    random_split,
    split_of,
    stacked,
    store_of,
)
from train import likelihood
from train.likelihood import likelihood_figures, variants, words_of

TOKENIZER = LetterTokenizer()


def figures_of(store, params_R, arms=(('a', 0, {}),), **evaluation):
    return likelihood_figures(store, cohort_of(*arms, **evaluation), params_R, LENGTH, one_device(), 1, 10)


def plain_words(tokens, whole):
    """Words as lists of positions, by a loop over the pieces."""
    words = []
    for position, token in enumerate(tokens):
        if token % 3 == 0 or position == 0:
            words.append([])
        words[-1].append(position)
    words = words if whole else words[:-1]
    return [word for word in words if all(tokens[position] >= 5 for position in word)]


@settings(deadline=None)
@given(st.lists(st.sampled_from([1, 5, 6, 7, 8, 9, 10, 33]), max_size=30), st.booleans())
def test_words_are_the_pieces_between_word_starts(tokens, whole):
    found = words_of(np.array(tokens, np.int32), TOKENIZER, whole)
    assert [list(word) for word in found] == plain_words(tokens, whole)


def test_equals_a_plain_loop_over_paragraphs_and_words():
    split = random_split(2, 5)
    params = [params_of(0, 3.0), params_of(1, 3.0)]
    arms = [('a', 0, {}), ('b', 1, {})]
    found = figures_of(store_of(split), stacked(*params), arms, likelihood_paragraphs=99)
    assert [(each['metric'], each['arm'], each['seed']) for each in found] == [
        ('likelihood', 'a', 0),
        ('likelihood', 'b', 1),
    ]
    for own, each in zip(params, found, strict=True):
        total, words = 0.0, 0
        for start, end in zip(split.paragraph_offsets, split.paragraph_offsets[1:], strict=False):
            tokens = [int(token) for token in split.tokens[start:end] if token != VOCABULARY.sep]
            if len(tokens) < 8:
                continue
            room = LENGTH - 2
            for word in plain_words(tokens[:room], whole=len(tokens) <= room):
                row = [VOCABULARY.cls, *tokens[:room], VOCABULARY.sep]
                row += [VOCABULARY.pad] * (LENGTH - len(row))
                for position in word:
                    row[1 + position] = VOCABULARY.mask
                log_probs_LxV = log_probs(own, np.array(row))
                total += sum(log_probs_LxV[1 + position, tokens[position]] for position in word)
                words += 1
        assert words > 20
        assert each['value'] == pytest.approx(total / words, rel=1e-5)


@pytest.mark.parametrize('batch_size', [1, 64])
def test_the_batch_size_changes_nothing(batch_size):
    store, params_R = store_of(random_split(2, 5)), stacked(params_of(0, 3.0))
    expected = figures_of(store, params_R, batch_size=7)[0]['value']
    assert figures_of(store, params_R, batch_size=batch_size)[0]['value'] == pytest.approx(expected, rel=1e-6)


def test_a_uniform_model_loses_log_v_for_each_piece_of_a_word():
    split = split_of([[[6, 7, 8, 9, 10, 11, 12, 13, 14]]])  # three words of three pieces
    found = figures_of(store_of(split), stacked(params_of(0, 0.0)))
    assert found[0]['value'] == pytest.approx(-3 * np.log(SIZE), rel=1e-5)


def test_the_pieces_of_one_word_are_masked_and_nothing_else():
    split = random_split(4, 8)
    rows = variants(split, TOKENIZER, LENGTH, 99)
    for inputs, positions, labels, weights, chosen in zip(*rows, strict=True):
        masked = np.flatnonzero(inputs == VOCABULARY.mask)
        assert list(np.flatnonzero(chosen)) == list(masked)
        assert list(positions[weights > 0]) == list(masked) == list(range(masked[0], masked[-1] + 1))
        word = labels[weights > 0]
        assert (word >= 5).all()
        assert TOKENIZER.starts_word[word[0]] or masked[0] == 1
        assert not TOKENIZER.starts_word[word[1:]].any()
        following = inputs[masked[-1] + 1]
        assert TOKENIZER.starts_word[following] or following in (VOCABULARY.sep, VOCABULARY.unk)


def test_words_of_a_paragraph_are_capped_and_spread(monkeypatch):
    split = split_of([[list(range(6, 20))]])
    assert len(variants(split, TOKENIZER, LENGTH, 1).inputs_BxL) == 5
    monkeypatch.setattr(likelihood, 'WORDS', 2)
    rows = variants(split, TOKENIZER, LENGTH, 1)
    assert list(rows.positions_BxM[:, 0]) == [1, 7], 'the first and the third of five words'


def test_none_there():
    params_R = stacked(params_of(0))
    assert figures_of(store_of(split_of([[[5, 6]]])), params_R) == []
