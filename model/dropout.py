"""Dropout whose noise is cheap to draw and is drawn again in the backward pass rather than kept.

Threefry costs more than all else in dropout on a CPU. Here a typed key gives 96 bits by threefry, and each element's
bits come from those and its place by integer hashing (the finaliser `lowbias32` of C. Wellons, with words of the key
mixed in at both ends). So the noise depends on the key and the element's place in the whole array alone, not on how the
array is laid out over devices, and no array of noise is ever stored.
"""

from functools import partial

import jax
import jax.numpy as jnp


def noise_seed(key: jax.Array) -> jax.Array:
    """Three uint32 words, from a typed key, that `drop` and `keep` draw from."""
    return jax.random.bits(key, (3,), jnp.uint32)


def keep(seed_3: jax.Array, rate: float, shape: tuple[int, ...]) -> jax.Array:
    """Boolean array: False with probability `rate` (to 1 / 2^32), independently for each element."""
    rows, columns = shape[:-2], shape[-2:]
    row = _hash(_places(rows), seed_3[0], seed_3[1])
    row = row.reshape(rows + (1, 1))
    place = _places(columns).reshape((1,) * len(rows) + columns)
    return _hash(place, row, seed_3[2]) >= jnp.uint32(round(rate * 2**32))


def _places(shape: tuple[int, ...]) -> jax.Array:
    """Row-major numbers of an array's elements, modulo 2^32."""
    number = jnp.zeros(shape, jnp.uint32)
    stride = 1
    for axis in reversed(range(len(shape))):
        number += jax.lax.broadcasted_iota(jnp.uint32, shape, axis) * jnp.uint32(stride % 2**32)
        stride *= shape[axis]
    return number


def _hash(x: jax.Array, before: jax.Array, between: jax.Array) -> jax.Array:
    x = x ^ before
    x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D) + between
    x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
    return x ^ (x >> 16)


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def drop(x: jax.Array, seed_3: jax.Array, rate: float) -> jax.Array:
    """`x` with a share `rate` of its elements set to 0 and the others divided by 1 - rate."""
    return jnp.where(keep(seed_3, rate, x.shape), x * (1 / (1 - rate)), 0).astype(x.dtype)


def _forward(x, seed_3, rate):
    return drop(x, seed_3, rate), seed_3


def _backward(rate, seed_3, gradient):
    return drop(gradient, seed_3, rate), None


drop.defvjp(_forward, _backward)
