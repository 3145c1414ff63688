"""Dropout's own hash in place of threefry: is it noise, and is it the same wherever it is drawn?"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from model.dropout import drop, keep, noise_seed


def seeds(count):
    return jax.vmap(lambda i: noise_seed(jax.random.fold_in(jax.random.key(7), i)))(jnp.arange(count))


@pytest.mark.parametrize('rate', [0.1, 0.5, 0.9])
def test_shares_are_binomial_along_every_axis(rate):
    shape = (16, 4, 64, 96)
    dropped = ~np.asarray(keep(noise_seed(jax.random.key(1)), rate, shape))
    for axis in range(4):
        others = tuple(i for i in range(4) if i != axis)
        share = dropped.mean(axis=others)
        sigma = np.sqrt(rate * (1 - rate) * shape[axis] / dropped.size)
        assert np.abs(share - rate).max() < 4.5 * sigma


@pytest.mark.parametrize('rate', [0.1, 0.5])
def test_neighbours_rows_heads_and_steps_are_independent(rate):
    shape = (8, 4, 64, 128)
    noise_NxBxHxLxM = np.asarray(jax.vmap(lambda seed: keep(seed, rate, shape))(seeds(4)), np.float64)
    noise_NxBxHxLxM = (noise_NxBxHxLxM - (1 - rate)) / np.sqrt(rate * (1 - rate))
    for axis in range(5):
        for distance in (1, 2, 3) if axis else (1,):
            length = noise_NxBxHxLxM.shape[axis]
            first = noise_NxBxHxLxM.take(range(length - distance), axis)
            second = noise_NxBxHxLxM.take(range(distance, length), axis)
            assert abs((first * second).mean()) * np.sqrt(first.size) < 4.5, (axis, distance)


def test_runs_of_eight_are_as_frequent_as_chance_has_it():
    bits = np.asarray(keep(noise_seed(jax.random.key(2)), 0.5, (64, 128, 512)))
    counts = np.bincount(np.packbits(bits.ravel()), minlength=256)
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize('word', [0, 1, 2])
@pytest.mark.parametrize('bit', [0, 13, 31])
def test_a_bit_of_any_word_of_the_seed_makes_another_mask(word, bit):
    seed = noise_seed(jax.random.key(5))
    other = seed.at[word].set(seed[word] ^ jnp.uint32(1 << bit))
    one, two = (2.0 * np.asarray(keep(each, 0.5, (4, 64, 256))) - 1 for each in (seed, other))
    assert abs((one * two).mean()) * np.sqrt(one.size) < 4.5


def test_many_seeds_give_many_masks():
    # Every element over 4,096 seeds: the key's bits reach every place.
    dropped_NxLxC = ~np.asarray(jax.vmap(lambda seed: keep(seed, 0.3, (8, 8)))(seeds(4096)))
    assert len(np.unique(dropped_NxLxC.reshape(4096, -1), axis=0)) == 4096
    assert np.abs(dropped_NxLxC.mean(axis=0) - 0.3).max() < 4.5 * np.sqrt(0.21 / 4096)


@given(data=st.data(), heads=st.sampled_from([(), (3,)]), rows=st.integers(1, 9), columns=st.integers(1, 9))
@settings(deadline=None, max_examples=12)
def test_rows_at_positions_have_the_noise_of_their_place(data, heads, rows, columns):
    place = data.draw(st.lists(st.integers(0, rows - 1), min_size=1, max_size=6))
    positions_2xM = np.array([place, place[::-1]], np.int32)
    seed = noise_seed(jax.random.key(3))
    whole = keep(seed, 0.5, (2, *heads, rows, columns))
    index = positions_2xM.reshape((2,) + (1,) * len(heads) + (-1, 1))
    expected = np.take_along_axis(np.asarray(whole), index, axis=-2)
    found = keep(seed, 0.5, (2, *heads, len(place), columns), positions_2xM)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize('dtype', [jnp.float32, jnp.bfloat16])
def test_expectation_and_gradient(dtype):
    seed = noise_seed(jax.random.key(4))
    x = jnp.ones((64, 128, 128), dtype)
    out, pull_back = jax.vjp(lambda x: drop(x, seed, 0.1), x)
    assert out.dtype == dtype
    kept = np.asarray(keep(seed, 0.1, x.shape))
    np.testing.assert_allclose(np.asarray(out, np.float32), kept / np.float32(0.9), rtol=0.004)
    np.testing.assert_array_equal(pull_back(jnp.ones_like(x))[0], out)
    assert abs(kept.mean() / 0.9 - 1) < 4.5 * np.sqrt(0.09 / x.size) / 0.9
