"""The mesh, and where state and batches lie on it."""

import math

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


def make_mesh(shape: tuple[int, int], replicas: int, batch_sizes: tuple[int, ...]) -> Mesh:
    """A mesh with axes (arm, data).

    -1 along `arm` takes as many devices as divide the replicas; along `data`, as many of the rest as divide every
    batch size. Devices that then have no work stay out.

    Raises:
      ValueError: the shape asks for more devices than there are, or does not divide the replicas or a batch size.
    """
    devices = jax.devices()
    arm, data = shape
    if arm == -1:
        arm = math.gcd(replicas, len(devices) // max(data, 1))
    if data == -1:
        data = math.gcd(len(devices) // arm, *batch_sizes)
    if arm * data > len(devices):
        raise ValueError(f'run.mesh {shape} needs {arm * data} devices; there are {len(devices)}')
    if replicas % arm:
        raise ValueError(f'run.mesh {shape}: {replicas} replicas do not divide over {arm} groups of devices')
    if any(size % data for size in batch_sizes):
        raise ValueError(f'run.mesh {shape}: batch sizes {batch_sizes} do not divide over {data} devices')
    grid = np.asarray(devices[: arm * data]).reshape(arm, data)
    return Mesh(grid, ('arm', 'data'), axis_types=(AxisType.Auto,) * 2)


def by_replica(mesh: Mesh) -> NamedSharding:
    """For leaves that lead with the replica axis."""
    return NamedSharding(mesh, P('arm'))


def by_row(mesh: Mesh) -> NamedSharding:
    """For batches: seeds first, then rows, which divide over `data`."""
    return NamedSharding(mesh, P(None, 'data'))
