"""What fine-tuning compiles: the initial state, a step and a prediction for each row length, placed on a mesh."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding

from data.tasks.buckets import TaskBatch, evaluation_batches, scatter
from data.tasks.features import Features
from model import mlm
from model.parameters import axis_sizes
from train.finetuning.config import FinetuneConfig
from train.finetuning.encoders import Encoders
from train.finetuning.grids import structure
from train.finetuning.network import Network
from train.finetuning.optimizer import transformation
from train.finetuning.settings import Settings, settings_at
from train.finetuning.step import Batch, State, make_train_step
from train.mesh import make_mesh
from train.replicas import fetched, over_replicas
from train.sharding import placed, put


@dataclass(frozen=True)
class Replica:
    """One encoder, fine-tuned with one seed at one point of a grid."""

    encoder: int
    """Its place among the encoders."""
    ft_seed: int
    config: FinetuneConfig


@dataclass(frozen=True)
class Program:
    """Replicas that are fine-tuned together. Every leaf of a state leads with the replica axis R.

    A replica's parameters are whole on each of its devices, which divide the rows.
    """

    network: Network
    encoders: Encoders
    replicas: tuple[Replica, ...]
    mesh: Mesh

    @classmethod
    def of(cls, network: Network, encoders: Encoders, replicas: tuple[Replica, ...]) -> 'Program':
        """On the mesh that the replicas' config asks for.

        Raises:
          ValueError: replicas differ in more than numbers; the mesh does not fit the devices or the batch size.
        """
        if len({structure(replica.config) for replica in replicas}) != 1:
            raise ValueError('replicas of one program may differ in traced numbers alone')
        config = replicas[0].config
        sizes = axis_sizes(mlm.declared(network.model))
        return cls(network, encoders, replicas, make_mesh(config.run.mesh, len(replicas), (config.batch_size,), sizes))

    @property
    def config(self) -> FinetuneConfig:
        """A config that stands for all where they do not differ."""
        return self.replicas[0].config

    @property
    def seeds(self) -> tuple[int, ...]:
        """Each fine-tuning seed once, in order: the slices of a batch."""
        return tuple(sorted({replica.ft_seed for replica in self.replicas}))

    def init(self) -> tuple[State, Any]:
        """New replicas, and what of them is not trained: {'encoder'} where it is frozen, else nothing."""
        encoder_R, pooler_R = self._encoders_R
        head_R = jax.jit(jax.vmap(self.network.init_head))(self._seeds_R)
        if pooler_R is not None and 'pooler' in head_R and not self.network.features:
            head_R = {**head_R, 'pooler': pooler_R}
        frozen = {'encoder': encoder_R} if self.network.features else {}
        params = {'head': head_R} if self.network.features else {'encoder': encoder_R, 'head': head_R}
        params, frozen = jax.device_put((params, frozen), self._by_replica)
        return jax.jit(self._new_state, out_shardings=self._by_replica)(params), frozen

    def abstract_state(self) -> State:
        """Shapes, dtypes and shardings of the state, as restoring a checkpoint needs them."""

        def make():
            encoder_R = jax.tree.map(lambda leaf: jnp.zeros((len(self.replicas), *leaf.shape[1:])), self._encoder_E)
            head_R = jax.vmap(self.network.init_head)(self._seeds_R)
            params = {'head': head_R} if self.network.features else {'encoder': encoder_R, 'head': head_R}
            return self._new_state(params)

        return jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=self._by_replica), jax.eval_shape(make)
        )

    @cached_property
    def step(self) -> Any:
        """`(state, frozen, settings, batch) -> (state, metrics)`; it is compiled for each length that it meets."""
        every = over_replicas(make_train_step(self.network, self.config), self.mesh)

        def train_step(state: State, frozen: Any, settings: Settings, batch: Batch):
            return every((state, frozen, settings), batch)

        return jax.jit(train_step, donate_argnums=0, out_shardings=self._by_replica)

    def settings(self, step: int, steps: int) -> Settings:
        """What differs between the replicas at a step, each leaf [R], on the devices."""
        each = [settings_at(replica.config, replica.ft_seed, step, steps) for replica in self.replicas]
        return put(Settings(*(np.stack(leaf) for leaf in zip(*each, strict=True))), self._by_replica)

    def batch(self, rows: TaskBatch, step: int) -> Batch:
        """A step's rows on the devices."""
        by_row = put(tuple(rows[:5]), placed(self.mesh, 'seed', 'batch'))
        return Batch(*by_row, *put((np.asarray(self.seeds, np.uint32), np.int32(step)), placed(self.mesh)))

    def predict(self, params: Any, frozen: Any, features: Features) -> np.ndarray:
        """Outputs for every row or token, float32: [R, N, C] or, for tagging and span, [R, T, C]."""
        cut = self.mesh.shape['data'] * self.mesh.shape['fsdp']
        batch_size = -(-self.config.evaluation_batch_size // cut) * cut

        def run(rows: TaskBatch) -> jax.Array:
            return self._outputs(params, frozen, put(tuple(rows[:3]), placed(self.mesh, 'batch')))

        is_pooled = features.kind in ('classification', 'regression')
        count = len(features) if is_pooled else len(features.tokens_T)
        found_RxNxC = np.zeros((len(self.replicas), count, self.network.labels), np.float32)
        for rows, outputs in fetched(run, evaluation_batches(features, batch_size)):
            for out, values in zip(found_RxNxC, outputs, strict=True):
                scatter(features, rows, values, out)
        return found_RxNxC

    @cached_property
    def _outputs(self) -> Any:
        def outputs(replica, rows):
            params, frozen = replica
            return self.network({**frozen, **params}, *rows)

        every = over_replicas(outputs, self.mesh)
        return jax.jit(lambda params, frozen, rows: every((params, frozen), rows), out_shardings=placed(self.mesh))

    @property
    def _by_replica(self) -> NamedSharding:
        return placed(self.mesh, 'replica')

    @property
    def _seeds_R(self) -> jax.Array:
        return jnp.asarray([replica.ft_seed for replica in self.replicas], jnp.uint32)

    @property
    def _encoders_R(self) -> tuple[Any, Any]:
        """Each replica's encoder without the head that it was pretrained with, and its pooler or None."""
        index_R = np.array([replica.encoder for replica in self.replicas])
        kept = (self._encoder_E, self.encoders.params_E.get('pooler'))
        return jax.tree.map(lambda leaf: leaf[index_R], kept)

    @property
    def _encoder_E(self) -> Any:
        return {name: part for name, part in self.encoders.params_E.items() if name not in ('head', 'pooler')}

    def _new_state(self, params_R: Any) -> State:
        config = self.config
        optimizer = transformation(config, self.network.model.layers, 0.0, 0.0, 1.0)
        opt_state = jax.vmap(optimizer.init)(params_R)
        return State(params_R, opt_state, jnp.zeros(len(self.replicas), jnp.int32))
