"""Attention's kernels: Splash, interpreted, against the reference; what the config refuses; what is left to XLA."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model import kernels, mlm
from model.attention import attention_mask
from model.config import ModelConfig
from tests.model.plain_encoder import random_params, random_tokens

CONFIG = ModelConfig(layers=2, width=16, heads=2, feed_forward=24, max_length=256, vocab_size=50)
CONFIG = dataclasses.replace(CONFIG, dropout=0.0, attention_dropout=0.0)
SPLASH = dataclasses.replace(CONFIG, attention='splash')


def documents(length: int) -> np.ndarray:
    """Rows of several documents and padding, of padding alone, of one token, and without padding."""
    ids_BxL = np.zeros((4, length), np.int32)
    ids_BxL[0, : length // 3] = 1
    ids_BxL[0, length // 3 : length // 2] = 2
    ids_BxL[2, 0] = 1
    ids_BxL[3] = 1 + np.arange(length) // 50
    return ids_BxL


@pytest.fixture
def interpreted(monkeypatch):
    """The encoder takes Splash here too, step by step."""
    monkeypatch.setattr(kernels, 'splash', partial(kernels.splash, interpret=True))
    chosen = jax.lax.platform_dependent

    def choose(*arrays, tpu=None, **others):
        return tpu(*arrays) if tpu else chosen(*arrays, **others)

    monkeypatch.setattr(jax.lax, 'platform_dependent', choose)


@partial(jax.jit, static_argnums=1, static_argnames='queries')
def outcome(params, config, tokens_BxL, documents_BxL, key=None, queries=None):
    """States and gradients of a loss that looks at the real tokens alone."""
    positions_BxM = None if queries is None else jnp.tile(jnp.arange(queries)[None, ::-1] * 2, (len(tokens_BxL), 1))
    asked_BxM = documents_BxL if queries is None else jnp.take_along_axis(documents_BxL, positions_BxM, axis=1)

    def loss(params):
        hidden_BxMxD = mlm.encode(params, config, tokens_BxL, documents_BxL, key=key, positions_BxM=positions_BxM)
        return jnp.sum(jnp.where(asked_BxM[..., None] > 0, jnp.sin(3 * hidden_BxMxD), 0)), hidden_BxMxD

    (_, hidden_BxMxD), gradients = jax.value_and_grad(loss, has_aux=True)(params)
    return jnp.where(asked_BxM[..., None] > 0, hidden_BxMxD, 0), gradients, hidden_BxMxD


@pytest.mark.parametrize(
    ('length', 'changes', 'queries'),
    [
        (128, {}, None),
        (128, {'attend': 'document'}, None),
        (256, {'attend': 'document', 'window': 20}, None),
        (150, {'window': 9}, None),
        (150, {'attend': 'document', 'positions': 'rotary'}, 40),
        (128, {'attend': 'document', 'window': 9}, 40),
        (128, {'scan_layers': False, 'dropout': 0.1}, 40),
    ],
)
def test_the_encoder_with_splash_is_the_one_without(length, changes, queries, interpreted):
    splash, xla = (dataclasses.replace(config, **changes) for config in (SPLASH, CONFIG))
    inputs = (random_tokens(xla, (4, length)), documents(length), jax.random.key(0))
    jax.clear_caches()
    found, expected = (outcome(random_params(xla), config, *inputs, queries=queries) for config in (splash, xla))
    assert 'pallas' not in str(jax.make_jaxpr(lambda p: mlm.encode(p, xla, *inputs[:2]))(random_params(xla)))
    assert 'pallas' in str(jax.make_jaxpr(lambda p: mlm.encode(p, splash, *inputs[:2]))(random_params(xla)))
    np.testing.assert_allclose(found[0], expected[0], atol=1e-5)
    for a, b in zip(jax.tree.leaves(found[1]), jax.tree.leaves(expected[1]), strict=True):
        # The gradient of the keys' bias is 0 but for rounding.
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-5 * max(1, np.abs(b).max()))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found))


@pytest.mark.parametrize('attend', ['row', 'document'])
def test_the_ids_of_padding_change_no_real_state_with_splash(attend, interpreted):
    config = dataclasses.replace(SPLASH, attend=attend)
    tokens_BxL, documents_BxL = random_tokens(config, (4, 128)), documents(128)
    others_BxL = np.where(documents_BxL > 0, tokens_BxL, random_tokens(config, tokens_BxL.shape, seed=5))
    jax.clear_caches()
    params = random_params(config)
    expected, found = (outcome(params, config, tokens, documents_BxL)[0] for tokens in (tokens_BxL, others_BxL))
    np.testing.assert_array_equal(found, expected)


def test_splash_is_finite_in_bfloat16_whoever_looks_at_padding(interpreted):
    config = dataclasses.replace(SPLASH, dtype='bfloat16', attend='document')
    tokens_BxL, documents_BxL = random_tokens(config, (4, 128)), documents(128)
    jax.clear_caches()

    def total(params):
        return mlm.encode(params, config, tokens_BxL, documents_BxL).astype(jnp.float32).var()

    gradients = jax.jit(jax.grad(total))(random_params(config))
    assert all(np.isfinite(leaf).all() and leaf.any() for leaf in jax.tree.leaves(gradients['layers']))


@pytest.mark.parametrize('attend', ['row', 'document'])
def test_without_a_tpu_splash_stands_for_xla(attend):
    configs = (dataclasses.replace(config, attend=attend) for config in (SPLASH, CONFIG))
    inputs = (random_tokens(CONFIG, (4, 30)), documents(30))
    found, expected = (outcome(random_params(CONFIG), config, *inputs) for config in configs)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6 * max(1, np.abs(b).max()))


def test_a_window_is_symmetric_and_counts_places_in_the_row():
    documents_1xL = np.array([[1, 1, 1, 2, 2, 0]])
    mask_LxL = attention_mask(documents_1xL, 'document', 1)[0, 0]
    expected = [
        [i == j or abs(i - j) == 1 and (i < 3) == (j < 3) and max(i, j) < 5 for j in range(6)] for i in range(6)
    ]
    np.testing.assert_array_equal(mask_LxL, expected)
    np.testing.assert_array_equal(
        attention_mask(documents_1xL, 'document', 1, jnp.array([[4, 0]]))[0, 0], mask_LxL[jnp.array([4, 0])]
    )
    assert attention_mask(documents_1xL, 'row', 2)[0, 0, 0].tolist() == [True, True, True, False, False, False]


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        (dict(attention='splash', attention_dropout=0.1), 'model.attention splash drops no attention weights'),
        (dict(attention='cudnn', attention_dropout=0.1, dtype='bfloat16'), 'model.attention cudnn drops no'),
        (dict(attention='cudnn', attention_dropout=0.0), 'model.attention cudnn computes in bfloat16'),
        (dict(window=-1), 'model.window is -1'),
    ],
)
def test_what_a_kernel_cannot_do_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        ModelConfig(**changes)
