"""Rotary positions."""

import jax
import jax.numpy as jnp


def rotate(x: jax.Array, positions: jax.Array, length_axis: int, base: float = 10_000.0) -> jax.Array:
    """Turns pairs of a head's features by angles proportional to the position (Su et al. 2021, RoFormer, Section 3.2).

    Feature k is paired with k + K / 2; RoFormer's own pairs (2k, 2k + 1) are the same up to the features' order. Angles
    in float32.

    Args:
      x: queries or keys, [B, H, L, K] with length_axis -2 or [B, H, K, L] with length_axis -1.
      positions: [B, L] or [1, L].
    """
    feature_axis = -3 - length_axis
    half = x.shape[feature_axis] // 2
    frequency_k = base ** (-jnp.arange(half, dtype=jnp.float32) / half)
    angle_Bx1xLxk = positions.astype(jnp.float32)[:, None, :, None] * frequency_k[None, None, None, :]
    angle = angle_Bx1xLxk if length_axis == -2 else angle_Bx1xLxk.swapaxes(-1, -2)
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    first, second = jnp.split(x.astype(jnp.float32), 2, axis=feature_axis)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=feature_axis).astype(x.dtype)
