"""Where every random number comes from: (seed, purpose), and for a row its length, id, epoch and copy."""

import jax

WEIGHTS, DROPOUT, RANKS, RULE, REPLACEMENTS, HEAD, HEAD_DROPOUT, SPANS, CUTS, SAMPLES = range(10)
"""Purposes. Numbers drawn for one are independent of those drawn for another. HEAD... are of fine-tuning."""


def purpose_key(seed: jax.Array, purpose: int) -> jax.Array:
    """The typed threefry key of a seed (traced or not) for one purpose."""
    return jax.random.fold_in(jax.random.key(seed, impl='threefry2x32'), purpose)
