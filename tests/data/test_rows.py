"""Rows against a plain loop over the tokens."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.errors import UserError
from data.rows import Rows
from tests.data.corpora import VOCABULARY, split_of


def plain_rows(tokens, length, keep_partial):
    """The definition, token by token."""
    rows, body = [], []
    for token in tokens:
        body.append(int(token))
        if len(body) == length - 2:
            rows.append([VOCABULARY.cls, *body, VOCABULARY.sep])
            body = []
    if body and keep_partial:
        rows.append([VOCABULARY.cls, *body, VOCABULARY.sep] + [VOCABULARY.pad] * (length - 2 - len(body)))
    return rows


@settings(deadline=None)
@given(st.lists(st.integers(3, 59), min_size=1, max_size=200), st.integers(3, 40), st.booleans(), st.data())
def test_gather_equals_a_plain_loop(tokens, length, keep_partial, data):
    expected = plain_rows(tokens, length, keep_partial)
    if not expected:
        with pytest.raises(UserError, match=f'too few for one row of length {length}'):
            Rows(split_of(tokens), length, VOCABULARY, keep_partial)
        return
    rows = Rows(split_of(tokens), length, VOCABULARY, keep_partial)
    assert len(rows) == len(expected)
    shape = data.draw(st.sampled_from([(), (0,), (5,), (2, 3)]))
    size = int(np.prod(shape, dtype=int))
    ids = data.draw(st.lists(st.integers(0, len(expected) - 1), min_size=size, max_size=size))
    gathered = rows.gather(np.array(ids, np.int64).reshape(shape))
    assert gathered.dtype == np.int32 and gathered.shape == (*shape, length)
    np.testing.assert_array_equal(gathered.reshape(-1, length), np.array(expected)[ids].reshape(-1, length))


def test_every_token_of_a_split_is_in_one_row():
    tokens = np.arange(5, 59).repeat(7)
    rows = Rows(split_of(tokens), 32, VOCABULARY, keep_partial=True)
    gathered = rows.gather(np.arange(len(rows)))
    counts = np.bincount(gathered.ravel(), minlength=60)[5:59]
    assert (counts == 7).all()


@pytest.mark.parametrize('ids', [[-1], [3], [0, 99]])
def test_rows_that_do_not_exist_are_refused(ids):
    with pytest.raises(IndexError, match='there are 3 rows'):
        Rows(split_of(range(5, 35)), 12, VOCABULARY).gather(ids)


def test_a_row_needs_room_for_a_token():
    with pytest.raises(ValueError, match='length is 2'):
        Rows(split_of(range(10)), 2, VOCABULARY)
