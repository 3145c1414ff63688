"""The loss of many target slots, a stretch of them at a time."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

SLOTS = 64
"""Slots of a row whose logits exist at once, on every row: at 40% of 512 tokens a quarter of all."""

Loss = Callable[..., tuple[jax.Array, jax.Array]]


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def in_parts(
    loss: Loss, params: Any, hidden_BxMxD: jax.Array, arrays_BxM: tuple[jax.Array, ...]
) -> tuple[jax.Array, jax.Array]:
    """The sums over all slots of `loss(params, hidden, *arrays) -> (loss, count)`, from stretches of them.

    The gradient of a stretch is taken with its loss, so that its logits are gone before the next one's come: they would
    all wait for the backward pass otherwise, the largest arrays of a step. The count has no gradient.
    """
    return _forward(loss, params, hidden_BxMxD, arrays_BxM)[0]


def _forward(loss, params, hidden_BxMxD, arrays_BxM):
    slots = hidden_BxMxD.shape[1]
    stretches = -(-slots // SLOTS)
    bounds = [slots * part // stretches for part in range(stretches + 1)]
    sums, to_params, to_hidden = None, None, []
    for start, end in zip(bounds, bounds[1:], strict=False):
        part = [array[:, start:end] for array in (hidden_BxMxD, *arrays_BxM)]
        found, gradients = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)(params, *part)
        to_hidden.append(gradients[1])
        sums, to_params = (
            more if before is None else jax.tree.map(jnp.add, before, more)
            for before, more in ((sums, found), (to_params, gradients[0]))
        )
    return sums, (to_params, jnp.concatenate(to_hidden, axis=1))


def _backward(_, gradients, cotangents):
    # In float32: a factor rounded to bfloat16 would be a little wrong for all of the encoder's gradients alike.
    return *jax.tree.map(lambda leaf: (leaf * cotangents[0]).astype(leaf.dtype), gradients), None


in_parts.defvjp(_forward, _backward)
