"""AdamW with bias correction, with a learning rate for each depth of the network."""

from typing import Any

import jax
import jax.numpy as jnp
import optax

from train import optimizer
from train.config import OptimizerConfig
from train.finetuning.config import FinetuneConfig


def transformation(
    config: FinetuneConfig, layers: int, learning_rate, weight_decay, layerwise_decay
) -> optax.GradientTransformation:
    """The update of one replica: clipping, AdamW, then each leaf's step times layerwise_decay ** its distance.

    Args:
      config: fields that are arguments too are read from those.
      layers: those of the encoder.
      learning_rate, weight_decay, layerwise_decay: may be traced: the state's structure depends on none.
    """
    adamw = OptimizerConfig(beta2=config.beta2, clip_norm=config.clip_norm)

    def scale(updates, state, params=None):
        del params
        distances = distances_from_output(updates, layers)
        return jax.tree.map(lambda update, far: update * layerwise_decay**far, updates, distances), state

    by_depth = optax.GradientTransformation(optax.init_empty_state, scale)
    return optax.chain(optimizer.transformation(adamw, learning_rate, weight_decay), by_depth)


def distances_from_output(params: Any, layers: int) -> Any:
    """How many layers each leaf is below the head's output (Clark et al. 2020's code, run_finetuning's optimizer).

    The pooler, where there is one, is a layer; the encoder's last layer comes below it; embeddings are the lowest. What
    all layers share is as near as the last of them. In that code the last layer is two below the output even without a
    pooler, which its author calls an oversight.

    Returns:
      A pytree like `params` of float32 that broadcast with the leaves: stacked layers have a distance each.
    """
    top = 2 if 'pooler' in params['head'] else 1

    def distance(path, leaf):
        names = [entry.key for entry in path]
        if names[0] == 'head':
            return jnp.float32(names[1] == 'pooler')
        if names[1] == 'layers':
            far_N = top + layers - 1 - jnp.arange(layers, dtype=jnp.float32)
            return far_N.reshape((layers,) + (1,) * (leaf.ndim - 1))
        return jnp.float32(top + layers if names[1] == 'embeddings' else top)

    return jax.tree_util.tree_map_with_path(distance, params)
