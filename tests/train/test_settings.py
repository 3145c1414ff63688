"""The numbers that a replica takes into the compiled step."""

import dataclasses

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from train.config import Config, MaskingConfig, OptimizerConfig, Stage
from train.schedule import learning_rate
from train.settings import settings_at


def config(**masking):
    stages = (Stage(length=64, batch_size=4, steps=30), Stage(length=128, batch_size=4, steps=10))
    return Config(masking=MaskingConfig(**masking), optimizer=OptimizerConfig(weight_decay=0.02), stages=stages)


def test_every_field():
    run = config(
        corruption_rate=0.3, rate_points=((1.0, 0.15),), rule=(0.7, 0.2, 0.1), duplicates=10, noise=3, unit='span'
    )
    got = settings_at(run, 5, 20)._asdict()
    want = {
        'seed': (5, 'uint32'),
        'noise': (3, 'uint32'),
        'corruption': (22_500, 'int32'),
        'prediction': (22_500, 'int32'),
        'mask_share': (0.7, 'float32'),
        'random_share': (0.2, 'float32'),
        'unit': (2, 'int32'),
        'duplicates': (10, 'int32'),
        'learning_rate': (learning_rate(run, 20), 'float32'),
        'weight_decay': (0.02, 'float32'),
    }
    assert list(got) == list(want)
    for name, (value, dtype) in want.items():
        assert got[name] == pytest.approx(value, rel=1e-6) and got[name].dtype == dtype, name


def test_prediction_rate_of_its_own():
    got = settings_at(config(corruption_rate=0.2, prediction_rate=0.4), 0, 0)
    assert (got.corruption, got.prediction) == (20_000, 40_000)


def test_the_rate_runs_over_all_stages():
    run = config(corruption_rate=0.3, rate_points=((1.0, 0.1),))
    assert [int(settings_at(run, 0, step).corruption) for step in (0, 20, 30, 39)] == [30_000, 20_000, 15_000, 10_500]


def test_arms_differ_in_numbers_alone():
    """One program serves all: same tree, shapes and dtypes whatever the arm."""
    plain = settings_at(config(), 0, 0)
    other = settings_at(config(corruption_rate=0.4, prediction_rate=0.2, rule=(0, 1, 0), duplicates=2), 2**32 - 1, 39)
    assert jax.tree.structure(plain) == jax.tree.structure(other)
    assert [leaf.dtype for leaf in plain] == [leaf.dtype for leaf in other]
    assert {leaf.shape for leaf in other} == {()}


@given(st.integers(0, 1000), st.integers(0, 1000))
@hypothesis_settings(deadline=None)
def test_shares_that_sum_to_one_leave_no_token_as_it_was(mask, noise):
    """In float32 a sum could fall below 1, and then one token in 16 million would stay."""
    rule = (mask / 1000, 1 - mask / 1000, 0.0)
    got = settings_at(config(rule=rule, noise=noise), 0, 0)
    assert got.mask_share + got.random_share == np.float32(1)
    assert got.random_share == pytest.approx(rule[1], abs=1e-7)


def test_micro_batches_change_nothing():
    run = config()
    split = dataclasses.replace(run, optimizer=dataclasses.replace(run.optimizer, micro_batches=4))
    assert all(settings_at(run, 0, step) == settings_at(split, 0, step) for step in range(run.steps))
