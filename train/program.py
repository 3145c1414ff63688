"""What a cohort compiles: the initial state and each stage's step, placed on a mesh."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from data.loader import HostBatch
from data.vocabulary import Vocabulary
from train.cohort import Cohort
from train.rates import copies, target_slots
from train.replicas import over_replicas
from train.settings import Settings, settings_at
from train.sharding import by_replica, by_row, make_mesh
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
          ValueError: the mesh does not fit the devices, the replicas or a batch size.
        """
        config = cohort.config
        parts = tuple(stage.batch_size // config.optimizer.micro_batches for stage in config.stages)
        return cls(cohort, vocabulary, make_mesh(config.run.mesh, len(cohort.replicas), parts))

    def init(self) -> State:
        """New replicas."""
        init = jax.jit(self._init, out_shardings=by_replica(self.mesh)).lower(self._seeds())
        # It runs once: compiled without optimisation it is ready in a fifth of the time.
        return init.compile({'xla_backend_optimization_level': 0})(self._seeds())

    def abstract_state(self) -> State:
        """Shapes, dtypes and shardings of the state, as restoring a checkpoint needs them."""
        placed = by_replica(self.mesh)
        shapes = jax.eval_shape(self._init, self._seeds())
        return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=placed), shapes)

    def compile_step(self, stage: int) -> Any:
        """The compiled `(state, settings, batch) -> (state, metrics)` of a stage; the state's buffers are donated."""
        config = self.cohort.config
        length, batch_size = config.stages[stage].length, config.stages[stage].batch_size
        slots = target_slots([replica.config.masking for replica in self.cohort.replicas], length)
        step = make_train_step(config, self.vocabulary, slots, copies(config.masking))
        every = over_replicas(step, self.mesh)

        def train_step(state: State, settings: Settings, batch: Batch):
            return every((state, settings), batch)

        seeds = len(self.cohort.seeds)
        rows = np.zeros((seeds, batch_size), np.int32)
        example = HostBatch(np.zeros((seeds, batch_size, length), np.int32), rows, rows)
        compiled = jax.jit(train_step, donate_argnums=0, out_shardings=by_replica(self.mesh))
        return compiled.lower(self.abstract_state(), self.settings(0), self.batch(example, 0)).compile()

    def settings(self, step: int) -> Settings:
        """What differs between the replicas at a step, each leaf [R], on the devices."""
        each = [settings_at(replica.config, replica.seed, step) for replica in self.cohort.replicas]
        stacked = Settings(*(np.stack(leaf) for leaf in zip(*each, strict=True)))
        return jax.device_put(stacked, by_replica(self.mesh))

    def batch(self, rows: HostBatch, step: int) -> Batch:
        """A host's rows as arrays over all devices of the mesh."""

        def place(leaf):
            return jax.make_array_from_process_local_data(by_row(self.mesh), leaf)

        shared = NamedSharding(self.mesh, P())
        seeds = jax.device_put(np.asarray(self.cohort.seeds, np.uint32), shared)
        return Batch(*map(place, rows), seeds, jax.device_put(np.int32(step), shared))

    def _init(self, seeds_R):
        return over_replicas(lambda seed, _: init_state(seed, self.cohort.config), self.mesh)(seeds_R, None)

    def _seeds(self):
        return jnp.asarray([replica.seed for replica in self.cohort.replicas], jnp.uint32)
