"""Batches: every row once an epoch, whatever was stopped and started, on any number of hosts, and fast."""

import dataclasses
import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data import loader
from data.errors import UserError
from data.loader import batches
from data.permutation import permute
from data.rows import Rows
from tests.data.corpora import VOCABULARY, split_of

SPLIT = split_of(np.random.default_rng(0).integers(5, 60, 1000))
LENGTH = 12  # 100 rows


def run(**changes):
    options = dict(seeds=[0, 1], length=LENGTH, batch_size=7, start=0, steps=20)
    return list(batches(SPLIT, VOCABULARY, **{**options, **changes}))


def flat(found):
    """All rows in order, as lists, so that runs of other batch sizes compare."""
    return [np.concatenate([batch[i] for batch in found], axis=1) for i in range(3)]


def test_a_batch_is_the_permutation_of_its_positions():
    rows = Rows(SPLIT, LENGTH, VOCABULARY)
    for step, batch in enumerate(run()):
        for s, seed in enumerate([0, 1]):
            for b in range(7):
                epoch, position = divmod(step * 7 + b, 100)
                row = int(permute(seed, LENGTH, epoch, position, 100))
                assert (batch.row_ids_SxB[s, b], batch.epochs_SxB[s, b]) == (row, epoch)
                np.testing.assert_array_equal(batch.tokens_SxBxL[s, b], rows.gather(row))
        assert {array.dtype for array in batch[:3]} == {np.dtype(np.int32)}


def test_an_epoch_has_every_row_once_across_a_stop_a_restart_and_another_batch_size():
    parts = [run(steps=11), run(start=77, batch_size=5, steps=3), run(start=92, batch_size=4, steps=52)]
    _, row_ids, epochs = (np.concatenate(arrays, axis=1) for arrays in zip(*map(flat, parts), strict=True))
    assert row_ids.shape[1] == 300
    for ids, epoch in zip(row_ids, epochs, strict=True):
        for number in range(3):
            assert sorted(ids[epoch == number]) == list(range(100))
        assert list(epoch) == sorted(epoch)
    assert len({tuple(ids[:100]) for ids in row_ids} | {tuple(ids[100:200]) for ids in row_ids}) == 4


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 15), st.integers(1, 5), st.sampled_from([50, 500, 1 << 21]))
def test_batches_from_a_later_start_are_the_tail(skipped, batch_size, chunk):
    with pytest.MonkeyPatch.context() as patch:
        whole = run(batch_size=batch_size, steps=16)
        patch.setattr(loader, '_CHUNK_TOKENS', chunk)  # how many batches are made at once shows in nothing
        tail = run(batch_size=batch_size, start=skipped * batch_size, steps=16 - skipped)
    assert len(tail) == 16 - skipped
    for a, b in zip(whole[skipped:], tail, strict=True):
        for left, right in zip(a, b, strict=True):
            np.testing.assert_array_equal(left, right)


def test_each_host_reads_its_own_rows_of_the_same_batches(monkeypatch):
    whole = run(batch_size=8)
    gathered = []
    gather = Rows.gather
    monkeypatch.setattr(Rows, 'gather', lambda self, ids: gathered.append(np.size(ids)) or gather(self, ids))
    hosts = [run(batch_size=8, local=slice(host * 2, host * 2 + 2)) for host in range(4)]
    assert sum(gathered) == 2 * 8 * 20  # together no more than one process would
    for parts, batch in zip(zip(*hosts, strict=True), whole, strict=True):
        for i in range(3):
            np.testing.assert_array_equal(np.concatenate([part[i] for part in parts], axis=1), batch[i])


def test_a_seed_has_the_same_rows_whatever_seeds_run_beside_it():
    alone, beside = flat(run(seeds=[5])), flat(run(seeds=[3, 5, 9]))
    for a, b in zip(alone, beside, strict=True):
        np.testing.assert_array_equal(a[0], b[1])


def test_a_split_of_fewer_rows_than_a_batch():
    (batch,) = run(batch_size=250, steps=1)
    assert np.bincount(batch.row_ids_SxB[0], minlength=100).tolist() in [
        list(counts) for counts in [np.bincount(batch.row_ids_SxB[0], minlength=100)]
    ]
    assert set(np.bincount(batch.row_ids_SxB[0], minlength=100)) == {2, 3}


def test_no_steps_and_abandoned_iterators():
    assert run(steps=0) == []
    endless = batches(SPLIT, VOCABULARY, seeds=[0], length=LENGTH, batch_size=4, start=0, steps=10**9)
    assert len(list(itertools.islice(endless, 3))) == 3


def test_a_split_too_small_for_a_row_is_refused_before_the_first_batch():
    with pytest.raises(UserError, match='1,000 tokens are too few for one row of length 2048'):
        batches(SPLIT, VOCABULARY, seeds=[0], length=2048, batch_size=1, start=0, steps=1)


@pytest.mark.slow
def test_speed():
    """50 million tokens a second at length 128 and batch 256, on 2 cores."""
    split = split_of(np.random.default_rng(0).integers(5, 60, 50_000_000))
    fastest = 0.0
    for _ in range(5):
        began = time.perf_counter()
        found = batches(split, VOCABULARY, seeds=[0], length=128, batch_size=256, start=0, steps=1000)
        tokens = sum(batch.tokens_SxBxL.size for batch in found)
        fastest = max(fastest, tokens / (time.perf_counter() - began))
    print(f'{fastest / 1e6:.0f} million tokens a second')
    assert fastest > 50e6


def test_joins_come_with_their_tokens():
    """Marks of a token's id tell whether the two arrays were cut and permuted alike."""
    split = dataclasses.replace(SPLIT, joins=SPLIT.tokens % 2 == 0)
    batch = next(iter(batches(split, VOCABULARY, seeds=[0, 1], length=LENGTH, batch_size=7, start=90, steps=3)))
    inside = batch.tokens_SxBxL[..., 1:-1]
    np.testing.assert_array_equal(batch.joins_SxBxL[..., 1:-1], inside % 2 == 0)
    assert not batch.joins_SxBxL[..., [0, -1]].any()
