"""Losses: each returns sums over targets; the caller divides once, by the weight of everything."""

import jax
import jax.numpy as jnp


def masked_lm(logits_BxMxV: jax.Array, labels_BxM: jax.Array, weights_BxM: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Masked language modelling (Devlin et al. 2019, Section 3.1).

    Returns:
      The summed cross-entropy in nats and the number of right guesses, both over targets (weight 1).
    """
    label_logits_BxM = jnp.take_along_axis(logits_BxMxV, labels_BxM[..., None], axis=-1)[..., 0]
    losses_BxM = jax.nn.logsumexp(logits_BxMxV, axis=-1) - label_logits_BxM
    # A weight of 0 must also silence a loss that is not finite only if its target is unused: hence where, not times.
    loss = jnp.sum(jnp.where(weights_BxM > 0, losses_BxM * weights_BxM, 0.0))
    correct = jnp.sum(weights_BxM * (jnp.argmax(logits_BxMxV, axis=-1) == labels_BxM))
    return loss, correct
