"""What the encoder computes: against the papers' formulas, and what must not change it."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model import mlm
from model.config import ModelConfig
from tests.model import plain_encoder
from tests.model.plain_encoder import SMALL, DOCUMENTS_BxL, random_params, random_tokens

POST = ModelConfig(**SMALL)
PRE = ModelConfig(**SMALL, norm='pre', norm_epsilon=1e-5)
ROTARY = ModelConfig(**SMALL, positions='rotary', attend='document')
PRE_ROTARY = ModelConfig(**SMALL, norm='pre', positions='rotary', attend='document')
REAL_BxL = DOCUMENTS_BxL > 0
TYPES_BxL = np.where(DOCUMENTS_BxL > 1, 1, 0)
encode = jax.jit(mlm.encode, static_argnums=1)
predict = jax.jit(mlm.predict, static_argnums=1)


@pytest.mark.parametrize('config', [POST, PRE, ROTARY, PRE_ROTARY], ids=['post', 'pre', 'rotary', 'pre-rotary'])
def test_states_and_logits_are_the_papers(config):
    params, tokens_BxL = random_params(config), random_tokens(config, DOCUMENTS_BxL.shape)
    hidden_BxLxD = encode(params, config, tokens_BxL, DOCUMENTS_BxL, TYPES_BxL)
    logits_BxLxV = predict(params, config, hidden_BxLxD)
    for row, real_L in enumerate(REAL_BxL):
        inputs = (tokens_BxL[row], DOCUMENTS_BxL[row], TYPES_BxL[row])
        expected_LxD = plain_encoder.encode(params, config, *inputs)
        expected_LxV = plain_encoder.predict(params, config, expected_LxD)
        np.testing.assert_allclose(hidden_BxLxD[row][real_L], expected_LxD[real_L], atol=2e-5)
        np.testing.assert_allclose(logits_BxLxV[row][real_L, : config.vocab_size], expected_LxV[real_L], atol=5e-5)


def test_padding_ids_are_out_of_the_softmax():
    logits_BxLxV = predict(random_params(POST), POST, np.ones((1, 2, POST.width), np.float32))
    assert logits_BxLxV.shape == (1, 2, 128) and POST.vocab_size == 50
    assert np.isfinite(logits_BxLxV).all()
    assert not np.asarray(jax.nn.softmax(logits_BxLxV))[..., 50:].any()


@pytest.mark.parametrize('config', [PRE, ROTARY], ids=['row', 'document'])
def test_neither_the_ids_nor_the_number_of_padding_tokens_matter(config):
    params, tokens_BxL = random_params(config), random_tokens(config, DOCUMENTS_BxL.shape)
    expected = np.asarray(encode(params, config, tokens_BxL, DOCUMENTS_BxL))[REAL_BxL]
    for seed in range(5):
        others_BxL = np.where(REAL_BxL, tokens_BxL, random_tokens(config, tokens_BxL.shape, seed + 10))
        assert (others_BxL != tokens_BxL).any()
        found = np.asarray(encode(params, config, others_BxL, DOCUMENTS_BxL))[REAL_BxL]
        np.testing.assert_array_equal(found, expected)
    more = [(0, 0), (0, 7)]
    longer_BxLxD = encode(params, config, np.pad(tokens_BxL, more, constant_values=9), np.pad(DOCUMENTS_BxL, more))
    np.testing.assert_allclose(np.asarray(longer_BxLxD)[np.pad(REAL_BxL, more)], expected, atol=2e-6)


@pytest.mark.parametrize('dtype', ['float32', 'bfloat16'])
@pytest.mark.parametrize('config', [POST, PRE_ROTARY], ids=['post-row', 'pre-document'])
def test_rows_of_padding_and_of_one_token_are_finite_as_are_their_gradients(config, dtype):
    config = dataclasses.replace(config, dtype=dtype, dropout=0.2, attention_dropout=0.2)
    documents_BxL = np.array([[0] * 12, [1] + [0] * 11, [1] * 12], np.int32)
    tokens_BxL = random_tokens(config, documents_BxL.shape)

    @jax.jit
    @partial(jax.value_and_grad, has_aux=True)
    def score(params):
        hidden_BxLxD = mlm.encode(params, config, tokens_BxL, documents_BxL, key=jax.random.key(0))
        scores = jax.nn.log_softmax(mlm.predict(params, config, hidden_BxLxD))
        return scores[..., : config.vocab_size].mean(), (hidden_BxLxD, scores)

    (_, outputs), gradients = score(random_params(config))
    for leaf in jax.tree.leaves((outputs, gradients)):
        assert np.isfinite(np.asarray(leaf, np.float32)).all()
    assert all(leaf.dtype == np.float32 and np.asarray(leaf).any() for leaf in jax.tree.leaves(gradients))


@pytest.mark.parametrize('positions', ['learned', 'rotary'])
def test_document_attention_is_each_document_alone(positions):
    config = ModelConfig(**SMALL, norm='pre', positions=positions, attend='document')
    row = dataclasses.replace(config, attend='row')
    params, tokens_1xL = random_params(config), random_tokens(config, (1, 12))
    documents_1xL = DOCUMENTS_BxL[:1]
    found_LxD = np.asarray(encode(params, config, tokens_1xL, documents_1xL))[0]
    for document in (1, 2, 3):
        place = np.flatnonzero(documents_1xL[0] == document)
        alone = np.zeros((2, 1, 12), np.int32)
        alone[0, 0, : len(place)] = tokens_1xL[0, place]
        alone[1, 0, : len(place)] = 1
        shifted = jax.tree.map(lambda leaf: leaf, params)
        if positions == 'learned':
            table = params['embeddings']['position']['embedding']
            shifted['embeddings']['position']['embedding'] = np.roll(table, -place[0], axis=0)
        expected_LxD = np.asarray(encode(shifted, row, *alone))[0, : len(place)]
        np.testing.assert_allclose(found_LxD[place], expected_LxD, atol=5e-6)
    whole_LxD = np.asarray(encode(params, row, tokens_1xL, documents_1xL))[0]
    assert (np.abs(whole_LxD - found_LxD).max(axis=-1) > 1e-2).all()


def test_bfloat16_is_close_to_float32_and_its_logits_are_float32():
    half = dataclasses.replace(PRE, dtype='bfloat16')
    params, tokens_BxL = random_params(PRE), random_tokens(PRE, DOCUMENTS_BxL.shape)
    hidden, expected_hidden = (encode(params, c, tokens_BxL, DOCUMENTS_BxL, TYPES_BxL) for c in (half, PRE))
    assert (hidden.dtype, expected_hidden.dtype) == (jnp.bfloat16, jnp.float32)
    # A float32 bias would hide products that were rounded to bfloat16.
    params['head']['bias'] *= 0
    logits, expected = predict(params, half, hidden), predict(params, PRE, expected_hidden)
    assert logits.dtype == jnp.float32
    logits, expected = (np.asarray(a)[REAL_BxL][:, : PRE.vocab_size] for a in (logits, expected))
    assert (logits != logits.astype(jnp.bfloat16).astype(np.float32)).mean() > 0.9
    assert 0 < np.sqrt(np.mean((logits - expected) ** 2)) < 0.02 * np.std(expected)


@pytest.mark.parametrize('config', [POST, PRE_ROTARY], ids=['post', 'pre-rotary'])
def test_no_rank_is_promoted_silently(config):
    config = dataclasses.replace(config, dropout=0.1, attention_dropout=0.1, dtype='bfloat16')

    def total(params, key):
        hidden_BxLxD = mlm.encode(params, config, tokens_BxL, DOCUMENTS_BxL, TYPES_BxL, key)
        return mlm.predict(params, config, hidden_BxLxD).sum()

    tokens_BxL = jnp.zeros(DOCUMENTS_BxL.shape, jnp.int32)
    with jax.numpy_rank_promotion('raise'):
        jax.eval_shape(jax.grad(total), random_params(config), jax.random.key(0))


def test_rows_longer_than_the_learned_positions_are_refused():
    tokens_BxL = np.zeros((1, POST.max_length + 1), np.int32)
    with pytest.raises(ValueError, match='rows of 21 tokens, but model.max_length is 20'):
        encode(random_params(POST), POST, tokens_BxL, tokens_BxL)
    assert encode(random_params(ROTARY), ROTARY, tokens_BxL, tokens_BxL).shape == (1, 21, 16)
