"""Rotary positions."""

import jax
import jax.numpy as jnp


def rotate(x_BxHxLxK: jax.Array, base: float = 10_000.0) -> jax.Array:
    """Turns pairs of a head's features by angles proportional to the position (Su et al. 2021, RoFormer, Section 3.2).

    Feature k is paired with k + K / 2; RoFormer's own pairs (2k, 2k + 1) are the same up to the features' order. Angles
    in float32.
    """
    length, head_width = x_BxHxLxK.shape[-2:]
    half = head_width // 2
    frequency_k = base ** (-jnp.arange(half, dtype=jnp.float32) / half)
    angle_Lxk = jnp.arange(length, dtype=jnp.float32)[:, None] * frequency_k[None, :]
    cos_1x1xLxk, sin_1x1xLxk = jnp.cos(angle_Lxk)[None, None], jnp.sin(angle_Lxk)[None, None]
    x32 = x_BxHxLxK.astype(jnp.float32)
    first, second = x32[..., :half], x32[..., half:]
    turned = [first * cos_1x1xLxk - second * sin_1x1xLxk, second * cos_1x1xLxk + first * sin_1x1xLxk]
    return jnp.concatenate(turned, axis=-1).astype(x_BxHxLxK.dtype)
