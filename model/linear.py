"""Affine maps, written as einsums."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax.experimental.layout import Layout, with_layout_constraint

from model.layout import per_device
from model.parameters import declare


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def in_order(kernel: jax.Array, axes: tuple[str, ...]) -> jax.Array:
    """The kernel; on TPU its gradient is written in row-major order, that of the parameters and the optimizer's state.

    In the order that XLA takes otherwise it also updates the parameters, and copies all of that there and back. Each
    device sees to its own part: XLA cannot cut the constraint up, and would bring the gradients of all replicas to all.
    """
    return kernel


def _rows_first(gradient):
    row_major = Layout(major_to_minor=tuple(range(gradient.ndim)))
    return with_layout_constraint(gradient, row_major)


def _gradient_in_order(axes, _, gradient):
    rows_first = per_device(_rows_first, (axes,), axes)
    return (jax.lax.platform_dependent(gradient, tpu=rows_first, default=lambda g: g),)


in_order.defvjp(lambda kernel, axes: (kernel, None), _gradient_in_order)


class Linear(nn.Module):
    """x times a kernel, plus a bias.

    Parameters are float32 and are cast to the input's type.
    """

    equation: str
    """Such as 'bld,df->blf'; the kernel's letters that the output has too are the bias's."""
    shape: tuple[int, ...]
    """Of the kernel."""
    axes: tuple[str, ...]
    """Logical names of the kernel's axes."""
    product: Callable[[jax.Array, jax.Array], jax.Array] | None = None
    """Stands for the equation where there is more to it; the two go together."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        inputs, output = self.equation.split('->')
        letters = inputs.split(',')[1]
        kept = [letters.index(letter) for letter in output if letter in letters]
        bias_shape = tuple(self.shape[i] for i in kept)
        kernel = declare(self, 'kernel', self.shape, self.axes)
        bias = declare(self, 'bias', bias_shape, tuple(self.axes[i] for i in kept))
        along = tuple(self.shape[letters.index(letter)] if letter in letters else 1 for letter in output)
        kernel = kernel.astype(x.dtype)
        if kernel.ndim == 2:
            kernel = in_order(kernel, self.axes)
        product = jnp.einsum(self.equation, x, kernel) if self.product is None else self.product(x, kernel)
        return product + bias.reshape(along).astype(x.dtype)
