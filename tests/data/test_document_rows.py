"""Rows of whole sentences of one document against a plain loop."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from data.document_rows import DocumentRows
from data.sentence_units import Units
from tests.data.corpora import VOCABULARY
from tests.data.sentence_case import SEP, documents, plain_packed, plain_units, split_of_sentences


@settings(deadline=None)
@given(documents, st.integers(3, 40), st.booleans())
def test_rows_are_the_sentences_of_a_document_that_fit(lengths, length, joins):
    split = split_of_sentences(lengths, joins)
    packed = [row for units in plain_units(lengths, length - 2) for row in plain_packed(units, length - 2)]
    rows = DocumentRows(split, length, VOCABULARY)
    assert len(rows) == len(packed)
    cut = rows.cut(0, 0, np.arange(len(rows)))
    for row_L, joins_L, units in zip(cut.tokens, cut.joins if joins else [None] * len(rows), packed, strict=True):
        body = split.tokens[units[0][0] : units[-1][1]].tolist()
        padding = length - 2 - len(body)
        assert row_L.tolist() == [VOCABULARY.cls, *body, SEP, *padding * [VOCABULARY.pad]]
        if joins:
            assert joins_L.tolist() == [False, *(token % 3 == 0 for token in body), *(padding + 1) * [False]]
    assert cut.pair_labels is None
    # Every token of the text is in one row, and no row holds the end of a document.
    assert sorted(cut.tokens[cut.tokens > 4]) == sorted(split.tokens[split.tokens != SEP])
    assert ((cut.tokens == SEP).sum(axis=1) == 1).all()


def test_a_split_that_is_cut_inside_a_document_loses_no_token():
    split = split_of_sentences([[4, 5], [6, 7, 8]])
    for count in range(1, len(split.tokens) + 1):
        cut = split.first(count)
        units = Units(cut, 5, VOCABULARY)
        total = np.sum(units.stops_U - units.starts_U)
        assert total == np.sum(cut.tokens != SEP)


def test_rows_of_any_shape():
    rows = DocumentRows(split_of_sentences([[4, 5], [6, 7, 8]]), 12, VOCABULARY)
    assert rows.cut(0, 0, np.zeros((2, 3, 0), int)).tokens.shape == (2, 3, 0, 12)
    assert rows.cut(np.array([[1], [2]]), 0, np.zeros((3, 2, 2), int)).tokens.shape == (3, 2, 2, 12)
