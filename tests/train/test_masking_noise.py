"""What the choice depends on, and the shares and the uniformity of what is drawn."""

import os
import subprocess
import sys

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy import stats

from tests.train import reference_masking as reference
from train.masking import document_ids, mask_rows

BATCH, LENGTH, SLOTS, COPIES = 8, 64, 64, 2
EIGHT_DEVICES = """
import sys
import jax, numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from tests.train.test_masking_noise import COPIES, case, jitted
from tests.train import reference_masking as reference

assert jax.device_count() == 8
mesh = jax.make_mesh((8,), ('data',), axis_types=(AxisType.Auto,))
rows = jax.device_put(case(), NamedSharding(mesh, P('data')))
settings = reference.settings(0.3, 0.5, seed=7)
masked = jitted(*rows, settings)
assert all(len(leaf.sharding.device_set) == 8 and not leaf.is_fully_replicated for leaf in masked), masked
program = jitted.lower(*rows, settings).compile().as_text()
collectives = [name for name in ('all-gather', 'all-reduce', 'all-to-all', 'collective-permute') if name in program]
assert not collectives, collectives
np.savez(sys.argv[1], **masked._asdict())
"""


@jax.jit
def jitted(tokens_BxL, row_ids_B, epochs_B, settings):
    vocabulary = reference.WORDPIECE
    ids_BxL = document_ids(tokens_BxL, vocabulary)
    return mask_rows(tokens_BxL, ids_BxL, row_ids_B, epochs_B, settings, vocabulary, SLOTS, COPIES)


def mask(*arrays, copy=0):
    """One copy of each row."""
    return jax.tree.map(lambda array: np.asarray(array)[copy::COPIES], jitted(*arrays))


def case(batch=BATCH):
    tokens_BxL = reference.rows(1, batch, LENGTH, reference.WORDPIECE)
    return tokens_BxL, np.arange(100, 100 + batch, dtype=np.int32), np.arange(batch, dtype=np.int32) % 3


def same_text(batch=BATCH):
    """One row of text over and over, so that differences can only come from the noise."""
    vocabulary = reference.WORDPIECE
    text = np.random.default_rng(0).choice(vocabulary.ordinary, LENGTH - 2)
    return np.tile(np.array([vocabulary.cls, *text, vocabulary.sep], np.int32), (batch, 1))


def assert_equal(a, b):
    for field in a._fields:
        np.testing.assert_array_equal(getattr(a, field), getattr(b, field), err_msg=field)


@given(st.permutations(range(BATCH)), st.sampled_from([0.15, 0.4, 1.0]))
@hypothesis_settings(max_examples=30, deadline=None)
def test_row_order_does_not_matter(order, rate):
    settings, order = reference.settings(rate), np.array(order)
    want = jax.tree.map(lambda array: array[order], mask(*case(), settings))
    assert_equal(mask(*(array[order] for array in case()), settings), want)


@pytest.mark.parametrize('size', [1, 3])
def test_batch_size_does_not_matter(size):
    settings = reference.settings(0.3)
    want = jax.tree.map(lambda array: array[2 : 2 + size], mask(*case(), settings))
    assert_equal(mask(*(array[2 : 2 + size] for array in case()), settings), want)


def test_device_count_does_not_matter(tmp_path):
    flags = '--xla_force_host_platform_device_count=8'
    environment = {**os.environ, 'JAX_PLATFORMS': 'cpu', 'XLA_FLAGS': flags, 'PYTHONPATH': os.pathsep.join(sys.path)}
    command = [sys.executable, '-c', EIGHT_DEVICES, tmp_path / 'masked.npz']
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    there, here = np.load(tmp_path / 'masked.npz'), jitted(*case(), reference.settings(0.3, 0.5, seed=7))
    assert jax.device_count() == 1
    for field in here._fields:
        np.testing.assert_array_equal(there[field], getattr(here, field), err_msg=field)


def test_a_replica_axis_does_not_matter():
    """Arms and seeds under one vmap are masked as each would be alone."""
    arms = [reference.settings(0.15, seed=1), reference.settings(0.4, rule=(1.0, 0.0, 0.0), duplicates=1, seed=2)]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *arms)
    together = jax.jit(jax.vmap(jitted, (None, None, None, 0)))(*case(), stacked)
    for i, arm in enumerate(arms):
        assert_equal(jax.tree.map(lambda array: np.asarray(array)[i], together), jitted(*case(), arm))  # noqa: B023


def distinct(masked):
    """How many of the rows have targets (in order) that no other row has."""
    return len({tuple(positions) for positions in masked.positions_BxM.tolist()})


def test_every_part_of_the_key_changes_the_mask():
    same, zeros, numbers = same_text(), np.zeros(BATCH, np.int32), np.arange(BATCH, dtype=np.int32)
    settings = reference.settings(0.3)
    assert distinct(mask(same, zeros, zeros, settings)) == 1
    assert distinct(mask(same, numbers, zeros, settings)) == BATCH  # consecutive rows
    assert distinct(mask(same, zeros, numbers, settings)) == BATCH  # epochs of one row
    # Row 1 in epoch 0 is not row 0 in epoch 1.
    assert distinct(mask(same[:3], numbers[:3] % 2, numbers[:3] // 2, settings)) == 3
    runs = [(seed, noise) for seed in (0, 1, 2**32 - 1) for noise in (0, 1, 2)]
    found = [mask(same[:3], zeros[:3], zeros[:3], reference.settings(0.3, seed=s, noise=n)) for s, n in runs]
    assert len({tuple(masked.positions_BxM[0].tolist()) for masked in found}) == len(runs)


def test_length_changes_the_mask():
    """A row of 64 tokens and one of 128 that starts with them share no noise."""
    tokens_BxL, row_ids_B, epochs_B = case()
    long_BxL = np.concatenate([tokens_BxL, np.zeros_like(tokens_BxL)], axis=1)
    settings = reference.settings(0.3)
    short, long = mask(tokens_BxL, row_ids_B, epochs_B, settings), mask(long_BxL, row_ids_B, epochs_B, settings)
    np.testing.assert_array_equal(short.weights_BxM, long.weights_BxM)
    assert (short.positions_BxM != long.positions_BxM).any(axis=1).all()


def test_static_masks_recur():
    duplicates, numbers = 3, np.arange(BATCH, dtype=np.int32)
    static = mask(same_text(), np.full(BATCH, 5), numbers, reference.settings(0.3, duplicates=duplicates))
    dynamic = mask(same_text(), np.full(BATCH, 5), numbers, reference.settings(0.3))
    assert distinct(static) == duplicates and distinct(dynamic) == BATCH
    for epoch in range(BATCH):
        for field in static._fields:
            first = getattr(dynamic, field)[epoch % duplicates]
            np.testing.assert_array_equal(getattr(static, field)[epoch], first, err_msg=field)


def test_copies_draw_other_replacements():
    settings = reference.settings(1.0, rule=(0.0, 1.0, 0.0))
    one, other = (mask(*case(), settings, copy=copy).inputs_BxL for copy in range(COPIES))
    assert (one != other).any(axis=1).all()


MANY = 4096


def mask_many(settings):
    """What became of 4,096 rows of 62 tokens, more than 100,000."""
    rows_B = np.arange(MANY, dtype=np.int32)
    return mask(same_text(MANY), rows_B, np.zeros_like(rows_B), settings)


def test_rule_within_four_sigma():
    old = same_text(MANY)[:, 1:-1]
    new = mask_many(reference.settings(1.0)).inputs_BxL[:, 1:-1]
    ids = len(reference.WORDPIECE.ordinary)
    is_mask = new == reference.WORDPIECE.mask
    found = {'mask': is_mask, 'same': new == old, 'other': ~is_mask & (new != old)}
    # A random id may be the token that stood there.
    expected = {'mask': 0.8, 'same': 0.1 + 0.1 / ids, 'other': 0.1 * (1 - 1 / ids)}
    assert old.size > 100_000
    for name, share in expected.items():
        sigma = np.sqrt(old.size * share * (1 - share))
        assert abs(found[name].sum() - old.size * share) < 4 * sigma, name


def test_random_replacements_are_uniform_over_ordinary_ids():
    new = mask_many(reference.settings(1.0, rule=(0.0, 1.0, 0.0))).inputs_BxL[:, 1:-1]
    counts, ordinary = np.bincount(new.ravel(), minlength=reference.WORDPIECE.size), reference.WORDPIECE.ordinary
    assert new.size == counts.sum() == counts[ordinary].sum() > 100_000
    assert stats.chisquare(counts[ordinary]).pvalue > 1e-4


def test_every_position_is_chosen_alike():
    masked = mask_many(reference.settings(0.15))
    chosen = masked.positions_BxM[masked.weights_BxM > 0].reshape(MANY, 9)  # 9.3 of 62
    counts = np.bincount(chosen.ravel(), minlength=LENGTH)[1:-1]
    # Without replacement, a position's count varies as 4,096 draws of yes or no.
    share = 9 / 62
    assert np.abs(counts - MANY * share).max() < 4 * np.sqrt(MANY * share * (1 - share))
    # And where a row's targets lie says nothing about where the next row's do.
    middles = chosen.mean(axis=1)
    assert abs(np.corrcoef(middles[:-1], middles[1:])[0, 1]) < 4 / np.sqrt(MANY)
