"""One update of one replica: masking, loss, gradients and the new weights, as a pure function."""

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from data.vocabulary import Vocabulary
from model import mlm
from train.config import Config
from train.masking import Masked, document_ids, mask_rows
from train.objectives import masked_lm
from train.optimizer import transformation
from train.parts import in_parts
from train.randomness import DROPOUT, WEIGHTS, purpose_key
from train.settings import Settings


class State(NamedTuple):
    """All that a replica carries from step to step. In a cohort every leaf leads with the replica axis R."""

    params: Any
    opt_state: Any
    step: jax.Array
    """Updates done. A replica that met a loss or gradient that was not finite stays at the step it had reached."""
    seen_rows: jax.Array
    """Training rows consumed."""


class Batch(NamedTuple):
    """The rows of one step, one slice for each seed, alike for all replicas."""

    tokens_SxBxL: jax.Array
    row_ids_SxB: jax.Array
    epochs_SxB: jax.Array
    joins_SxBxL: jax.Array | None
    """Where an arm masks collocations (`HostBatch`)."""
    seeds_S: jax.Array
    step: jax.Array
    """Updates done before this one."""


class Metrics(NamedTuple):
    """Sums over the targets of one step, for one replica."""

    loss: jax.Array
    weight: jax.Array
    correct: jax.Array
    grad_norm: jax.Array
    alive: jax.Array
    """False once the replica has failed."""


def init_state(seed: jax.Array, config: Config) -> State:
    """A new replica; its weights depend on the seed and on each leaf's path alone."""
    params = mlm.init(purpose_key(seed, WEIGHTS), config.model)
    opt_state = transformation(config.optimizer, 0.0, 0.0).init(params)
    return State(params, opt_state, jnp.int32(0), jnp.int32(0))


def make_train_step(
    config: Config, vocabulary: Vocabulary, slots: int, copies: int, units: Collection[str] = ('token',)
) -> Callable[[tuple[State, Settings], Batch], tuple[State, Metrics]]:
    """The step of one replica: `train_step((state, settings), batch) -> (state, metrics)`.

    Args:
      config: the cohort's; fields that `Settings` carries are read from there instead.
      slots: M, target slots a row.
      copies: times each row is encoded (prediction rate above corruption rate).
      units: those that any arm masks by.
    """
    micro_batches = config.optimizer.micro_batches

    def loss_of(params, masked: Masked, document_ids_BxL, key):
        hidden_BxMxD = mlm.encode(
            params, config.model, masked.inputs_BxL, document_ids_BxL, key=key, positions_BxM=masked.positions_BxM
        )
        # What `predict` reads of them.
        head = {'head': params['head'], 'embeddings': {'token': params['embeddings']['token']}}
        return in_parts(loss_at, head, hidden_BxMxD, (masked.labels_BxM, masked.weights_BxM))

    def loss_at(params, hidden_BxMxD, labels_BxM, weights_BxM):
        return masked_lm(mlm.predict(params, config.model, hidden_BxMxD), labels_BxM, weights_BxM)

    def train_step(replica, batch: Batch):
        state, settings = replica
        own = jnp.argmax(batch.seeds_S == settings.seed)
        tokens_BxL = batch.tokens_SxBxL[own]
        document_ids_BxL = document_ids(tokens_BxL, vocabulary)
        masked = mask_rows(
            tokens_BxL,
            document_ids_BxL,
            batch.row_ids_SxB[own],
            batch.epochs_SxB[own],
            settings,
            vocabulary,
            slots=slots,
            copies=copies,
            units=units,
            joins_BxL=None if batch.joins_SxBxL is None else batch.joins_SxBxL[own],
        )
        document_ids_BxL = jnp.repeat(document_ids_BxL, copies, axis=0)
        weight = jnp.sum(masked.weights_BxM)
        dropout_key = jax.random.fold_in(purpose_key(settings.seed, DROPOUT), batch.step)

        def part_loss(params, part, index):
            """This part's share of the batch's mean loss: the one division is by the weight of the whole batch."""
            masked_part, document_ids_part = part
            loss, correct = loss_of(params, masked_part, document_ids_part, jax.random.fold_in(dropout_key, index))
            return loss / jnp.maximum(weight, 1.0), correct

        gradient = jax.value_and_grad(part_loss, has_aux=True)
        whole = (masked, document_ids_BxL)
        if micro_batches == 1:
            (loss, correct), grads = gradient(state.params, whole, 0)
        else:
            # Part i holds rows i, i + k, ...: neighbours go to different parts, so each keeps its rows' device.
            parts = jax.tree.map(lambda a: a.reshape((-1, micro_batches) + a.shape[1:]).swapaxes(0, 1), whole)

            def add(total, indexed):
                return jax.tree.map(jnp.add, total, gradient(state.params, *indexed)), None

            zeros = ((jnp.float32(0), jnp.float32(0)), jax.tree.map(jnp.zeros_like, state.params))
            ((loss, correct), grads), _ = jax.lax.scan(add, zeros, (parts, jnp.arange(micro_batches)))

        optimizer = transformation(config.optimizer, settings.learning_rate, settings.weight_decay)
        updates, opt_state = optimizer.update(grads, state.opt_state, state.params)
        grad_norm = optax.tree.norm(grads)
        new = State(
            optax.apply_updates(state.params, updates),
            opt_state,
            state.step + 1,
            state.seen_rows + tokens_BxL.shape[0],
        )
        # A failed replica keeps its old state, its step with it, so from then on its step is behind the batch's.
        alive = jnp.isfinite(loss) & jnp.isfinite(grad_norm) & (state.step == batch.step)
        state = jax.tree.map(lambda a, b: jnp.where(alive, a, b), new, state)
        return state, Metrics(loss * weight, weight, correct, grad_norm, alive)

    return train_step
