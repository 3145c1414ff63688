"""Many replicas in one program: a scan over those on a device, a vmap over mesh axis `arm`."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import numpy as np

from model.layout import laid_out
from train.sharding import MeshLayout, placed, put

IN_FLIGHT = 8
"""Batches dispatched before the first result is fetched.

A CPU device takes 32 and then keeps its thread waiting for room, while the others wait for it in a collective: a
program that gathers its results over several CPU devices stands still for ever once more are dispatched.
"""


def over_replicas(function: Callable[[Any, Any], Any], mesh: jax.sharding.Mesh) -> Callable[[Any, Any], Any]:
    """`function(one replica's tree, shared tree) -> tree`, for trees whose leaves lead with a replica axis R.

    R is a multiple of the size A of mesh axis `arm`. Each device group scans over its R / A replicas, since a vmap
    over several is slow on CPU; the vmap over A holds one replica for each group, so nothing crosses `arm`. What
    `function` names of its arrays' axes lays them out over the mesh's other axes.
    """
    groups = mesh.shape['arm']

    def split(leaf):
        return leaf.reshape((groups, leaf.shape[0] // groups) + leaf.shape[1:]).swapaxes(0, 1)

    def merge(leaf):
        return leaf.swapaxes(0, 1).reshape((-1,) + leaf.shape[2:])

    def laid_out_function(own, shared):
        with laid_out(MeshLayout(mesh)):
            return function(own, shared)

    one_each = jax.vmap(laid_out_function, in_axes=(0, None), spmd_axis_name='arm')

    def run(stacked, shared):
        _, out = jax.lax.scan(lambda _, each: (None, one_each(each, shared)), None, jax.tree.map(split, stacked))
        return jax.tree.map(merge, out)

    return run


class ReplicaProgram:
    """A function of one replica and a batch of rows, compiled once for all replicas of a cohort.

    `function((params, extra), (arrays with rows first)) -> tree of arrays with rows first`.
    """

    def __init__(self, function, mesh: jax.sharding.Mesh, batch_size: int):
        parts = mesh.shape['data'] * mesh.shape['fsdp']
        self._batch_size = -(-batch_size // parts) * parts
        self._placed = placed(mesh, 'batch')
        # Whole on every device and host: these results are small, and every host reads them.
        self._run = jax.jit(over_replicas(function, mesh), out_shardings=placed(mesh))

    def __call__(self, stacked: Any, rows: Any) -> Any:
        """Results for all N rows, each leaf a numpy array [R, N, ...]; rows are a tree of numpy arrays [N, ...]."""
        count = len(jax.tree.leaves(rows)[0])

        def run(batch):
            indices, _ = batch
            return self._run(stacked, put(jax.tree.map(lambda leaf: leaf[indices], rows), self._placed))

        parts = [
            jax.tree.map(lambda leaf: leaf[:, :counted], results)  # noqa: B023
            for (_, counted), results in fetched(run, whole_batches(count, self._batch_size))
        ]
        return jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *parts)


def fetched(run: Callable[[Any], Any], batches: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Each batch and `run(batch)`, its arrays as numpy's; up to `IN_FLIGHT` are dispatched ahead of what is fetched."""
    ahead = deque()
    for batch in batches:
        ahead.append((batch, run(batch)))
        if len(ahead) == IN_FLIGHT:
            batch, results = ahead.popleft()
            yield batch, jax.tree.map(np.asarray, results)
    for batch, results in ahead:
        yield batch, jax.tree.map(np.asarray, results)


def whole_batches(count: int, batch_size: int) -> Iterator[tuple[np.ndarray, int]]:
    """Indices of `count` items in batches that are all whole: (indices int64 [batch_size], how many of them count).

    The last batch repeats item 0; what comes of the repeats is to be thrown away.
    """
    for start in range(0, count, batch_size):
        indices = np.arange(start, start + batch_size)
        yield np.where(indices < count, indices, 0), min(batch_size, count - start)
