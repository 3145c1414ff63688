"""Losses: each returns sums over targets; the caller divides once, by the weight of everything."""

import jax
import jax.numpy as jnp


def masked_lm(logits_BxMxV: jax.Array, labels_BxM: jax.Array, weights_BxM: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Masked language modelling (Devlin et al. 2019, Section 3.1).

    Returns:
      The summed cross-entropy in nats and the number of right guesses, both over targets (weight 1).
    """
    log_probs_BxM, right_BxM = judged(logits_BxMxV, labels_BxM)
    # where, not times: an unused slot must not spoil the sum even if its loss is not finite.
    loss = -jnp.sum(jnp.where(weights_BxM > 0, weights_BxM * log_probs_BxM, 0.0))
    return loss, jnp.sum(weights_BxM * right_BxM)


def judged(logits_BxMxV: jax.Array, labels_BxM: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Log probability of each label, float32 [B, M], and whether it is the likeliest id, bool [B, M]."""
    labels_BxMx1 = labels_BxM[..., None]
    label_logits_BxMx1 = jnp.take_along_axis(logits_BxMxV, labels_BxMx1, axis=-1)
    log_probs_BxM = label_logits_BxMx1[..., 0] - jax.nn.logsumexp(logits_BxMxV, axis=-1)
    # As argmax, the first of equals wins; but argmax itself is ten times as slow on CPU, slower than the softmax.
    before_BxMxV = jnp.arange(logits_BxMxV.shape[-1])[None, None, :] < labels_BxMx1
    beaten_BxMxV = (logits_BxMxV > label_logits_BxMx1) | ((logits_BxMxV == label_logits_BxMx1) & before_BxMxV)
    return log_probs_BxM, ~beaten_BxMxV.any(axis=-1)
