"""The mesh of devices, and which rows of a batch belong to this process."""

import math
from collections.abc import Mapping, Sequence

import jax
import numpy as np
from jax.experimental.mesh_utils import create_device_mesh
from jax.sharding import AxisType, Mesh

from train.sharding import RULES, placed

AXES = ('arm', 'data', 'fsdp', 'tensor')
Shape = tuple[int, int, int, int]


def make_mesh(
    shape: Shape,
    replicas: int,
    rows: tuple[int, ...] = (),
    sizes: Mapping[str, int] | None = None,
    devices: Sequence[jax.Device] | None = None,
) -> Mesh:
    """A mesh with axes (arm, data, fsdp, tensor). Devices that then have no work stay out.

    Each -1, from left to right, takes as many of the devices that are left as divide what lies along it.

    Args:
      shape: devices along each axis, or -1.
      replicas: along `arm`.
      rows: of each stage's micro-batch; `data` and `fsdp` together divide each.
      sizes: of the parameters' axes by logical name; `fsdp` and `tensor` divide those that RULES lay along them.
      devices: to be used instead of all that there are.

    Raises:
      ValueError: the shape asks for more devices than there are, or does not divide what lies along it.
    """
    devices = list(jax.devices() if devices is None else devices)
    along = {'arm': {'replicas': replicas}, 'data': {}, 'fsdp': {}, 'tensor': {}}
    for name, size in (sizes or {}).items():
        for axis in RULES[name]:
            along[axis][name] = size
    found = {axis: size for axis, size in zip(AXES, shape, strict=True) if size != -1}
    for axis in [axis for axis in AXES if axis not in found]:
        free = len(devices) // math.prod(found.values())
        limits = list(along[axis].values())
        if axis in ('data', 'fsdp'):
            limits += [size // found.get('fsdp' if axis == 'data' else 'data', 1) for size in rows]
        found[axis] = max(math.gcd(free, *limits), 1)
    count = math.prod(found.values())
    if count > len(devices):
        raise ValueError(f'run.mesh {shape} needs {count} devices; there are {len(devices)}')
    for axis, named in along.items():
        for name, size in named.items():
            if size % found[axis]:
                raise ValueError(f'run.mesh {shape}: {name} ({size}) does not divide over {axis} {found[axis]}')
    row_parts = found['data'] * found['fsdp']
    if any(size % row_parts for size in rows):
        raise ValueError(f'run.mesh {shape}: batches of {rows} rows do not divide over data x fsdp = {row_parts}')
    used = devices[:count]
    if left := {device.process_index for device in devices} - {device.process_index for device in used}:
        raise ValueError(
            f'run.mesh {shape} uses {count} of {len(devices)} devices and leaves processes {sorted(left)} without work'
        )
    size = tuple(found[axis] for axis in AXES)
    # Neighbours in the mesh are neighbours on the chips' network; with some left out it is no torus any more.
    whole = count == len(devices)
    grid = create_device_mesh(size, used, allow_split_physical_axes=True) if whole else np.asarray(used).reshape(size)
    return Mesh(grid, AXES, axis_types=(AxisType.Auto,) * len(AXES))


def side_by_side(shape: Shape, devices: int) -> int:
    """Groups of devices that `arm` may have, before it is known how many replicas there are."""
    return shape[0] if shape[0] != -1 else max(devices // math.prod(max(size, 1) for size in shape[1:]), 1)


def local_rows(mesh: Mesh, batch_size: int) -> np.ndarray:
    """Numbers of the rows of a batch that this process's devices hold, in order: int64 [rows].

    All rows where the processes' shares overlap in part, as in a mesh that does not go by processes.
    """
    rows_by_process: dict[int, set[int]] = {}
    for device, (rows,) in placed(mesh, 'batch').devices_indices_map((batch_size,)).items():
        rows_by_process.setdefault(device.process_index, set()).update(range(*rows.indices(batch_size)))
    shares = {frozenset(rows) for rows in rows_by_process.values()}
    apart = len({len(share) for share in shares}) == 1 and sum(map(len, shares)) == batch_size
    return np.array(sorted(rows_by_process[jax.process_index()])) if apart else np.arange(batch_size)
