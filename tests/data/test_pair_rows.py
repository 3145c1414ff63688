"""Rows of pairs: where they are cut, what stands second, and what they depend on."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.errors import UserError
from data.formats import rows_of
from data.loader import batches
from data.pair_rows import PairRows
from tests.data.corpora import VOCABULARY
from tests.data.sentence_case import SEP, documents, plain_packed, plain_units, split_of_sentences

LENGTHS = np.random.default_rng(0).integers(1, 14, (30, 20)).tolist()
SPLIT = split_of_sentences(LENGTHS)
LENGTH = 40


def segments(row_L):
    """The two segments of a row, which must be laid out as BERT's are."""
    row_L = row_L.tolist()
    first, second = (place for place, token in enumerate(row_L) if token == SEP)
    assert row_L[0] == VOCABULARY.cls and set(row_L[second + 1 :]) <= {VOCABULARY.pad}
    return row_L[1:first], row_L[first + 1 : second]


def expected_rows(lengths, length, sentences):
    """Units of each row."""
    rows = []
    for units in plain_units(lengths, (length - 3) // 2):
        if sentences:
            rows += [list(pair) for pair in zip(units[::2], units[1::2], strict=False)]
        else:
            rows += [row for row in plain_packed(units, length - 3) if len(row) > 1]
    return rows


@settings(deadline=None)
@given(documents, st.integers(8, 40), st.booleans(), st.sampled_from(['next', 'swapped']), st.integers(0, 5))
def test_a_row_is_cut_between_its_sentences(lengths, length, sentences, second, epoch):
    split, expected = split_of_sentences(lengths), expected_rows(lengths, length, sentences)
    if not expected:
        with pytest.raises(UserError, match='no document has two sentences'):
            PairRows(split, length, VOCABULARY, sentences, second)
        return
    rows = PairRows(split, length, VOCABULARY, sentences, second)
    assert len(rows) == len(expected)
    cut = rows.cut(3, epoch, np.arange(len(rows)))
    labels = np.zeros(len(rows)) if cut.pair_labels is None else cut.pair_labels
    assert (cut.pair_labels is None) == (second == 'next')
    for row_L, label, units in zip(cut.tokens, labels, expected, strict=True):
        found = segments(row_L)[:: -1 if label else 1]
        cuts = [
            (split.tokens[units[0][0] : middle[0]].tolist(), split.tokens[middle[0] : units[-1][1]].tolist())
            for middle in units[1:]
        ]
        assert found in cuts


@pytest.mark.parametrize('sentences', [False, True])
def test_random_seconds_are_whole_sentences_of_another_document(sentences):
    # Every document has tokens of its own.
    tokens = SPLIT.tokens.copy()
    for number, (start, end) in enumerate(zip(SPLIT.document_offsets, SPLIT.document_offsets[1:], strict=False)):
        tokens[start : end - 1] = 5 + number
    rows = PairRows(dataclasses.replace(SPLIT, tokens=tokens), LENGTH, VOCABULARY, sentences, 'random')
    ids = np.arange(len(rows))
    seconds, lengths = [], {0: [], 1: []}
    for epoch in range(20):
        cut = rows.cut(7, epoch, ids)
        for row_L, label in zip(cut.tokens, cut.pair_labels, strict=True):
            first, second = segments(row_L)
            assert len(set(first)) == len(set(second)) == 1 and (first[0] == second[0]) == (label == 0)
            lengths[label].append(len(first) + len(second))
            seconds += [second[0] - 5] * label
    counts = np.bincount(seconds, minlength=30)
    assert counts.min() > 0.6 * counts.mean()  # any other document, each as likely
    assert abs(np.mean(lengths[1]) / np.mean(lengths[0]) - 1) < 0.06  # so length does not tell
    share = len(lengths[1]) / (len(lengths[0]) + len(lengths[1]))
    assert abs(share - 0.5) < 4 * 0.5 / np.sqrt(20 * len(rows))
    # Whole sentences: they begin and end where one does.
    marked = split_of_sentences(LENGTHS)
    begins = np.zeros(len(marked.tokens), np.uint16) + 6
    begins[marked.sentence_offsets[:-1]] = 5
    begins[marked.sentence_offsets[1:] - 1] = 7
    begins[marked.document_offsets[1:] - 2] = 7
    begins[marked.document_offsets[1:] - 1] = SEP
    whole = PairRows(dataclasses.replace(marked, tokens=begins), LENGTH, VOCABULARY, sentences, 'random')
    ends = [segment[-1] for row_L in whole.cut(7, 0, ids, exchanged=True).tokens for segment in segments(row_L)]
    assert np.mean(np.array(ends) != 6) > 0.9  # sentences of one token begin and end at once


@pytest.mark.parametrize(('form', 'second'), [('segment_pairs', 'random'), ('sentence_pairs', 'swapped')])
def test_a_row_depends_on_seed_length_and_position_alone(form, second):
    rows = rows_of(SPLIT, LENGTH, VOCABULARY, form, second)
    options = dict(length=LENGTH, form=form, second=second)
    whole = list(batches(SPLIT, VOCABULARY, seeds=[1, 2], batch_size=6, start=0, steps=60, **options))
    tokens = np.concatenate([batch.tokens_SxBxL for batch in whole], axis=1)
    labels = np.concatenate([batch.pair_labels_SxB for batch in whole], axis=1)
    ids, epochs = (np.concatenate([batch[i] for batch in whole], axis=1) for i in (1, 2))
    for seed in (0, 1):
        for epoch in range(360 // len(rows)):
            assert sorted(ids[seed][epochs[seed] == epoch]) == list(range(len(rows)))
    # Another seed beside it, another start, another batch size.
    alone = list(batches(SPLIT, VOCABULARY, seeds=[2], batch_size=5, start=35, steps=40, **options))
    np.testing.assert_array_equal(np.concatenate([b.tokens_SxBxL for b in alone], axis=1)[0], tokens[1, 35:235])
    np.testing.assert_array_equal(np.concatenate([b.pair_labels_SxB for b in alone], axis=1)[0], labels[1, 35:235])
    again = rows.cut(np.array([1, 2])[:, None], epochs, ids)
    np.testing.assert_array_equal(again.tokens, tokens)
    np.testing.assert_array_equal(again.pair_labels, labels)
    # The same row in other epochs and for other seeds is drawn anew.
    drawn = rows.cut(np.arange(40)[:, None], np.arange(40), 0)
    assert 0.4 < drawn.pair_labels.mean() < 0.6 and len(np.unique(drawn.tokens.reshape(1600, -1), axis=0)) > 20 * (
        form == 'segment_pairs'
    )


def parts_of_sentences(lengths, length, second, whole):
    """Of a split whose tokens are their places: how many rows, and the share of segments that cut a sentence."""
    split = split_of_sentences(lengths)
    places = np.where(split.tokens == SEP, SEP, 100 + np.arange(len(split.tokens))).astype(np.uint16)
    rows = PairRows(dataclasses.replace(split, tokens=places), length, VOCABULARY, False, second, whole)
    begins, ends = set(split.sentence_offsets[:-1].tolist()), set((split.sentence_offsets[1:] - 1).tolist())
    ends |= set((split.document_offsets[1:] - 2).tolist())
    cut = rows.cut(5, 0, np.arange(len(rows)), exchanged=True)
    found = [segment for row_L in cut.tokens for segment in segments(row_L)]
    return len(rows), np.mean([segment[0] - 100 not in begins or segment[-1] - 100 not in ends for segment in found])


@settings(deadline=None)
@given(documents, st.integers(8, 40))
def test_whole_rows_have_no_part_of_a_sentence(lengths, length):
    split = split_of_sentences(lengths)
    begins = set(split.sentence_offsets.tolist())
    ends = begins | {end - 1 for end in split.document_offsets[1:].tolist()}  # before [SEP]
    expected = sum(
        all(start in begins and stop in ends for start, stop in row) for row in expected_rows(lengths, length, False)
    )
    if not expected:
        with pytest.raises(UserError, match='has two (whole )?sentences'):
            parts_of_sentences(lengths, length, 'swapped', True)
        return
    assert parts_of_sentences(lengths, length, 'swapped', True) == (expected, 0.0)


def test_random_seconds_of_whole_rows_are_whole_too():
    rows, share = parts_of_sentences(LENGTHS, 20, 'random', False)
    whole_rows, whole_share = parts_of_sentences(LENGTHS, 20, 'random', True)
    assert 20 < whole_rows < rows and whole_share == 0 and share > 0.3


def test_exchanged_can_be_said_for_all():
    for second in ('random', 'swapped'):
        rows = PairRows(SPLIT, LENGTH, VOCABULARY, False, second)
        ids = np.arange(len(rows))
        kept, other = (rows.cut(0, 0, ids, exchanged=exchanged) for exchanged in (False, True))
        assert not kept.pair_labels.any() and other.pair_labels.all()
        for row_L, exchanged_L in zip(kept.tokens, other.tokens, strict=True):
            (a, b), (c, d) = segments(row_L), segments(exchanged_L)
            assert (c, d) == (b, a) if second == 'swapped' else (c == a and d != b)


def test_joins_lie_as_their_tokens():
    cut = PairRows(split_of_sentences(LENGTHS, joins=True), LENGTH, VOCABULARY, False, 'random').cut(0, 0, np.arange(9))
    np.testing.assert_array_equal(cut.joins, (cut.tokens > 4) & (cut.tokens % 3 == 0))


def test_random_seconds_need_another_document():
    with pytest.raises(UserError, match='there is one document alone: use --objective.name mlm_sop'):
        PairRows(split_of_sentences([[5, 5, 5]]), 20, VOCABULARY, False, 'random')
