"""GELU with its own gradient, and a product with what it returns."""

import math

import jax
import jax.numpy as jnp


@jax.custom_vjp
def gelu(x: jax.Array) -> jax.Array:
    """x times the normal distribution's cumulative probability at x (Hendrycks and Gimpel 2016), by erf as in BERT.

    Computed in float32. Its own gradient keeps the derivative alone, where autodiff keeps several arrays.
    """
    return _with_derivative(x)[0]


def _with_derivative(x):
    x32 = x.astype(jnp.float32)
    cumulative = 0.5 + 0.5 * jax.lax.erf(x32 * math.sqrt(0.5))
    density = jnp.exp(-0.5 * jnp.square(x32)) * (1 / math.sqrt(2 * math.pi))
    return (x32 * cumulative).astype(x.dtype), (cumulative + x32 * density).astype(x.dtype)


gelu.defvjp(_with_derivative, lambda derivative, gradient: (gradient * derivative,))


@jax.custom_vjp
def gelu_product(x_BxLxF: jax.Array, kernel_FxD: jax.Array) -> jax.Array:
    """GELU of x, times a matrix; [B, L, D].

    Its own gradient keeps x alone, half of what both by themselves keep, and computes GELU again; on a CPU, where
    memory is not what is short, it keeps GELU and its derivative.
    """
    return jnp.einsum('blf,fd->bld', gelu(x_BxLxF), kernel_FxD)


def _forward(x_BxLxF, kernel_FxD):
    kept = jax.lax.platform_dependent(x_BxLxF, cpu=_with_derivative, default=lambda x: (x, x))
    activated_BxLxF = jax.lax.platform_dependent(
        *kept, cpu=lambda activated, _: activated, default=lambda x, _: gelu(x)
    )
    return jnp.einsum('blf,fd->bld', activated_BxLxF, kernel_FxD), (kept, kernel_FxD)


def _backward(residuals, gradient_BxLxD):
    kept, kernel_FxD = residuals

    def again(x, _):
        # Behind a barrier, or the compiler finds that it has computed this already and keeps it after all.
        return _with_derivative(jax.lax.optimization_barrier(x))

    activated_BxLxF, derivative_BxLxF = jax.lax.platform_dependent(*kept, cpu=lambda *kept: kept, default=again)
    to_x_BxLxF = jnp.einsum('bld,fd->blf', gradient_BxLxD, kernel_FxD) * derivative_BxLxF
    return to_x_BxLxF, jnp.einsum('blf,bld->fd', activated_BxLxF, gradient_BxLxD)


gelu_product.defvjp(_forward, _backward)
