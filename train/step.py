"""One update of one replica: masking, loss, gradients and the new weights, as a pure function."""

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from data.vocabulary import Vocabulary
from model.parameters import draw_tree
from train.config import Config
from train.masking import document_ids, mask_rows, pair_ids, sample_noise
from train.objectives.objective import Inputs, Pairs
from train.objectives.table import objective_of
from train.optimizer import transformation
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
    pair_labels_SxB: jax.Array | None
    """Where pairs are judged (`HostBatch`)."""
    seeds_S: jax.Array
    step: jax.Array
    """Updates done before this one."""


class Metrics(NamedTuple):
    """Of one step, for one replica."""

    pairs: Pairs
    """Metric -> (sum, weight)."""
    targets: jax.Array
    """Those of the objective's term that has most."""
    grad_norm: jax.Array
    alive: jax.Array
    """False once the replica has failed."""


def init_state(seed: jax.Array, config: Config) -> State:
    """A new replica; its weights depend on the seed and on each leaf's path alone."""
    params = init_params(purpose_key(seed, WEIGHTS), config)
    opt_state = transformation(config.optimizer, 0.0, 0.0).init(params)
    return State(params, opt_state, jnp.int32(0), jnp.int32(0))


def init_params(key: jax.Array, config: Config) -> Any:
    """All parameters of the config's objective, drawn leaf by leaf from (key, path, layer)."""
    return draw_tree(key, objective_of(config).declared(config), config.model.init_stddev)


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
    micro_batches, objective = config.optimizer.micro_batches, objective_of(config)

    def train_step(replica, batch: Batch):
        state, settings = replica
        own = jnp.argmax(batch.seeds_S == settings.seed)
        tokens_BxL = batch.tokens_SxBxL[own]
        document_ids_BxL, type_ids_BxL = document_ids(tokens_BxL, vocabulary), None
        if config.objective.has_pairs:
            document_ids_BxL, type_ids_BxL = pair_ids(tokens_BxL, vocabulary)
        rows = (batch.row_ids_SxB[own], batch.epochs_SxB[own], settings)
        joins_BxL = None if batch.joins_SxBxL is None else batch.joins_SxBxL[own]
        choice = dict(slots=slots, copies=copies, units=units, joins_BxL=joins_BxL)
        pair_labels_B = None if batch.pair_labels_SxB is None else batch.pair_labels_SxB[own]
        tokens, documents, types, pair_labels = jax.tree.map(
            lambda array: jnp.repeat(array, copies, axis=0), (tokens_BxL, document_ids_BxL, type_ids_BxL, pair_labels_B)
        )
        inputs = Inputs(
            mask_rows(tokens_BxL, document_ids_BxL, *rows, vocabulary, **choice),
            tokens,
            documents,
            sample_noise(tokens_BxL.shape[1], *rows, copies),
            types,
            pair_labels,
        )
        weights = objective.weights(config, inputs)
        dropout_key = jax.random.fold_in(purpose_key(settings.seed, DROPOUT), batch.step)

        def part_loss(params, part: Inputs, index):
            """This part's share of the batch's loss: the one division is by the weights of the whole batch."""
            sums, pairs = objective.loss(params, config, vocabulary, part, jax.random.fold_in(dropout_key, index))
            return sum(sums[term] / jnp.maximum(weights[term], 1.0) for term in sums), pairs

        gradient = jax.value_and_grad(part_loss, has_aux=True)
        if micro_batches == 1:
            (loss, pairs), grads = gradient(state.params, inputs, 0)
        else:
            # Part i holds rows i, i + k, ...: neighbours go to different parts, so each keeps its rows' device.
            parts = jax.tree.map(lambda a: a.reshape((-1, micro_batches) + a.shape[1:]).swapaxes(0, 1), inputs)

            def add(total, indexed):
                found, grads = gradient(state.params, *indexed)
                return jax.tree.map(jnp.add, total, grads), found

            zeros = jax.tree.map(jnp.zeros_like, state.params)
            grads, found = jax.lax.scan(add, zeros, (parts, jnp.arange(micro_batches)))
            loss, pairs = jax.tree.map(jnp.sum, found)

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
        targets = jnp.max(jnp.stack(list(weights.values())))
        return state, Metrics({'loss': (loss, jnp.float32(1)), **pairs}, targets, grad_norm, alive)

    return train_step
