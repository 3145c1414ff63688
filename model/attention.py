"""Self-attention: who may attend to whom, and the layer."""

import math
from typing import Literal

import jax
import jax.numpy as jnp
from flax import linen as nn

from model.config import ModelConfig
from model.dropout import drop
from model.linear import Linear
from model.rotary import rotate

# Stands for "may not attend". Finite in bfloat16 too: a row of nothing else has even weights, not NaN.
NEVER = -1e30


def attention_mask(document_ids_BxL: jax.Array, attend: Literal['row', 'document']) -> jax.Array:
    """Boolean, True where a token may attend: [B, 1, 1, L] (keys) for 'row', [B, 1, L, L] (queries, keys) for 'document'.

    Document id 0 is padding, which no real token attends to.
    """
    if attend == 'row':
        return (document_ids_BxL > 0)[:, None, None, :]
    return (document_ids_BxL[:, None, :, None] == document_ids_BxL[:, None, None, :])


def attention(
    query_BxHxLxK: jax.Array,
    key_BxHxLxK: jax.Array,
    value_BxHxLxK: jax.Array,
    mask_Bx1xLxL: jax.Array,
    seed_3: jax.Array | None,
    rate: float,
) -> jax.Array:
    """Scaled dot-product attention (Vaswani et al. 2017, Section 3.2.1), its softmax in float32.

    Args:
      mask_Bx1xLxL: True where a query (third axis, or 1) may attend to a key.
      seed_3: noise for dropping attention weights at `rate`; None: none is dropped.
    """
    scores_BxHxLxM = jnp.einsum(
        'bhlk,bhmk->bhlm', query_BxHxLxK, key_BxHxLxK, preferred_element_type=jnp.float32
    ) / math.sqrt(query_BxHxLxK.shape[-1])
    weights_BxHxLxM = jax.nn.softmax(jnp.where(mask_Bx1xLxL, scores_BxHxLxM, NEVER), axis=-1)
    if seed_3 is not None:
        weights_BxHxLxM = drop(weights_BxHxLxM, seed_3, rate)
    return jnp.einsum('bhlm,bhmk->bhlk', weights_BxHxLxM.astype(value_BxHxLxK.dtype), value_BxHxLxK)


class SelfAttention(nn.Module):
    """Multi-head self-attention with biases, as BERT's."""

    config: ModelConfig

    @nn.compact
    def __call__(self, x_BxLxD: jax.Array, mask_Bx1xLxL: jax.Array, seed_3: jax.Array | None) -> jax.Array:
        config = self.config
        width, heads, head_width = config.width, config.heads, config.head_width

        # Straight to BxHxLxK: on a CPU, products over the last two axes are the fast ones.
        def project(name: str) -> jax.Array:
            shape, axes = (width, heads, head_width), ('embed', 'heads', 'head')
            return Linear('bld,dhk->bhlk', shape, axes, name=name)(x_BxLxD)

        query_BxHxLxK, key_BxHxLxK, value_BxHxLxK = project('query'), project('key'), project('value')
        if config.positions == 'rotary':
            query_BxHxLxK, key_BxHxLxK = rotate(query_BxHxLxK), rotate(key_BxHxLxK)
        mixed_BxHxLxK = attention(
            query_BxHxLxK, key_BxHxLxK, value_BxHxLxK, mask_Bx1xLxL, seed_3, config.attention_dropout
        )
        shape, axes = (heads, head_width, width), ('heads', 'head', 'embed')
        return Linear('bhlk,hkd->bld', shape, axes, name='output')(mixed_BxHxLxK)
