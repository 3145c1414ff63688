"""Tokens drawn from a model's distribution, or uniformly, by noise that belongs to the row."""

import jax
import jax.numpy as jnp

from data.vocabulary import Vocabulary
from model.attention import NEVER
from model.dropout import hashed
from train.masking import is_ordinary, ordinary_ids


def slot_seeds(noise_Bx3: jax.Array, slots: int) -> jax.Array:
    """Two uint32 words for each target slot of each row, [B, M, 2], from three for each row.

    The slot's number is the rank of its target, which is the same at every rate.
    """
    slots_1xM = jnp.arange(slots, dtype=jnp.uint32)[None]
    first_BxM = hashed(slots_1xM, noise_Bx3[:, :1], noise_Bx3[:, 1:2])
    return jnp.stack([first_BxM, jnp.broadcast_to(noise_Bx3[:, 2:], first_BxM.shape)], axis=-1)


def gumbel(seeds_BxMx2: jax.Array, size: int) -> jax.Array:
    """Standard Gumbel noise, float32 [B, M, size], a function of each slot's seed and the place alone.

    From 23 bits: the uniform number is never 0 or 1, so the noise is finite, from -2.8 to 16.6.
    """
    places_1x1xV = jnp.arange(size, dtype=jnp.uint32)[None, None]
    bits_BxMxV = hashed(places_1x1xV, seeds_BxMx2[..., :1], seeds_BxMx2[..., 1:])
    uniform_BxMxV = ((bits_BxMxV >> 9).astype(jnp.float32) + 0.5) * 2.0**-23
    return -jnp.log(-jnp.log(uniform_BxMxV))


def sampled(logits_BxMxV: jax.Array, seeds_BxMx2: jax.Array, vocabulary: Vocabulary, temperature: float) -> jax.Array:
    """One ordinary id for each slot, int32 [B, M], drawn from softmax(logits / temperature); it has no gradient.

    By the largest of logit and Gumbel noise (Gumbel 1954; Jang et al. 2017, Section 2.1). Special tokens, which are
    never targets, are never drawn.
    """
    size = logits_BxMxV.shape[-1]
    ids_1x1xV = jnp.arange(size, dtype=jnp.int32)[None, None]
    logits_BxMxV = jax.lax.stop_gradient(logits_BxMxV.astype(jnp.float32)) / temperature
    noisy_BxMxV = jnp.where(is_ordinary(ids_1x1xV, vocabulary), logits_BxMxV + gumbel(seeds_BxMx2, size), NEVER)
    # By two plain reductions: argmax is slow on CPU.
    is_largest_BxMxV = noisy_BxMxV == jnp.max(noisy_BxMxV, axis=-1, keepdims=True)
    # The clip is for logits that are not finite, of which none is the largest.
    return jnp.minimum(jnp.min(jnp.where(is_largest_BxMxV, ids_1x1xV, size), axis=-1), size - 1)


def uniform(seeds_BxMx2: jax.Array, vocabulary: Vocabulary) -> jax.Array:
    """One ordinary id for each slot, int32 [B, M], any with the same chance."""
    return ordinary_ids(hashed(jnp.uint32(0), seeds_BxMx2[..., 0], seeds_BxMx2[..., 1]), vocabulary)
