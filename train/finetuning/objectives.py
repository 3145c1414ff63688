"""Losses of downstream tasks: each returns (sum, weight); the caller divides once."""

import jax
import jax.numpy as jnp

from model.attention import NEVER
from model.heads import Kind


def task_loss(
    kind: Kind, outputs: jax.Array, targets: jax.Array, weights_B: jax.Array, document_ids_BxL: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Summed loss in nats (regression: squared error) and what it is summed over: rows, or for tagging words.

    Args:
      outputs: as `model.heads.apply_head` gives them.
      targets: as `data.tasks.features.Features.targets` has them, a batch of them. Those of rows that weigh 0, and
        tags of -1, count for nothing.
    """
    if kind == 'tagging':
        weights_BxL = (targets >= 0).astype(jnp.float32)
        return _sum(_cross_entropy(outputs, jnp.maximum(targets, 0)), weights_BxL)
    if kind == 'regression':
        return _sum(jnp.square(outputs[:, 0] - targets), weights_B)
    if kind == 'classification':
        return _sum(_cross_entropy(outputs, targets), weights_B)
    # Start and end, each one of the row's own tokens.
    scores_BxLx2 = jnp.where((document_ids_BxL > 0)[..., None], outputs, NEVER)
    return _sum(jnp.mean(_cross_entropy(scores_BxLx2.swapaxes(1, 2), targets), axis=-1), weights_B)


def _cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """Over the last axis of the logits, float32."""
    chosen = jnp.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    return jax.nn.logsumexp(logits, axis=-1) - chosen


def _sum(losses: jax.Array, weights: jax.Array) -> tuple[jax.Array, jax.Array]:
    # where, not times: a row of padding must not spoil the sum even if its loss is not finite.
    return jnp.sum(jnp.where(weights > 0, weights * losses, 0.0)), jnp.sum(weights)
