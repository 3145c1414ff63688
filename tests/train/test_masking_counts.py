"""Which tokens are chosen, and how many: for any length, rate, number of documents and special tokens in a row."""

from fractions import Fraction
from functools import cache

import jax
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.train import reference_masking as reference
from train.masking import document_ids, mask_rows, maskable
from train.rates import LONGEST_ROW, UNITS

# Each length is one program, with a slot for every token and three copies: rates and rules are traced.
LENGTHS = {
    8: 'sentencepiece',
    9: 'wordpiece',
    17: 'sentencepiece',
    64: 'sentencepiece',
    128: 'wordpiece',
    512: 'wordpiece',
}
BATCH = 4
COPIES = 3


def vocabulary_for(length: int):
    return reference.VOCABULARIES[LENGTHS[length]]


def slots_for(length: int) -> int:
    return -(-length // 8) * 8


@cache
def program(vocabulary: str, slots: int, copies: int):
    vocabulary = reference.VOCABULARIES[vocabulary]

    @jax.jit
    def mask(tokens_BxL, row_ids_B, epochs_B, settings):
        ids_BxL = document_ids(tokens_BxL, vocabulary)
        return mask_rows(tokens_BxL, ids_BxL, row_ids_B, epochs_B, settings, vocabulary, slots, copies)

    return lambda *arrays: jax.tree.map(np.asarray, mask(*arrays))


def mask_copies(tokens_BxL, row_ids_B, epochs_B, settings):
    """All copies, at the settings given: leading axis B * COPIES."""
    length = tokens_BxL.shape[1]
    return program(LENGTHS[length], slots_for(length), COPIES)(tokens_BxL, row_ids_B, epochs_B, settings)


def mask_once(*arrays):
    """The first copy alone: what a program without copies gives."""
    return jax.tree.map(lambda array: array[::COPIES], mask_copies(*arrays))


@st.composite
def cases(draw):
    """Rows of one length, their numbers and epochs."""
    length = draw(st.sampled_from(sorted(LENGTHS)))
    documents, special = draw(st.integers(1, 6)), draw(st.sampled_from([0.0, 0.05, 0.5, 1.0]))
    tokens_BxL = reference.rows(draw(st.integers(0, 999)), BATCH, length, vocabulary_for(length), documents, special)
    row_ids_B = np.array(draw(st.lists(st.integers(0, 2**31 - 1), min_size=BATCH, max_size=BATCH)), np.int32)
    epochs_B = np.array(draw(st.lists(st.integers(0, 1000), min_size=BATCH, max_size=BATCH)), np.int32)
    return tokens_BxL, row_ids_B, epochs_B


rates = st.integers(0, UNITS).map(lambda units: units / UNITS) | st.sampled_from([0.0, 0.15, 0.3, 0.4, 0.5, 0.999, 1.0])
rules = st.sampled_from([(1.0, 0.0, 0.0), (0.8, 0.1, 0.1), (0.0, 1.0, 0.0), (0.7, 0.3, 0.0), (0.0, 0.0, 1.0)])


def ordinary(tokens_xL, length):
    return np.isin(tokens_xL, vocabulary_for(length).ordinary)


@given(cases(), rates, rules, st.integers(0, 2**32 - 1))
@hypothesis_settings(max_examples=150, deadline=None)
def test_count_positions_and_labels(case, rate, rule, seed):
    tokens_BxL, row_ids_B, epochs_B = case
    length = tokens_BxL.shape[1]
    masked = mask_once(tokens_BxL, row_ids_B, epochs_B, reference.settings(rate, rule=rule, seed=seed))
    for row, tokens_L in enumerate(tokens_BxL):
        ordinary_L = ordinary(tokens_L, length)
        number = reference.rounded(Fraction(str(rate)), int(ordinary_L.sum()))
        # Slots in use come first, and the rest weigh exactly nothing.
        slots_M = np.arange(slots_for(length))
        np.testing.assert_array_equal(masked.weights_BxM[row], (slots_M < number).astype(np.float32))
        positions = masked.positions_BxM[row][:number]
        assert len(set(positions.tolist())) == number
        assert ordinary_L[positions].all()
        np.testing.assert_array_equal(masked.labels_BxM[row], tokens_L[masked.positions_BxM[row]])
        untouched = np.setdiff1d(np.arange(length), positions)
        np.testing.assert_array_equal(masked.inputs_BxL[row][untouched], tokens_L[untouched])
        new = masked.inputs_BxL[row][positions]
        if rule[0] == 1:
            assert (new == vocabulary_for(length).mask).all()
        if rule[0] == 0:
            assert ordinary(new, length).all()
        if rule[2] == 1:
            np.testing.assert_array_equal(new, tokens_L[positions])


@given(cases(), rates, rates, rules)
@hypothesis_settings(max_examples=75, deadline=None)
def test_a_higher_rate_contains_a_lower_one(case, one, other, rule):
    low, high = (mask_once(*case, reference.settings(rate, rule=rule)) for rate in sorted([one, other]))
    in_low_BxM = low.weights_BxM > 0
    # By rank: the lower rate's targets are the first of the higher rate's.
    np.testing.assert_array_equal(low.positions_BxM[in_low_BxM], high.positions_BxM[in_low_BxM])
    assert (high.weights_BxM >= low.weights_BxM).all()
    # And what a token becomes does not depend on the rate either.
    changed_BxL = low.inputs_BxL != case[0]
    np.testing.assert_array_equal(low.inputs_BxL[changed_BxL], high.inputs_BxL[changed_BxL])


THREE_TOKENS = (np.array([[2, 7, 8, 9, 3, 0, 0, 0]] * BATCH, np.int32), np.arange(BATCH), np.zeros(BATCH, np.int32))


@given(cases(), rates, rates, rules, st.integers(0, 3), st.integers(0, 3))
@hypothesis_settings(max_examples=50, deadline=None)
@example(THREE_TOKENS, 0.5, 0.5, (1.0, 0.0, 0.0), 0, 0)  # half of 3 is 2: a tie
def test_as_plain_loops_do(case, corruption, prediction, rule, duplicates, noise):
    settings = reference.settings(corruption, prediction, rule, duplicates, seed=3, noise=noise)
    got = mask_copies(*case, settings)
    length = case[0].shape[1]
    want = reference.mask_rows(*case, settings, vocabulary_for(length), slots_for(length), COPIES)
    for field in got._fields:
        np.testing.assert_array_equal(getattr(got, field), getattr(want, field), err_msg=field)


@given(cases(), st.integers(1, UNITS), st.integers(1, UNITS))
@hypothesis_settings(max_examples=75, deadline=None)
def test_copies_share_out_the_predicted_tokens(case, corruption, prediction):
    """Each copy is corrupted at the corruption rate; no token is scored twice, or in a copy that shows it."""
    tokens_BxL, *_ = case
    length = tokens_BxL.shape[1]
    settings = reference.settings(corruption / UNITS, prediction / UNITS, (1.0, 0.0, 0.0))
    masked = mask_copies(*case, settings)
    for row, tokens_L in enumerate(tokens_BxL):
        number = int(ordinary(tokens_L, length).sum())
        each = reference.rounded(Fraction(corruption, UNITS), number)
        scored = []
        for copy in range(row * COPIES, row * COPIES + COPIES):
            changed = np.flatnonzero(masked.inputs_BxL[copy] != tokens_L)
            targets = masked.positions_BxM[copy][masked.weights_BxM[copy] > 0]
            assert len(changed) == each
            assert set(targets.tolist()) <= set(changed.tolist())
            scored += targets.tolist()
        assert len(set(scored)) == len(scored)
        assert len(scored) == min(reference.rounded(Fraction(prediction, UNITS), number), COPIES * each)


def some_rows(length=64):
    tokens_BxL = reference.rows(0, BATCH, length, vocabulary_for(length))
    return tokens_BxL, np.arange(BATCH), np.zeros(BATCH, np.int32)


def test_prediction_below_corruption_scores_the_first_ranks():
    tokens_BxL, *_ = case = some_rows()
    whole, part = mask_once(*case, reference.settings(0.4)), mask_once(*case, reference.settings(0.4, 0.2))
    np.testing.assert_array_equal(part.inputs_BxL, whole.inputs_BxL)
    for row, tokens_L in enumerate(tokens_BxL):
        number = reference.rounded(Fraction('0.2'), int(ordinary(tokens_L, 64).sum()))
        assert 0 < part.weights_BxM[row].sum() == number < whole.weights_BxM[row].sum()
        np.testing.assert_array_equal(part.positions_BxM[row][:number], whole.positions_BxM[row][:number])


def test_an_arm_that_needs_no_copies_scores_nothing_in_them():
    case, settings = some_rows(), reference.settings(0.4)
    alone, among = program('sentencepiece', 64, 1)(*case, settings), mask_copies(*case, settings)
    for field in alone._fields:
        np.testing.assert_array_equal(getattr(alone, field), getattr(among, field)[::COPIES], err_msg=field)
    assert not among.weights_BxM.reshape(BATCH, COPIES, -1)[:, 1:].any()


def test_a_slot_count_below_the_length_gives_the_same_targets():
    case, settings = some_rows(), reference.settings(0.15)
    few, many = program('sentencepiece', 16, COPIES)(*case, settings), mask_copies(*case, settings)
    np.testing.assert_array_equal(few.inputs_BxL, many.inputs_BxL)
    np.testing.assert_array_equal(few.positions_BxM, many.positions_BxM[:, :16])
    assert few.weights_BxM.sum() == many.weights_BxM.sum() > 0


@pytest.mark.parametrize('length', [8, 9])
def test_rows_without_anything_to_mask(length):
    vocabulary = vocabulary_for(length)
    tokens_BxL = np.full((BATCH, length), vocabulary.pad, np.int32)
    tokens_BxL[1] = vocabulary.mask
    tokens_BxL[2, :2] = vocabulary.cls, vocabulary.sep
    # Neither ids that the embedding table is padded with nor further special ids are tokens of text.
    tokens_BxL[3, ::2], tokens_BxL[3, 1::2] = vocabulary.size, vocabulary.size - 1 if length == 9 else vocabulary.unk
    masked = mask_copies(tokens_BxL, *some_rows()[1:], reference.settings(1.0, rule=(0.0, 1.0, 0.0)))
    np.testing.assert_array_equal(masked.inputs_BxL[::COPIES], tokens_BxL)
    assert not masked.weights_BxM.any()
    assert not maskable(tokens_BxL, np.ones_like(tokens_BxL), vocabulary).any()


def test_padding_by_document_id_alone_is_not_maskable():
    tokens_1xL = np.array([[2, 7, 8, 9, 3, 7]], np.int32)
    found_1xL = maskable(tokens_1xL, np.array([[1, 1, 1, 1, 1, 0]]), reference.SENTENCEPIECE)
    assert found_1xL.tolist() == [[False, True, True, True, False, False]]


def test_document_ids():
    tokens_BxL = np.array([[2, 7, 8, 3, 9, 3, 3, 0], [2, 7, 7, 7, 7, 7, 7, 3], [0] * 8], np.int32)
    want_BxL = [[1, 1, 1, 1, 2, 2, 3, 0], [1] * 8, [0] * 8]
    assert document_ids(tokens_BxL, reference.SENTENCEPIECE).tolist() == want_BxL


def test_long_rows():
    """The count stays exact up to the length at which it would overflow int32; longer rows are refused."""
    tokens_1xL = np.full((1, LONGEST_ROW), 7, np.int32)
    mask = program('sentencepiece', slots_for(LONGEST_ROW), 1)
    for rate in (0.15, 0.99999, 1.0):
        masked = mask(tokens_1xL, np.array([5]), np.array([0]), reference.settings(rate))
        positions = masked.positions_BxM[masked.weights_BxM > 0]
        assert len(set(positions.tolist())) == len(positions) == reference.rounded(Fraction(str(rate)), LONGEST_ROW)
    with pytest.raises(ValueError, match=f'up to {LONGEST_ROW}'):
        mask(np.full((1, LONGEST_ROW + 1), 7), np.array([5]), np.array([0]), reference.settings())
