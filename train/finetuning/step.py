"""One update of one replica, as a pure function."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from train.finetuning.config import FinetuneConfig
from train.finetuning.network import Network
from train.finetuning.objectives import task_loss
from train.finetuning.optimizer import transformation
from train.finetuning.settings import Settings
from train.randomness import HEAD_DROPOUT, purpose_key


class State(NamedTuple):
    """All that a replica carries from step to step; in a program every leaf leads with the replica axis R."""

    params: Any
    """What is trained: {'encoder', 'head'}, or {'head'} where the encoder is frozen."""
    opt_state: Any
    step: jax.Array
    """Updates done. A replica that met a loss or gradient that was not finite stays at the step it had reached."""


class Batch(NamedTuple):
    """The rows of one step, a slice for each fine-tuning seed, alike for all replicas."""

    tokens_SxBxL: jax.Array
    document_ids_SxBxL: jax.Array
    type_ids_SxBxL: jax.Array
    targets: jax.Array
    """[S, B], tagging [S, B, L], span [S, B, 2]."""
    weights_SxB: jax.Array
    seeds_S: jax.Array
    step: jax.Array
    """Updates done before this one."""


class Metrics(NamedTuple):
    """Of one step and replica."""

    loss: jax.Array
    """Sum over the rows; tagging: over the words."""
    weight: jax.Array
    grad_norm: jax.Array
    alive: jax.Array
    """False once the replica has failed."""


def make_train_step(
    network: Network, config: FinetuneConfig
) -> Callable[[tuple[State, Any, Settings], Batch], tuple[State, Metrics]]:
    """The step of one replica: `train_step((state, frozen, settings), batch) -> (state, metrics)`.

    `frozen` holds the parameters that are not trained, {'encoder'} or nothing.
    """

    def train_step(replica, batch: Batch):
        state, frozen, settings = replica
        own = jnp.argmax(batch.seeds_S == settings.seed)
        tokens_BxL, documents_BxL, types_BxL, targets, weights_B = (leaf[own] for leaf in batch[:5])
        key = jax.random.fold_in(purpose_key(settings.seed, HEAD_DROPOUT), batch.step)

        def mean_loss(trained):
            outputs = network({**frozen, **trained}, tokens_BxL, documents_BxL, types_BxL, key)
            loss, weight = task_loss(network.kind, outputs, targets, weights_B, documents_BxL)
            return loss / jnp.maximum(weight, 1.0), weight

        (loss, weight), grads = jax.value_and_grad(mean_loss, has_aux=True)(state.params)
        optimizer = transformation(config, network.model.layers, *settings[1:])
        updates, opt_state = optimizer.update(grads, state.opt_state, state.params)
        grad_norm = optax.tree.norm(grads)
        new = State(optax.apply_updates(state.params, updates), opt_state, state.step + 1)
        # A failed replica keeps its old state, its step with it, so from then on its step is behind the batch's.
        alive = jnp.isfinite(loss) & jnp.isfinite(grad_norm) & (state.step == batch.step)
        state = jax.tree.map(lambda a, b: jnp.where(alive, a, b), new, state)
        return state, Metrics(loss * weight, weight, grad_norm, alive)

    return train_step
