"""The order of rows: a bijection for each (seed, length, epoch), and no two of them alike."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from data.permutation import permute

SEED, LENGTH, EPOCH = st.integers(0, 2**64), st.sampled_from([64, 128, 512]), st.integers(0, 10**6)


@settings(deadline=None)
@given(SEED, LENGTH, EPOCH, st.integers(1, 3000))
def test_each_epoch_is_a_bijection(seed, length, epoch, n):
    np.testing.assert_array_equal(np.sort(permute(seed, length, epoch, np.arange(n), n)), np.arange(n))


@settings(deadline=None)
@given(SEED, LENGTH, EPOCH, st.integers(1, 10**10), st.lists(st.integers(0, 10**10), min_size=1, max_size=20))
def test_many_positions_at_once_are_as_one_by_one(seed, length, epoch, n, positions):
    positions = np.array(positions) % n
    epochs = epoch + np.arange(len(positions)) % 3
    together = permute(seed, length, epochs, positions, n)
    alone = [int(permute(seed, length, int(e), int(p), n)) for e, p in zip(epochs, positions, strict=True)]
    assert together.tolist() == alone and 0 <= min(alone) <= max(alone) < n


def test_another_seed_length_or_epoch_is_another_order():
    orders = [
        permute(*key, np.arange(500), 500) for key in [(0, 128, 0), (1, 128, 0), (0, 512, 0), (0, 128, 1), (1, 128, 1)]
    ]
    for i, order in enumerate(orders):
        for other in orders[:i]:
            assert (order == other).mean() < 0.02


def test_positions_and_rows_are_independent():
    for n in (5, 16, 37):
        for seed in range(3):
            rows = permute(seed, 128, np.arange(3000)[:, None], np.arange(n), n)
            counts = [np.bincount(rows[:, position], minlength=n) for position in range(n)]
            assert chisquare(np.ravel(counts)).pvalue > 1e-4
    orders = Counter(map(tuple, permute(0, 64, np.arange(4800)[:, None], np.arange(4), 4).tolist()))
    assert len(orders) == 24 and chisquare(list(orders.values())).pvalue > 1e-4
    order = permute(0, 128, 0, np.arange(29_000), 29_000)
    assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.03


@pytest.mark.parametrize('positions', [[-1], [0, 10]])
def test_positions_outside_are_refused(positions):
    with pytest.raises(ValueError, match='are not in'):
        permute(0, 128, 0, np.array(positions), 10)
