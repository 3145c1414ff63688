"""The area under a ROC curve, as a pair that adds up."""

import jax
import jax.numpy as jnp

BINS = 128
"""Of scores, each an eighth of their standard deviation wide; the outermost hold all beyond."""
PER_DEVIATION = 8


def ranking(scores_BxL: jax.Array, high_BxL: jax.Array, low_BxL: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Pairs of a high and a low of which the high has the higher score, ties half; and all pairs.

    Their quotient is the area under the ROC curve. Scores are compared by bins, since sorting would bring the rows of
    all devices together: two in one bin are a tie.

    Args:
      high_BxL, low_BxL: float32 weights, 1 for what should have a high score and for what should have a low one.
    """
    weights_BxL = high_BxL + low_BxL
    total = jnp.maximum(jnp.sum(weights_BxL), 1.0)
    mean = jnp.sum(weights_BxL * scores_BxL) / total
    deviation = jnp.sqrt(jnp.sum(weights_BxL * jnp.square(scores_BxL - mean)) / total)
    bin_BxL = jnp.floor((scores_BxL - mean) / jnp.maximum(deviation, 1e-12) * PER_DEVIATION) + BINS // 2
    is_here_BxLxN = jnp.clip(bin_BxL, 0, BINS - 1)[..., None] == jnp.arange(BINS, dtype=jnp.float32)[None, None]
    high_N, low_N = (
        jnp.sum(jnp.where(is_here_BxLxN, side[..., None], 0.0), axis=(0, 1)) for side in (high_BxL, low_BxL)
    )
    below_N = jnp.cumsum(low_N) - low_N
    return jnp.sum(high_N * (below_N + low_N / 2)), jnp.sum(high_N) * jnp.sum(low_N)
