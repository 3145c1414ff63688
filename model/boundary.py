"""The head of the span-boundary objective (Joshi et al. 2020, Section 3.2).

y_i = f(x_{s-1}, x_{e+1}, p_{i-s+1}): a token of a masked span from the states of the two tokens around the span and
from its place in the span. f is two layers of affine map, GELU and LayerNorm; the tied table of embeddings turns its
output into logits. The second layer and the output have the form of the MLM head, with parameters of their own.

Beside the parameters of `model.mlm` there are
  boundary/position/embedding, boundary/dense/{kernel,bias}, boundary/norm/{scale,bias}
  boundary/output/dense/{kernel,bias}, boundary/output/norm/{scale,bias}, boundary/output/bias
"""

import jax
import jax.numpy as jnp
from flax import linen as nn

from model import mlm
from model.bert import Head, Table
from model.config import LONGEST_OFFSET, OFFSET_WIDTH, ModelConfig
from model.gelu import gelu
from model.layout import named
from model.linear import Linear
from model.mlm import Params, declared_by
from model.norm import LayerNorm

NAME = 'boundary'
"""Where its parameters are, beside the encoder's."""


class Boundary(nn.Module):
    """See `predict`."""

    config: ModelConfig

    @nn.compact
    def __call__(self, sides_BxMx2D: jax.Array, offsets_BxM: jax.Array, token_VxE: jax.Array) -> jax.Array:
        config, width = self.config, self.config.width
        table_PxI = Table(LONGEST_OFFSET, OFFSET_WIDTH, 'position', 'boundary', name='position')()
        rows_BxM = jnp.clip(offsets_BxM, 1, LONGEST_OFFSET) - 1
        place_BxMxI = jnp.take(table_PxI, rows_BxM, axis=0).astype(sides_BxMx2D.dtype)
        # Cut over its output alone: what goes in is of no width that devices divide well.
        dense = Linear('bmi,id->bmd', (2 * width + OFFSET_WIDTH, width), ('boundary', 'embed'), name='dense')
        hidden_BxMxD = dense(jnp.concatenate([sides_BxMx2D, place_BxMxI], axis=-1))
        hidden_BxMxD = gelu(named(hidden_BxMxD, 'batch', 'length', 'width'))
        hidden_BxMxD = LayerNorm(config.norm_epsilon, name='norm')(hidden_BxMxD)
        return Head(config, name='output')(hidden_BxMxD, token_VxE)


def predict(params: Params, config: ModelConfig, sides_BxMx2D: jax.Array, offsets_BxM: jax.Array) -> jax.Array:
    """Logits [B, M, V] in float32, V = config.padded_vocab_size, as those of `model.mlm.predict`.

    Args:
      sides_BxMx2D: states of the tokens before and after each target's span, side by side.
      offsets_BxM: its place in the span, from 1. Beyond LONGEST_OFFSET all places share the last row of the table.
    """
    table_VxE = params['embeddings']['token']['embedding']
    return Boundary(config).apply({'params': params[NAME]}, sides_BxMx2D, offsets_BxM, table_VxE)


def head_of(params: Params, config: ModelConfig) -> Params:
    """The part of the parameters that `predict` reads, as `model.mlm.head_of` has that of its own."""
    return {NAME: params[NAME], 'embeddings': mlm.head_of(params, config)['embeddings']}


def declared(config: ModelConfig) -> Params:
    """The boxes of its parameters, as `model.mlm.declared` has those of the encoder."""
    sides_1x1x2D = jnp.zeros((1, 1, 2 * config.width), config.dtype)
    table_VxE = jnp.zeros((config.padded_vocab_size, config.table_width))
    return {NAME: declared_by(Boundary(config), sides_1x1x2D, jnp.ones((1, 1), jnp.int32), table_VxE)}
