"""Ways of computing the same: scanned or unrolled layers, remat, wanted positions alone."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model import mlm
from model.config import ModelConfig
from tests.model.plain_encoder import SMALL, DOCUMENTS_BxL, random_params, random_tokens

_DROPPING = SMALL | dict(dropout=0.3, attention_dropout=0.3)
POST = ModelConfig(**_DROPPING)
PRE_ROTARY = ModelConfig(**_DROPPING, norm='pre', positions='rotary', attend='document')
# Out of order and one of them twice: nothing says that they are sorted or distinct.
POSITIONS_BxM = np.array([[4, 0, 11], [6, 2, 2], [7, 1, 3]], np.int32)


def run(config, at_positions):
    """States at the positions, and the gradient of a score of them, with dropout."""
    tokens_BxL = random_tokens(config, DOCUMENTS_BxL.shape)

    def score(params):
        inputs = (tokens_BxL, DOCUMENTS_BxL, None, jax.random.key(5))
        hidden_BxMxD = mlm.encode(params, config, *inputs, POSITIONS_BxM if at_positions else None)
        if not at_positions:
            hidden_BxMxD = jnp.take_along_axis(hidden_BxMxD, POSITIONS_BxM[..., None], axis=1)
        scores_BxMxV = jax.nn.log_softmax(mlm.predict(params, config, hidden_BxMxD))
        return scores_BxMxV[..., 7].mean(), hidden_BxMxD

    (_, hidden_BxMxD), gradients = jax.jit(jax.value_and_grad(score, has_aux=True))(random_params(config))
    return hidden_BxMxD, gradients


@pytest.mark.parametrize(
    ('config', 'forms'),
    [
        (POST, [(dict(scan_layers=False, remat=True), True)]),
        (PRE_ROTARY, [(dict(), True), (dict(remat=True), False), (dict(scan_layers=False), False)]),
    ],
    ids=['post-row', 'pre-rotary-document'],
)
def test_states_and_gradients_are_the_same_in_every_form(config, forms):
    expected = run(config, at_positions=False)
    for form, at_positions in forms:
        found = run(dataclasses.replace(config, **form), at_positions)
        for (path, a), b in zip(jax.tree_util.tree_leaves_with_path(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=5e-6, err_msg=f'{form} {jax.tree_util.keystr(path)}')


def test_remat_keeps_less_for_the_backward_pass():
    def kept(config):
        tokens_BxL = random_tokens(config, DOCUMENTS_BxL.shape)
        _, pull_back = jax.eval_shape(
            lambda params: jax.vjp(lambda p: mlm.encode(p, config, tokens_BxL, DOCUMENTS_BxL), params),
            random_params(config),
        )
        return sum(leaf.size for leaf in jax.tree.leaves(pull_back))

    assert kept(dataclasses.replace(POST, remat=True)) < kept(POST)
