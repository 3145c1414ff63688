"""Self-attention: who may attend to whom, the reference, and the layer, which may leave the mixing to a kernel."""

from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
from flax import linen as nn

from model import kernels
from model.config import ModelConfig
from model.dropout import drop
from model.layout import named
from model.linear import Linear
from model.rotary import rotate

# Stands for "may not attend". Finite in bfloat16 too: a row of nothing else has even weights, not NaN.
NEVER = -1e30


def attention_mask(
    document_ids_BxL: jax.Array,
    attend: Literal['row', 'document'],
    window: int = 0,
    positions_BxM: jax.Array | None = None,
) -> jax.Array:
    """Boolean, True where a query (third axis) may attend to a key; an axis of 1 stands for all: [B, 1, M, L].

    Document id 0 is padding, which no real token attends to. With positions, queries are those alone.

    Args:
      window: how far to each side a token sees; 0: as far as its row or document goes.
    """
    if attend == 'row':
        mask_Bx1xMxL = (document_ids_BxL > 0)[:, None, None, :]
    else:
        queries = document_ids_BxL if positions_BxM is None else jnp.take_along_axis(document_ids_BxL, positions_BxM, 1)
        mask_Bx1xMxL = queries[:, None, :, None] == document_ids_BxL[:, None, None, :]
    if window:
        place_1xL = jnp.arange(document_ids_BxL.shape[1])[None]
        query_places = place_1xL if positions_BxM is None else positions_BxM
        mask_Bx1xMxL &= jnp.abs(query_places[:, None, :, None] - place_1xL[:, None, None, :]) <= window
    return mask_Bx1xMxL


@partial(jax.custom_vjp, nondiff_argnums=(6,))
def attention(
    query_BxHxLxK: jax.Array,
    key_BxHxKxL: jax.Array,
    value_BxHxKxL: jax.Array,
    mask_Bx1xLxL: jax.Array,
    seed_3: jax.Array | None,
    positions_BxL: jax.Array | None,
    rate: float,
) -> jax.Array:
    """Scaled dot-product attention (Vaswani et al. 2017, Section 3.2.1), its softmax in float32; [B, H, L, K].

    Keys and values have their last two axes swapped, so that no product, forward or backward, contracts over the first
    of the last two axes of an array of [L, L]: that takes three times as long on a CPU. Its own gradient keeps the
    weights before dropout in the compute type, and draws the noise again.

    Queries may be fewer than keys and values.

    Args:
      mask_Bx1xLxL: True where a query (third axis, or 1) may attend to a key.
      seed_3: noise for dropping attention weights at `rate`; None: none is dropped.
      positions_BxL: where the queries stand in the row, for that noise; None: at 0 to L - 1.
    """
    return _forward(query_BxHxLxK, key_BxHxKxL, value_BxHxKxL, mask_Bx1xLxL, seed_3, positions_BxL, rate)[0]


def _forward(query, key, value, mask, seed_3, positions, rate):
    scores = _product('bhlk,bhkm->bhlm', query * query.shape[-1] ** -0.5, key)
    weights = jax.nn.softmax(jnp.where(mask, scores, NEVER), axis=-1)
    dropped = _drop(weights, seed_3, rate, positions).astype(value.dtype)
    mixed = _product('bhlm,bhkm->bhlk', dropped, value).astype(value.dtype)
    return mixed, (query, key, value, weights.astype(value.dtype), mixed, seed_3, positions)


def _backward(rate, residuals, gradient):
    query, key, value, weights, mixed, seed_3, positions = residuals
    scale = query.shape[-1] ** -0.5
    weights32 = weights.astype(jnp.float32)
    dropped = _drop(weights32, seed_3, rate, positions).astype(value.dtype)
    to_value = _product('bhlk,bhlm->bhkm', gradient, dropped)
    to_weights = _drop(_product('bhlk,bhkm->bhlm', gradient, value), seed_3, rate, positions)
    # The sum over keys of weight times its gradient, without an array of [L, L].
    along = jnp.sum(gradient.astype(jnp.float32) * mixed.astype(jnp.float32), axis=-1, keepdims=True)
    to_scores = (weights32 * (to_weights - along)).astype(value.dtype)
    to_query = _product('bhlm,bhkm->bhlk', to_scores, key) * scale
    to_key = _product('bhlk,bhlm->bhkm', query * scale, to_scores)
    return *(a.astype(value.dtype) for a in (to_query, to_key, to_value)), None, None, None


attention.defvjp(_forward, _backward)


def _product(equation: str, a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.einsum(equation, a, b, preferred_element_type=jnp.float32)


def _drop(weights: jax.Array, seed_3: jax.Array | None, rate: float, positions: jax.Array | None) -> jax.Array:
    return weights if seed_3 is None else drop(weights, seed_3, rate, positions)


class SelfAttention(nn.Module):
    """Multi-head self-attention with biases, as BERT's."""

    config: ModelConfig

    @nn.compact
    def __call__(
        self,
        queries_BxMxD: jax.Array,
        x_BxLxD: jax.Array,
        document_ids_BxL: jax.Array,
        seed_3: jax.Array | None,
        positions_BxM: jax.Array | None,
    ) -> jax.Array:
        """States [B, M, D] mixed for the rows `queries` of `x`, which stand at these positions (None: they are all)."""
        config = self.config
        width, heads, head_width = config.width, config.heads, config.head_width

        def project(name: str, inputs: jax.Array, output: str) -> jax.Array:
            shape, axes = (width, heads, head_width), ('embed', 'heads', 'head')
            projected = Linear(f'bld,dhk->{output}', shape, axes, name=name)(inputs)
            return named(projected, 'batch', 'heads', None, None)

        query_BxHxMxK = project('query', queries_BxMxD, 'bhlk')
        key_BxHxKxL = project('key', x_BxLxD, 'bhkl')
        value_BxHxKxL = project('value', x_BxLxD, 'bhkl')
        if config.positions == 'rotary':
            place_1xL = jnp.arange(x_BxLxD.shape[1])[None]
            query_BxHxMxK = rotate(query_BxHxMxK, place_1xL if positions_BxM is None else positions_BxM, length_axis=-2)
            key_BxHxKxL = rotate(key_BxHxKxL, place_1xL, length_axis=-1)
        mix = partial(_mixed, config, seed_3)
        mixed_BxHxMxK = mix(query_BxHxMxK, key_BxHxKxL, value_BxHxKxL, document_ids_BxL, positions_BxM)
        shape, axes = (heads, head_width, width), ('heads', 'head', 'embed')
        return Linear('bhlk,hkd->bld', shape, axes, name='output')(mixed_BxHxMxK)


def _mixed(config, seed_3, query_BxHxMxK, key_BxHxKxL, value_BxHxKxL, document_ids_BxL, positions_BxM) -> jax.Array:
    """By the kernel that the config names where the program is compiled for its device, else by the reference."""
    states = (query_BxHxMxK, key_BxHxKxL, value_BxHxKxL)

    def mask() -> jax.Array:
        return attention_mask(document_ids_BxL, config.attend, config.window, positions_BxM)

    def reference(query, key, value, *_) -> jax.Array:
        return attention(query, key, value, mask(), seed_3, positions_BxM, config.attention_dropout)

    def splash(query, key, value, *segments) -> jax.Array:
        return kernels.splash(query, key.swapaxes(-1, -2), value.swapaxes(-1, -2), *segments, config.window)

    # Padding is a segment of its own, so that no query is without a key.
    key_segments_BxL = document_ids_BxL if config.attend == 'document' else jnp.minimum(document_ids_BxL, 1)
    if config.attention == 'cudnn' and jax.default_backend() == 'gpu':
        query, key, value = states
        mask_Bx1xMxL = attention_mask(key_segments_BxL, 'document', config.window, positions_BxM)
        return kernels.cudnn(query, key.swapaxes(-1, -2), value.swapaxes(-1, -2), mask_Bx1xMxL)
    # Splash's window counts from a query's number, which is not its place where queries are some of the tokens.
    if config.attention == 'splash' and not (config.window and positions_BxM is not None):
        query_segments_BxM = (
            key_segments_BxL if positions_BxM is None else jnp.take_along_axis(key_segments_BxL, positions_BxM, axis=1)
        )
        return jax.lax.platform_dependent(*states, query_segments_BxM, key_segments_BxL, tpu=splash, default=reference)
    return reference(*states)
