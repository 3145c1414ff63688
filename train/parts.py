"""The loss of many target slots, a stretch of them at a time."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

SLOTS = 128
"""Slots of a row whose logits exist at once, on every row: at 40% of 512 tokens half of all."""

Loss = Callable[..., tuple[jax.Array, tuple[Any, Any]]]


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def in_parts(
    loss: Loss, params: Any, hidden_BxMxD: jax.Array, arrays_BxM: tuple[jax.Array, ...]
) -> tuple[jax.Array, tuple[Any, Any]]:
    """What `loss(params, hidden, *arrays) -> (loss, (sums, slots))` gives for all slots, from stretches of them.

    Losses and sums add up; slots, a tree of arrays [B, M, ...], are put together again. The gradient of a stretch is
    taken with its loss, so that its logits are gone before the next one's come: they would all wait for the backward
    pass otherwise, the largest arrays of a step. Sums and slots have no gradient.

    Args:
      params: what `loss` reads. Gradients of stretches have their types while they wait for each other.
      arrays_BxM: numbers of each slot, [B, M, ...], which have no gradient either.
    """
    return _forward(loss, params, hidden_BxMxD, arrays_BxM)[0]


def _forward(loss, params, hidden_BxMxD, arrays_BxM):
    count = hidden_BxMxD.shape[1]
    stretches = -(-count // SLOTS)
    bounds = [count * part // stretches for part in range(stretches + 1)]
    total, to_params, to_hidden, slots = None, None, [], []
    for start, end in zip(bounds, bounds[1:], strict=False):
        part = [array[:, start:end] for array in (hidden_BxMxD, *arrays_BxM)]
        if to_params is not None:
            # Not before the last stretch is done, or the compiler has several at once.
            part, to_params = jax.lax.optimization_barrier((part, to_params))
        (found, (sums, of_slots)), gradients = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)(params, *part)
        to_hidden.append(gradients[1])
        slots.append(of_slots)
        total, to_params = (
            more if before is None else jax.tree.map(_added, before, more)
            for before, more in ((total, (found, sums)), (to_params, gradients[0]))
        )
    joined = jax.tree.map(lambda *stretches: jnp.concatenate(stretches, axis=1), *slots)
    to_params = jax.tree.map(lambda leaf, param: leaf.astype(param.dtype), to_params, params)
    return (total[0], (total[1], joined)), (to_params, jnp.concatenate(to_hidden, axis=1))


def _added(a, b):
    return a.astype(jnp.float32) + b.astype(jnp.float32)


def _backward(_, gradients, cotangents):
    # In float32: a factor rounded to bfloat16 would be a little wrong for all of the encoder's gradients alike.
    return *jax.tree.map(lambda leaf: (leaf * cotangents[0]).astype(leaf.dtype), gradients), None


in_parts.defvjp(_forward, _backward)
