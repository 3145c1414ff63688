"""Rotary positions: turns of pairs of features, and what they leave alone."""

import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from model.rotary import rotate

QUERY_BxHxLxK, KEY_BxHxLxK = np.random.default_rng(0).normal(size=(2, 2, 3, 10, 8)).astype(np.float32)


def turned(x, positions_L):
    return np.asarray(rotate(jnp.asarray(x), jnp.asarray(positions_L)[None], length_axis=-2))


def plainly(x_BxHxLxK, positions_L):
    """Each pair of features as a complex number, times exp(i position theta)."""
    half = x_BxHxLxK.shape[-1] // 2
    theta_k = 10_000.0 ** (-np.arange(half) / half)
    pairs = (x_BxHxLxK[..., :half] + 1j * x_BxHxLxK[..., half:]) * np.exp(1j * np.outer(positions_L, theta_k))
    return np.concatenate([pairs.real, pairs.imag], axis=-1)


@given(st.lists(st.integers(0, 511), min_size=10, max_size=10))
@settings(deadline=None, max_examples=30)
def test_equals_turns_of_complex_numbers(positions):
    found = turned(QUERY_BxHxLxK, positions)
    np.testing.assert_allclose(found, plainly(QUERY_BxHxLxK, positions), atol=2e-4)
    np.testing.assert_allclose((found**2).sum(-1), (QUERY_BxHxLxK**2).sum(-1), rtol=1e-5)


@given(st.integers(0, 500))
@settings(deadline=None, max_examples=30)
def test_scores_depend_on_relative_positions_alone(offset):
    place_L = np.arange(10)
    scores = [
        np.einsum('bhlk,bhmk->bhlm', turned(QUERY_BxHxLxK, place_L + by), turned(KEY_BxHxLxK, place_L + by))
        for by in (0, offset)
    ]
    np.testing.assert_allclose(*scores, atol=1e-3)


def test_scores_do_depend_on_relative_positions():
    place_L = np.arange(10)
    near, far = (np.sum(turned(QUERY_BxHxLxK, place_L + by) * turned(KEY_BxHxLxK, place_L), -1) for by in (0, 1))
    assert np.abs(near - far).max() > 0.1


def test_keys_may_have_their_last_two_axes_swapped():
    swapped = rotate(jnp.asarray(KEY_BxHxLxK.swapaxes(-1, -2)), jnp.arange(10)[None], length_axis=-1)
    np.testing.assert_array_equal(np.asarray(swapped).swapaxes(-1, -2), turned(KEY_BxHxLxK, np.arange(10)))


def test_each_row_may_have_positions_of_its_own():
    positions_BxL = np.stack([np.arange(10), np.arange(10)[::-1]])
    found = rotate(jnp.asarray(QUERY_BxHxLxK), jnp.asarray(positions_BxL), length_axis=-2)
    for row, positions_L in enumerate(positions_BxL):
        np.testing.assert_array_equal(found[row], turned(QUERY_BxHxLxK, positions_L)[row])
