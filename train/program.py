"""What a cohort compiles: the initial state and each stage's step, placed on a mesh."""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding

from data.loader import HostBatch
from data.vocabulary import Vocabulary
from model.parameters import axis_sizes
from train.cohort import Cohort, units_of
from train.mesh import local_rows, make_mesh
from train.objectives.table import objective_of
from train.rates import copies, target_slots
from train.replicas import over_replicas
from train.settings import Settings, settings_at, stacked
from train.sharding import optimizer_shardings, parameter_shardings, placed, put
from train.step import Batch, State, init_state, make_train_step


@dataclass(frozen=True)
class Program:
    """A cohort's functions on a mesh. Every leaf of a state leads with the replica axis R."""

    cohort: Cohort
    vocabulary: Vocabulary
    mesh: Mesh

    @classmethod
    def of(cls, cohort: Cohort, vocabulary: Vocabulary) -> 'Program':
        """On the mesh that the cohort's config asks for.

        Raises:
          ValueError: the mesh does not fit the devices, the replicas or a batch size; or words are to be masked whole,
            and the tokenizer does not say where they begin.
        """
        config = cohort.config
        units = sorted(units_of(cohort) - {'token'})
        if units and not vocabulary.starts_word[vocabulary.ordinary].any():
            raise ValueError(f'masking.unit {units[0]}: no piece of this tokenizer begins a word; use token')
        rows = tuple(stage.batch_size // config.optimizer.micro_batches for stage in config.stages)
        sizes = axis_sizes(objective_of(config).declared(config))
        return cls(cohort, vocabulary, make_mesh(config.run.mesh, len(cohort.replicas), rows, sizes))

    def init(self) -> State:
        """New replicas."""
        placed_state = jax.tree.map(lambda leaf: leaf.sharding, self.abstract_state())
        init = jax.jit(self._init, out_shardings=placed_state).lower(self._seeds())
        # It runs once: compiled without optimisation it is ready in a fifth of the time.
        return init.compile({'xla_backend_optimization_level': 0})(self._seeds())

    def abstract_state(self) -> State:
        """Shapes, dtypes and shardings of the state, as restoring a checkpoint needs them."""
        config = self.cohort.config
        shapes = jax.eval_shape(self._init, self._seeds())
        params = parameter_shardings(shapes.params, objective_of(config).declared(config), self.mesh)
        by_replica = placed(self.mesh, 'replica')
        shardings = State(
            params,
            optimizer_shardings(shapes.opt_state, params, config.optimizer, self.mesh),
            step=by_replica,
            seen_rows=by_replica,
        )
        return jax.tree.map(_abstract, shapes, shardings)

    def encoders(self, params: Any) -> Any:
        """What is evaluated and fine-tuned of parameters, of all replicas (stacked) or of one: trees of `model.mlm`."""
        return objective_of(self.cohort.config).encoder(params)

    def compile_step(self, stage: int) -> Any:
        """The compiled `(state, settings, batch) -> (state, metrics)` of a stage; the state's buffers are donated."""
        return self.lower_step(stage).compile()

    def lower_step(self, stage: int) -> jax.stages.Lowered:
        """The step of a stage before it is compiled; the mesh's devices need not be there (a TPU topology)."""
        config = self.cohort.config
        length = config.stages[stage].length
        slots = target_slots([replica.config.masking for replica in self.cohort.replicas], length)
        step = make_train_step(config, self.vocabulary, slots, copies(config.masking), units_of(self.cohort))
        every = over_replicas(step, self.mesh)

        def train_step(state: State, settings: Settings, batch: Batch):
            return every((state, settings), batch)

        state = self.abstract_state()
        by_replica = placed(self.mesh, 'replica')
        settings = jax.tree.map(lambda leaf: _abstract(leaf, by_replica), self._settings(0))
        out = (jax.tree.map(lambda leaf: leaf.sharding, state), by_replica)
        return jax.jit(train_step, donate_argnums=0, out_shardings=out).lower(
            state, settings, self._abstract_batch(stage)
        )

    def settings(self, step: int) -> Settings:
        """What differs between the replicas at a step, each leaf [R], on the devices."""
        return put(self._settings(step), placed(self.mesh, 'replica'))

    def local_rows(self, stage: int) -> np.ndarray:
        """Numbers of those rows of a stage's batches that this process has to load, in order."""
        return local_rows(self.mesh, self.cohort.config.stages[stage].batch_size)

    def batch(self, rows: HostBatch, stage: int, step: int) -> Batch:
        """This process's rows (`local_rows`) of a stage's batch as arrays over all devices of the mesh."""
        shapes = self._abstract_batch(stage)
        placed_rows = [
            shape and jax.make_array_from_process_local_data(shape.sharding, leaf, shape.shape)
            for leaf, shape in zip(rows, shapes, strict=False)
        ]
        seeds = np.asarray(self.cohort.seeds, np.uint32)
        return Batch(*placed_rows, *put((seeds, np.int32(step)), placed(self.mesh)))

    def _settings(self, step: int) -> Settings:
        return stacked([settings_at(replica.config, replica.seed, step) for replica in self.cohort.replicas])

    def _abstract_batch(self, stage: int) -> Batch:
        shape, seeds = self.cohort.config.stages[stage], len(self.cohort.seeds)
        everywhere, by_row = placed(self.mesh), placed(self.mesh, 'seed', 'batch')
        rows = jax.ShapeDtypeStruct((seeds, shape.batch_size), np.int32, sharding=by_row)
        tokens = jax.ShapeDtypeStruct((*rows.shape, shape.length), np.int32, sharding=by_row)
        masks_collocations = 'collocation' in units_of(self.cohort)
        return Batch(
            tokens_SxBxL=tokens,
            row_ids_SxB=rows,
            epochs_SxB=rows,
            joins_SxBxL=tokens.update(dtype=bool) if masks_collocations else None,
            pair_labels_SxB=rows if self.cohort.config.objective.judges_pairs else None,
            seeds_S=jax.ShapeDtypeStruct((seeds,), np.uint32, sharding=everywhere),
            step=jax.ShapeDtypeStruct((), np.int32, sharding=everywhere),
        )

    def _init(self, seeds_R):
        return over_replicas(lambda seed, _: init_state(seed, self.cohort.config), self.mesh)(seeds_R, None)

    def _seeds(self):
        return np.asarray([replica.seed for replica in self.cohort.replicas], np.uint32)


def _abstract(leaf: Any, sharding: NamedSharding) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)
