"""AdamW and LAMB, for parameters whose layers are stacked on a leading axis."""

import jax
import jax.numpy as jnp
import optax

from train.config import OptimizerConfig

DECAYED = {'kernel', 'embedding', 'delta'}
UNDECAYED = {'bias', 'scale'}


def transformation(config: OptimizerConfig, learning_rate, weight_decay) -> optax.GradientTransformation:
    """The update of one replica. Clipping comes first, on the gradient of the whole batch.

    Args:
      learning_rate, weight_decay: may be traced: the state's structure depends on neither.
    """
    moments = optax.scale_by_adam if config.bias_correction else scale_by_uncorrected_adam
    parts = [
        moments(config.beta1, config.beta2, config.epsilon),
        optax.add_decayed_weights(weight_decay, mask=decayed),
    ]
    if config.clip_norm:
        parts.insert(0, optax.clip_by_global_norm(config.clip_norm))
    if config.name == 'lamb':
        parts.append(scale_by_layer_trust_ratio())
    return optax.chain(*parts, optax.scale(-learning_rate))


def decayed(params) -> dict:
    """Which leaves weight decay touches: kernels and embeddings yes, biases and norms' scales no.

    By name, not by rank: a norm's scale has two axes once layers are stacked.

    Returns:
      A pytree of bool like `params`.

    Raises:
      ValueError: a leaf's name is none that this table knows.
    """

    def classify(path, _):
        name = path[-1].key
        if name not in DECAYED | UNDECAYED:
            raise ValueError(f'weight decay of {jax.tree_util.keystr(path)} is not decided: add {name!r} to a set')
        return name in DECAYED

    return jax.tree_util.tree_map_with_path(classify, params)


def scale_by_uncorrected_adam(beta1: float, beta2: float, epsilon: float) -> optax.GradientTransformation:
    """BERT's form of Adam: m / (sqrt(v) + epsilon), moments not corrected for their start at zero.

    After google-research/bert, optimization.py, AdamWeightDecayOptimizer. The state is that of `optax.scale_by_adam`.
    """

    def update(updates, state, params=None):
        del params
        mu = optax.tree.update_moment(updates, state.mu, beta1, 1)
        nu = optax.tree.update_moment_per_elem_norm(updates, state.nu, beta2, 2)
        updates = jax.tree.map(lambda m, v: m / (jnp.sqrt(v) + epsilon), mu, nu)
        return updates, optax.ScaleByAdamState(optax.safe_increment(state.count), mu, nu)

    return optax.GradientTransformation(optax.scale_by_adam(beta1, beta2, epsilon).init, update)


def scale_by_layer_trust_ratio() -> optax.GradientTransformation:
    """LAMB's trust ratio (You et al. 2020, Algorithm 2): one per layer of a stacked leaf, none for undecayed leaves."""
    ratio = optax.scale_by_trust_ratio()

    def scale(update, param):
        return ratio.update(update, ratio.init(param), param)[0]

    def update(updates, state, params):
        def one(path, update, param, is_decayed):
            if not is_decayed:
                return update
            stacked = any(part.key == 'layers' for part in path)
            return jax.vmap(scale)(update, param) if stacked else scale(update, param)

        return jax.tree_util.tree_map_with_path(one, updates, params, decayed(params)), state

    return optax.GradientTransformation(optax.init_empty_state, update)
