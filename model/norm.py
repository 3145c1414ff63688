"""LayerNorm with its own gradient."""

from functools import partial

import jax
import jax.numpy as jnp
from flax import linen as nn

from model.parameters import declare


@partial(jax.custom_vjp, nondiff_argnums=(3,))
def layer_norm(x_BxLxD: jax.Array, scale_D: jax.Array, bias_D: jax.Array, epsilon: float) -> jax.Array:
    """LayerNorm over the last axis (Ba et al. 2016), statistics in float32, output in the type of `x`.

    Its own gradient keeps the input and two numbers a token. What autodiff keeps is several arrays of the input's size.
    """
    return _forward(x_BxLxD, scale_D, bias_D, epsilon)[0]


def _forward(x, scale, bias, epsilon):
    x32 = x.astype(jnp.float32)
    mean = jnp.mean(x32, axis=-1, keepdims=True)
    variance = jnp.mean(jnp.square(x32 - mean), axis=-1, keepdims=True)
    inverse = jax.lax.rsqrt(variance + epsilon)
    normed = (x32 - mean) * inverse
    return (normed * _along(scale, x) + _along(bias, x)).astype(x.dtype), (x, scale, mean, inverse)


def _backward(_, residuals, gradient):
    x, scale, mean, inverse = residuals
    gradient32 = gradient.astype(jnp.float32)
    normed = (x.astype(jnp.float32) - mean) * inverse
    rows = tuple(range(x.ndim - 1))
    to_normed = gradient32 * _along(scale, x)
    shift = jnp.mean(to_normed, axis=-1, keepdims=True)
    along = jnp.mean(to_normed * normed, axis=-1, keepdims=True)
    to_x = inverse * (to_normed - shift - normed * along)
    return to_x.astype(x.dtype), jnp.sum(gradient32 * normed, axis=rows), jnp.sum(gradient32, axis=rows)


def _along(vector_D: jax.Array, x: jax.Array) -> jax.Array:
    return vector_D.reshape((1,) * (x.ndim - 1) + vector_D.shape)


layer_norm.defvjp(_forward, _backward)


class LayerNorm(nn.Module):
    """LayerNorm with scale and bias."""

    epsilon: float

    @nn.compact
    def __call__(self, x_BxLxD: jax.Array) -> jax.Array:
        width = x_BxLxD.shape[-1]
        scale_D = declare(self, 'scale', (width,), ('embed',))
        bias_D = declare(self, 'bias', (width,), ('embed',))
        return layer_norm(x_BxLxD, scale_D, bias_D, self.epsilon)
