"""The analytic count against XLA's, which takes a loop's body once: so on unrolled layers."""

import jax
import jax.numpy as jnp
import pytest

from model import mlm
from model.config import SIZES, ModelConfig
from model.flops import forward_flops


@pytest.mark.parametrize(('size', 'length', 'targets'), [('tiny', 128, 24), ('mini', 64, 32), ('mini', 512, 208)])
def test_count_agrees_with_xla_on_an_unrolled_step(size, length, targets):
    config = ModelConfig(**SIZES[size], vocab_size=1000, scan_layers=False, dropout=0.0, attention_dropout=0.0)
    params = jax.eval_shape(lambda: mlm.init(jax.random.key(0), config))
    tokens_BxL = jax.ShapeDtypeStruct((4, length), jnp.int32)
    positions_BxM = jax.ShapeDtypeStruct((4, targets), jnp.int32)

    def score(params, tokens_BxL, positions_BxM):
        ones_BxL = jnp.ones_like(tokens_BxL)
        hidden_BxMxD = mlm.encode(params, config, tokens_BxL, ones_BxL, positions_BxM=positions_BxM)
        return jax.nn.logsumexp(mlm.predict(params, config, hidden_BxMxD), axis=-1).sum()

    def count(function):
        return jax.jit(function).lower(params, tokens_BxL, positions_BxM).compile().cost_analysis()['flops']

    assert forward_flops(config, 4, length, targets) == pytest.approx(count(score), rel=0.1)
    assert 3 * forward_flops(config, 4, length, targets) == pytest.approx(count(jax.value_and_grad(score)), rel=0.1)


def test_base_costs_what_its_parameters_say():
    # 6 x parameters x tokens for training, the embeddings (looked up) and attention's products apart.
    config = ModelConfig(**SIZES['base'], vocab_size=30_522)
    layers = 12 * (4 * 768 * 768 + 2 * 768 * 3072)
    head = 768 * 768 + 768 * 30_592
    all_scored = 3 * forward_flops(config, 1, 128, 128)
    assert all_scored == 6 * (layers + head) * 128 + 3 * 12 * 4 * 128 * 128 * 768


def test_an_output_of_unknown_size_is_not_counted_as_none():
    with pytest.raises(ValueError, match='model.vocab_size is 0'):
        forward_flops(ModelConfig(), 8, 32, 5)
