"""Dropout whose noise is cheap to draw and is drawn again in the backward pass rather than kept.

Threefry costs more than all else in dropout on a CPU. Here a typed key gives 96 bits by threefry, and each element's
bits come from those and its place by integer hashing (the finaliser `triple32` of C. Wellons, with words of the key
mixed in before it and after its first round). So the noise depends on the key and on the element's place in the whole
array alone, not on how the array is laid out over devices, and no array of noise is ever stored.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp


def noise_seed(key: jax.Array) -> jax.Array:
    """Three uint32 words, from a typed key, that `drop` and `keep` draw from."""
    return jax.random.bits(key, (3,), jnp.uint32)


def keep(seed_3: jax.Array, rate: float, shape: tuple[int, ...], positions_BxM: jax.Array | None = None) -> jax.Array:
    """Boolean array: False with probability `rate` (to 1 / 2^32), independently for each element.

    Args:
      positions_BxM: the array is [B, ..., M, C] and its rows stand at these places of one of [B, ..., L, C], whose
        noise they get. None: at 0 to M - 1.
    """
    outer, (rows, columns) = shape[:-2], shape[-2:]
    seed_of_outer = hashed(_places(outer), seed_3[0], seed_3[1]).reshape(outer + (1, 1))
    if positions_BxM is None:
        row = jnp.arange(rows, dtype=jnp.uint32).reshape((1,) * len(outer) + (rows, 1))
    else:
        row = positions_BxM.astype(jnp.uint32).reshape(shape[:1] + (1,) * (len(outer) - 1) + (rows, 1))
    column = jnp.arange(columns, dtype=jnp.uint32).reshape((1,) * (len(shape) - 1) + (columns,))
    return hashed(row * jnp.uint32(columns) + column, seed_of_outer, seed_3[2]) >= jnp.uint32(round(rate * 2**32))


def _places(shape: tuple[int, ...]) -> jax.Array:
    """Row-major numbers of an array's elements."""
    return jnp.arange(math.prod(shape), dtype=jnp.uint32).reshape(shape)


def hashed(x: jax.Array, before: jax.Array, between: jax.Array) -> jax.Array:
    """32 random bits for each number `x`, all uint32: alike for equal numbers and equal words of a key."""
    x = x ^ before
    x = (x ^ (x >> 17)) * jnp.uint32(0xED5AD4BB) + between
    x = (x ^ (x >> 11)) * jnp.uint32(0xAC4C1B51)
    x = (x ^ (x >> 15)) * jnp.uint32(0x31848BAB)
    return x ^ (x >> 14)


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def drop(x: jax.Array, seed_3: jax.Array, rate: float, positions_BxM: jax.Array | None = None) -> jax.Array:
    """`x` with a share `rate` of its elements set to 0 and the others divided by 1 - rate; noise as `keep` draws it."""
    return jnp.where(keep(seed_3, rate, x.shape, positions_BxM), x * (1 / (1 - rate)), 0).astype(x.dtype)


def _forward(x, seed_3, rate, positions_BxM):
    return drop(x, seed_3, rate, positions_BxM), (seed_3, positions_BxM)


def _backward(rate, noise, gradient):
    seed_3, positions_BxM = noise
    return drop(gradient, seed_3, rate, positions_BxM), None, None


drop.defvjp(_forward, _backward)
