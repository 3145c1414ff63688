"""Batches by length: each row once an epoch, the same shapes for all seeds, exact resume, outputs back in place."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.tasks.buckets import (
    bucket_lengths,
    evaluation_batches,
    gather,
    scatter,
    steps_per_epoch,
    training_batches,
)
from data.tasks.features import Features
from tests.data.corpora import VOCABULARY


def features_of(lengths, kind='classification', max_length=64):
    """Rows of these lengths, whose tokens tell where they stand."""
    total = sum(lengths)
    tokens_T = np.arange(10, 10 + total, dtype=np.int32)
    targets = {
        'classification': np.arange(len(lengths), dtype=np.int32),
        'regression': np.arange(len(lengths), dtype=np.float32) / 4,
        'tagging': np.arange(total, dtype=np.int32),
        'span': np.arange(2 * len(lengths), dtype=np.int32).reshape(-1, 2),
    }[kind]
    return Features(
        kind,
        VOCABULARY,
        max_length,
        tokens_T,
        tokens_T % 2,
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.arange(len(lengths), dtype=np.int32),
        targets,
    )


LENGTHS = st.lists(st.integers(2, 64), min_size=1, max_size=60)


@given(LENGTHS, st.integers(1, 9), st.integers(1, 3), st.integers(1, 3))
@settings(deadline=None, max_examples=60)
def test_every_seed_sees_every_row_once_an_epoch(lengths, batch_size, seeds, epochs):
    features = features_of(lengths)
    steps = steps_per_epoch(features, batch_size)
    batches = list(training_batches(features, seeds=range(seeds), batch_size=batch_size, epochs=epochs))
    assert steps == -(-len(lengths) // batch_size) and len(batches) == steps * epochs
    for epoch in range(epochs):
        inside = batches[epoch * steps : (epoch + 1) * steps]
        for seed in range(seeds):
            rows = np.concatenate([batch.rows_B[seed] for batch in inside])
            assert sorted(rows[rows >= 0]) == list(range(len(lengths)))
        # One batch at most is not full.
        assert sum(bool((batch.weights_B == 0).any()) for batch in inside) <= 1
    for batch in batches:
        check_batch(features, batch)


def check_batch(features, batch):
    """Every array holds what the rows that it names have, and filler elsewhere."""
    length = batch.tokens_BxL.shape[-1]
    assert length in bucket_lengths(features.max_length)
    flat = [array.reshape(-1, *array.shape[batch.rows_B.ndim :]) for array in batch]
    for tokens_L, ids_L, types_L, target, weight, row in zip(*flat, strict=True):
        own = slice(features.offsets[row], features.offsets[row + 1]) if row >= 0 else slice(0, 0)
        count = own.stop - own.start
        assert weight == (row >= 0) and count <= length
        assert tokens_L.tolist() == features.tokens_T[own].tolist() + [VOCABULARY.pad] * (length - count)
        assert ids_L.tolist() == [1] * count + [0] * (length - count)
        assert types_L.tolist() == features.type_ids_T[own].tolist() + [0] * (length - count)
        if features.kind == 'tagging':
            assert target.tolist() == features.targets[own].tolist() + [-1] * (length - count)
        elif row >= 0:
            assert target.tolist() == features.targets[row].tolist()


@pytest.mark.parametrize('kind', ['classification', 'regression', 'tagging', 'span'])
@pytest.mark.parametrize('batch_size', [1, 3, 8, 23, 24])
def test_evaluation_takes_every_row_once_and_puts_outputs_back(kind, batch_size):
    features = features_of([2 + (7 * i) % 60 for i in range(23)], kind)
    per_token = kind in ('tagging', 'span')
    out = np.full(len(features.tokens_T) if per_token else len(features), -1, np.int32)
    seen = []
    for batch in evaluation_batches(features, batch_size):
        check_batch(features, batch)
        assert batch.rows_B.shape == (batch_size,)
        seen += batch.rows_B[batch.rows_B >= 0].tolist()
        scatter(features, batch, batch.tokens_BxL if per_token else batch.rows_B, out)
    assert sorted(seen) == list(range(23))
    assert out.tolist() == (features.tokens_T if per_token else np.arange(23)).tolist()
    # Sorted by length: rows of unlike length are not padded to the longest.
    short = [batch for batch in evaluation_batches(features, batch_size) if batch.tokens_BxL.shape[1] == 16]
    assert short and list(evaluation_batches(features_of([]), batch_size)) == []


def test_a_run_taken_up_again_goes_on_with_the_same_batches():
    features = features_of([2 + (11 * i) % 60 for i in range(37)])
    options = dict(seeds=[3, 7], batch_size=8, epochs=3)
    whole = list(training_batches(features, **options))
    for start in range(len(whole) + 1):
        rest = list(training_batches(features, **options, start=start))
        assert len(rest) == len(whole) - start
        for ours, theirs in zip(rest, whole[start:], strict=True):
            assert all((a == b).all() for a, b in zip(ours, theirs, strict=True))


def test_orders_differ_between_seeds_and_epochs_and_not_with_their_company():
    features = features_of([2 + i % 15 for i in range(64)])
    batches = list(training_batches(features, seeds=[0, 1], batch_size=8, epochs=2))
    orders = [[tuple(batch.rows_B[seed]) for batch in batches[8 * epoch : 8 * epoch + 8]]
              for seed, epoch in itertools.product(range(2), range(2))]  # fmt: skip
    assert len({tuple(order) for order in orders}) == 4
    # Who is with whom changes too, and rows leave their first order.
    assert len({frozenset(rows) for order in orders for rows in order}) == 32
    alone = list(training_batches(features, seeds=[1], batch_size=8, epochs=2))
    assert all((a.rows_B[0] == b.rows_B[1]).all() for a, b in zip(alone, batches, strict=True))


def test_lengths_come_in_no_order_and_rows_are_padded_no_further_than_their_bucket():
    lengths = [10] * 100 + [30] * 100 + [60] * 50
    features = features_of(lengths)
    seen = [batch.tokens_BxL.shape[-1] for batch in training_batches(features, seeds=[0], batch_size=10, epochs=1)]
    assert Counter(seen) == {16: 10, 32: 10, 64: 5} and seen != sorted(seen) and seen != sorted(seen, reverse=True)
    padded = sum(length * 10 for length in seen)
    assert padded < 0.55 * 64 * len(lengths)


def test_buckets_end_at_the_longest_allowed():
    assert bucket_lengths(128) == (16, 32, 64, 128) and bucket_lengths(100) == (16, 32, 64, 100)
    assert bucket_lengths(12) == (12,) and bucket_lengths(1024)[-2:] == (512, 1024)
    with pytest.raises(ValueError, match='no row'):
        next(training_batches(features_of([]), seeds=[0], batch_size=2, epochs=1))
    batch = gather(features_of([3, 4]), np.array([[1, -1], [0, 1]]), 16)
    assert batch.tokens_BxL.shape == (2, 2, 16) and batch.weights_B.tolist() == [[1, 0], [1, 1]]
