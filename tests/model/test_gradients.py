"""Our own gradients of LayerNorm, GELU and attention against autodiff of the plain formulas, in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model.attention import NEVER, attention
from model.dropout import keep, noise_seed
from model.gelu import gelu, gelu_product
from model.norm import layer_norm


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def compare(ours, plain, inputs, most):
    """Values and gradients of a random projection, ours in float32 against the plain one in float64."""
    with jax.enable_x64(True):
        weight = normal(*jax.eval_shape(plain, *inputs).shape, seed=9)

    def both(function, dtype):
        values = [jnp.asarray(value, dtype) for value in inputs]
        out, pull_back = jax.vjp(jax.jit(function), *values)
        return out, *pull_back(jnp.asarray(weight, out.dtype))

    found = both(ours, jnp.float32)
    with jax.enable_x64(True):
        expected = both(plain, jnp.float64)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=most * np.abs(np.asarray(b)).max())


def plain_norm(x, scale, bias):
    normed = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return normed * scale.reshape(1, 1, -1) + bias.reshape(1, 1, -1)


@pytest.mark.parametrize('offset', [0.0, 50.0])
def test_layer_norm(offset):
    inputs = (3 * normal(2, 5, 24) + offset, normal(24, seed=1), normal(24, seed=2))
    # Far from 0 the float32 input itself has lost digits.
    compare(lambda *a: layer_norm(*a, 1e-5), plain_norm, inputs, 2e-6 if not offset else 1e-5)


def test_gelu():
    x = np.concatenate([np.linspace(-9, 9, 181), [0.0, -0.0, 1e-8]])
    compare(gelu, lambda x: x * jax.scipy.stats.norm.cdf(x), (x,), 2e-6)


@pytest.mark.parametrize('platform', ['cpu', 'another'])
def test_product_with_gelu(platform, monkeypatch):
    if platform == 'another':
        monkeypatch.setattr(jax.lax, 'platform_dependent', lambda *arrays, cpu, default: default(*arrays))
    inputs = (2 * normal(2, 5, 6), normal(6, 3, seed=1))
    compare(gelu_product, lambda x, w: jnp.einsum('blf,fd->bld', x * jax.scipy.stats.norm.cdf(x), w), inputs, 2e-6)


@pytest.mark.parametrize('rate', [0.0, 0.4])
@pytest.mark.parametrize('queries', [6, 3], ids=['all', 'some'])
def test_attention(queries, rate):
    positions_BxM = None if queries == 6 else np.array([[5, 0, 2], [1, 1, 4]])
    seed = noise_seed(jax.random.key(0)) if rate else None
    documents_BxL = np.array([[1, 1, 2, 2, 2, 0], [1, 2, 3, 3, 0, 0]])
    asking_BxM = documents_BxL if positions_BxM is None else np.take_along_axis(documents_BxL, positions_BxM, 1)
    mask_Bx1xMxL = (asking_BxM[:, :, None] == documents_BxL[:, None, :])[:, None]
    inputs = (2 * normal(2, 3, queries, 4), 2 * normal(2, 3, 4, 6, seed=1), normal(2, 3, 4, 6, seed=2))

    def plain(query, key, value):
        scores = jnp.einsum('bhlk,bhkm->bhlm', query, key) / 2
        weights = jax.nn.softmax(jnp.where(mask_Bx1xMxL, scores, -jnp.inf), axis=-1)
        if rate:
            weights *= keep(seed, rate, weights.shape, positions_BxM) / (1 - rate)
        return jnp.einsum('bhlm,bhkm->bhlk', weights, value)

    compare(lambda *a: attention(*a, mask_Bx1xMxL, seed, positions_BxM, rate), plain, inputs, 5e-6)


def test_nothing_passes_to_a_key_that_is_masked():
    query, key, value = (jnp.asarray(normal(1, 1, *shape), jnp.float32) for shape in ((3, 4), (4, 3), (4, 3)))
    mask = jnp.array([True, True, False])[None, None, None]
    gradients = jax.grad(lambda *a: attention(*a, mask, None, None, 0.0).sum(), (0, 1, 2))(query, key, value)
    assert not gradients[1][..., 2].any() and not gradients[2][..., 2].any()
    assert gradients[1][..., :2].any() and gradients[2][..., :2].any()


def test_the_masking_value_is_finite_in_bfloat16():
    assert np.isfinite(np.asarray(jnp.asarray(NEVER, jnp.bfloat16), np.float32))
