"""Affine maps, written as einsums."""

import jax
import jax.numpy as jnp
from flax import linen as nn

from model.parameters import declare


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

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        inputs, output = self.equation.split('->')
        letters = inputs.split(',')[1]
        kept = [letters.index(letter) for letter in output if letter in letters]
        bias_shape = tuple(self.shape[i] for i in kept)
        kernel = declare(self, 'kernel', self.shape, self.axes)
        bias = declare(self, 'bias', bias_shape, tuple(self.axes[i] for i in kept))
        along = tuple(self.shape[letters.index(letter)] if letter in letters else 1 for letter in output)
        return jnp.einsum(self.equation, x, kernel.astype(x.dtype)) + bias.reshape(along).astype(x.dtype)
