"""Samples: how often each token comes, from what alone the noise is drawn, and what is never drawn."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from model.attention import NEVER
from tests.train.objectives.objective_case import config, inputs, loss, params
from tests.train.step_case import SIZE, VOCABULARY
from train.masking import sample_noise
from train.objectives import generation
from train.objectives.sampling import gumbel, sampled, slot_seeds, uniform
from train.settings import settings_at

PADDED = 128
N = 20_000


def seeds(count: int, slots: int) -> jax.Array:
    words = np.random.default_rng(0).integers(0, 2**32, (count, 3), dtype=np.uint32)
    return slot_seeds(jnp.asarray(words), slots)


@pytest.mark.parametrize('temperature', [1.0, 0.5])
def test_tokens_come_as_often_as_the_softmax_says(temperature):
    logits_V = np.full(PADDED, NEVER, np.float32)
    logits_V[:SIZE] = np.random.default_rng(1).normal(0, 1.5, SIZE)
    seeds_BxMx2 = seeds(N // 20, 20)
    logits_BxMxV = jnp.broadcast_to(logits_V, (*seeds_BxMx2.shape[:2], PADDED))
    found = np.bincount(
        np.asarray(jax.jit(lambda s: sampled(logits_BxMxV, s, VOCABULARY, temperature))(seeds_BxMx2)).ravel(),
        minlength=SIZE,
    )
    chances = np.exp(logits_V[VOCABULARY.ordinary].astype(np.float64) / temperature)
    assert found[: VOCABULARY.ordinary[0]].sum() == 0 and found.sum() == N
    expected = N * chances / chances.sum()
    common = expected > 5
    assert (
        stats.chisquare(
            np.append(found[VOCABULARY.ordinary][common], found[VOCABULARY.ordinary][~common].sum()),
            np.append(expected[common], expected[~common].sum()),
        ).pvalue
        > 1e-3
    )


def test_uniform_samples_are_uniform_ordinary_tokens():
    found = np.bincount(np.asarray(uniform(seeds(N // 20, 20), VOCABULARY)).ravel(), minlength=SIZE)
    assert found[: VOCABULARY.ordinary[0]].sum() == 0
    assert stats.chisquare(found[VOCABULARY.ordinary]).pvalue > 1e-3


def test_noise_is_gumbels_finite_and_float32():
    noise = gumbel(seeds(200, 4), 100)
    assert noise.dtype == jnp.float32 and np.isfinite(noise).all()
    assert stats.kstest(np.asarray(noise).ravel(), 'gumbel_r').pvalue > 1e-3
    # Neighbouring places, slots and rows are not correlated.
    for axis in range(3):
        a, b = (np.take(np.asarray(noise), range(i, noise.shape[axis] - 1 + i), axis).ravel() for i in (0, 1))
        assert abs(np.corrcoef(a, b)[0, 1]) < 0.02


def test_logits_in_bfloat16_are_sampled_in_float32():
    """In bfloat16 a logit and its noise would have eight bits between them, and ties would go to the first."""
    logits_BxMxV = jnp.zeros((N // 20, 20, SIZE), jnp.bfloat16)
    found = np.bincount(np.asarray(sampled(logits_BxMxV, seeds(N // 20, 20), VOCABULARY, 1.0)).ravel(), minlength=SIZE)
    assert stats.chisquare(found[VOCABULARY.ordinary]).pvalue > 1e-3


def test_a_rows_samples_depend_on_the_row_alone():
    run = config()
    weights = params(run)

    def made(rows):
        return np.asarray(generation.generate(weights, run, VOCABULARY, rows, jax.random.key(0)).tokens_BxL)

    whole = made(inputs(run))
    np.testing.assert_array_equal(made(inputs(run, rows=slice(4, 8))), whole[4:8])
    np.testing.assert_array_equal(made(inputs(run, rows=slice(None, None, -1))), whole[::-1])


def test_noise_changes_with_all_that_it_is_drawn_from_and_with_nothing_else():
    run, numbers, epochs = config(), np.arange(4), np.zeros(4, int)
    settings = settings_at(run, 0, 0)

    def drawn(length=24, numbers=numbers, epochs=epochs, copies=1, **changes):
        return np.asarray(
            sample_noise(length, jnp.asarray(numbers), jnp.asarray(epochs), settings._replace(**changes), copies)
        )

    first = drawn()
    assert first.dtype == np.uint32 and len(np.unique(first)) == first.size
    others = [
        drawn(length=25), drawn(numbers=numbers + 4), drawn(epochs=epochs + 1), drawn(seed=np.uint32(1)),
        drawn(noise=np.uint32(1)), drawn(copies=2)[1::2],
    ]  # fmt: skip
    assert all(not (first == other).any() for other in others)
    np.testing.assert_array_equal(drawn(copies=2)[::2], first)
    same = drawn(corruption=np.int32(1), mask_share=np.float32(0), learning_rate=np.float32(1))
    np.testing.assert_array_equal(same, first)
    # Static masking: the third epoch has the first one's masks and samples.
    np.testing.assert_array_equal(drawn(epochs=epochs + 2, duplicates=np.int32(2)), drawn(duplicates=np.int32(2)))


def test_samples_at_a_low_rate_are_among_those_at_a_high_one():
    """Slots go by rank, so that arms of other rates sample a token that both choose by the same noise."""
    low, high = config(rate=0.15, sampler='uniform'), config(rate=0.45, sampler='uniform')
    few, many = (
        np.asarray(generation.generate(params(low), low, VOCABULARY, inputs(run), jax.random.key(0)).tokens_BxL)
        for run in (low, high)
    )
    rows = inputs(low)
    chosen = generation.placed(jnp.ones_like(rows.masked.labels_BxM), rows.masked, jnp.zeros_like(rows.tokens_BxL)) > 0
    assert chosen.sum() == rows.masked.weights_BxM.sum() > 8
    np.testing.assert_array_equal(few[chosen], many[chosen])
    assert (few != many).any()


def test_unused_slots_change_nothing():
    run = config()
    rows = inputs(run)
    masked = rows.masked._replace(weights_BxM=jnp.zeros_like(rows.masked.weights_BxM))
    np.testing.assert_array_equal(generation.placed(masked.labels_BxM + 1, masked, rows.tokens_BxL), rows.tokens_BxL)


def test_logits_that_are_not_finite_make_the_loss_not_finite_and_no_impossible_token():
    run = config()
    weights = params(run)
    weights['generator']['head']['bias'] = jnp.full_like(weights['generator']['head']['bias'], np.nan)
    sums, _ = loss(weights, run, inputs(run))
    assert not np.isfinite(sums['generator'])
    made = generation.generate(weights, run, VOCABULARY, inputs(run), jax.random.key(0))
    assert (made.tokens_BxL < PADDED).all() and (made.tokens_BxL >= 0).all()


def test_dropout_is_another_for_the_generator():
    run = config()
    dropped = dataclasses.replace(run, model=dataclasses.replace(run.model, dropout=0.3))
    weights, rows = params(run), inputs(run)
    plain, _ = loss(weights, run, rows)
    noisy, _ = loss(weights, dropped, rows)
    assert plain['generator'] != noisy['generator'] and plain['detection'] != noisy['detection']
