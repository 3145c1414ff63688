"""Many replicas in one program: a scan over those on a device, a vmap over mesh axis `arm`."""

from collections.abc import Callable
from typing import Any

import jax

from model.layout import laid_out
from train.sharding import MeshLayout


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
