"""The cross-entropy of targets, summed; the caller divides once, by the weight of everything."""

import jax
import jax.numpy as jnp


def cross_entropy(
    logits_BxMxV: jax.Array, labels_BxM: jax.Array, weights_BxM: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Of labels under a softmax, and whether they are its likeliest.

    Returns:
      The summed cross-entropy in nats and the number of right guesses, both over targets (weight 1).
    """
    log_probs_BxM, right_BxM = judged(logits_BxMxV, labels_BxM)
    # where, not times: an unused slot must not spoil the sum even if its loss is not finite.
    loss = -jnp.sum(jnp.where(weights_BxM > 0, weights_BxM * log_probs_BxM, 0.0))
    return loss, jnp.sum(weights_BxM * right_BxM)


@jax.custom_vjp
def judged(logits_BxMxV: jax.Array, labels_BxM: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Log probability of each label, float32 [B, M], and whether it is the likeliest id, bool [B, M].

    As with argmax, the first of equals wins. Its own gradient keeps the logits and a number a target, and both ways
    nothing as large as the logits is written but their gradient.
    """
    return _judge(logits_BxMxV, labels_BxM)[0]


def _judge(logits_BxMxV, labels_BxM):
    largest_BxM = jnp.max(logits_BxMxV, axis=-1)
    # Apart from the largest, so that large logits cost no digits.
    log_total_BxM = jnp.log(jnp.sum(jnp.exp(logits_BxMxV - largest_BxM[..., None]), axis=-1))
    arrays = (logits_BxMxV, labels_BxM, largest_BxM)
    label_BxM, right_BxM = jax.lax.platform_dependent(*arrays, cpu=label_by_lookup, default=label_by_sums)
    return (label_BxM - largest_BxM - log_total_BxM, right_BxM), (*arrays, log_total_BxM)


def label_by_lookup(logits_BxMxV, labels_BxM, _) -> tuple[jax.Array, jax.Array]:
    """The label's logit, and whether it is the first of the largest. Fast on CPU, where argmax and sums are slow."""
    label_BxMx1 = jnp.take_along_axis(logits_BxMxV, labels_BxM[..., None], axis=-1)
    before_BxMxV = _ids(logits_BxMxV) < labels_BxM[..., None]
    beaten_BxMxV = (logits_BxMxV > label_BxMx1) | ((logits_BxMxV == label_BxMx1) & before_BxMxV)
    return label_BxMx1[..., 0], ~beaten_BxMxV.any(axis=-1)


def label_by_sums(logits_BxMxV, labels_BxM, largest_BxM) -> tuple[jax.Array, jax.Array]:
    """The same by two sums that a TPU takes in the reading that also takes the softmax's; a lookup needs a copy."""
    ids_1x1xV = _ids(logits_BxMxV)
    label_BxM = jnp.sum(jnp.where(ids_1x1xV == labels_BxM[..., None], logits_BxMxV, 0), axis=-1)
    is_earlier_BxMxV = (logits_BxMxV == largest_BxM[..., None]) & (ids_1x1xV < labels_BxM[..., None])
    earlier_BxM = jnp.sum(is_earlier_BxMxV.astype(jnp.float32), axis=-1)
    return label_BxM, (label_BxM == largest_BxM) & (earlier_BxM == 0)


def _judge_backward(residuals, gradients):
    logits_BxMxV, labels_BxM, largest_BxM, log_total_BxM = residuals
    probabilities_BxMxV = jnp.exp(logits_BxMxV - largest_BxM[..., None] - log_total_BxM[..., None])
    is_label_BxMxV = _ids(logits_BxMxV) == labels_BxM[..., None]
    return gradients[0][..., None] * (is_label_BxMxV - probabilities_BxMxV), None


def _ids(logits_BxMxV: jax.Array) -> jax.Array:
    return jnp.arange(logits_BxMxV.shape[-1], dtype=jnp.int32)[None, None, :]


judged.defvjp(_judge, _judge_backward)
