"""Where arrays lie: one table from the names of their axes to those of the mesh (train/mesh.py).

Replicas divide over `arm`, and rows over `data` and `fsdp` together. Along `fsdp` each device also keeps only its part
of the parameters and of the optimizer's state, and is sent the rest when it is needed (ZeRO, Rajbhandari et al. 2020,
stage 3). `tensor` cuts heads, feed-forward and vocabulary (Megatron-LM, Shoeybi et al. 2019).
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from model.layout import Axes
from model.mlm import Params
from model.parameters import logical_axes
from train.config import OptimizerConfig
from train.optimizer import transformation

RULES: dict[str, tuple[str, ...]] = {
    # Parameters (model.parameters.AXES).
    'layers': (),
    'vocab': ('tensor',),
    'position': (),
    'type': (),
    'embed': ('fsdp',),
    'head_embed': (),
    'boundary': (),
    'heads': ('tensor',),
    'head': (),
    'feed_forward': ('tensor',),
    'label': (),
    # Rows and what is stacked.
    'replica': ('arm',),
    'seed': (),
    'batch': ('data', 'fsdp'),
    # Activations.
    'length': (),
    'width': (),
}
"""Logical axis -> the mesh axes that it divides over."""


def spec(axes: Sequence[str | None], mesh: Mesh) -> P:
    """Where an array with these axes lies; None is an axis that is never cut. Mesh axes of size 1 are left out.

    Raises:
      ValueError: RULES has no such name, or two of the axes divide over the same mesh axis.
    """
    parts: list[tuple[str, ...]] = []
    for name in axes:
        if name is not None and name not in RULES:
            raise ValueError(f'no rule for an axis named {name!r}: add it to RULES in {__name__}')
        parts.append(tuple(axis for axis in RULES.get(name, ()) if mesh.shape[axis] > 1))
    used = [axis for part in parts for axis in part]
    if len(used) != len(set(used)):
        raise ValueError(f'axes {tuple(axes)} divide twice over one of {", ".join(used)}')
    return P(*(part or None for part in parts))


def placed(mesh: Mesh, *axes: str | None) -> NamedSharding:
    """The sharding of an array whose first axes are these; without any, the array is whole on every device."""
    return NamedSharding(mesh, spec(axes, mesh))


def put(tree: Any, sharding: NamedSharding) -> Any:
    """Numpy arrays that every process has alike as arrays on the mesh, without a word between the processes."""
    return jax.tree.map(
        lambda leaf: jax.make_array_from_callback(leaf.shape, sharding, lambda index: leaf[index]),
        jax.tree.map(np.asarray, tree),
    )


def parameter_axes(declared: Params) -> dict:
    """The names of each parameter's axes, None where they are not cut, as tuples in the tree of the boxes.

    A vector as wide as the model is not cut over `fsdp`: it is small, and every device needs all of it.
    """

    def kept(axes: Axes) -> Axes:
        is_vector = sum(name != 'layers' for name in axes) == 1
        return tuple(None if is_vector and name == 'embed' else name for name in axes)

    return jax.tree.map(kept, logical_axes(declared), is_leaf=_is_axes)


def parameter_shardings(shapes_R: Any, declared: Params, mesh: Mesh) -> Any:
    """Shardings of stacked parameters, given their shapes with the leading replica axis, and their boxes.

    Raises:
      ValueError: a leaf has no axes, or others than its shape has.
    """

    def one(path, axes: Axes, shape) -> NamedSharding:
        if len(axes) + 1 != len(shape.shape):
            raise ValueError(f'parameter {jax.tree_util.keystr(path)} {shape.shape}: axes {axes} do not name its axes')
        return placed(mesh, 'replica', *axes)

    return jax.tree_util.tree_map_with_path(one, parameter_axes(declared), shapes_R, is_leaf=_is_axes)


def optimizer_shardings(shapes_R: Any, parameters: Any, config: OptimizerConfig, mesh: Mesh) -> Any:
    """Shardings of a stacked optimizer state: what has the parameters' tree lies as they do, and counts are whole.

    Raises:
      ValueError: a leaf is neither like the parameters nor a scalar of each replica.
    """

    def alone(shape) -> NamedSharding:
        if len(shape.shape) != 1:
            raise ValueError(f"an array {shape.shape} of the optimizer's state is like no parameter: it has no axes")
        return placed(mesh, 'replica')

    return optax.tree.map_params(
        transformation(config, 0.0, 0.0),
        lambda _, sharding: sharding,
        shapes_R,
        parameters,
        transform_non_params=alone,
    )


class MeshLayout:
    """Gives the model's names their meaning on a mesh (model/layout.py)."""

    def __init__(self, mesh: Mesh):
        self._mesh = mesh

    def place(self, x: jax.Array, axes: Axes) -> jax.Array:
        """`x`, cut as RULES say and along no other axis."""
        if len(axes) != x.ndim:
            raise ValueError(f'axes {axes} do not name the axes of an array {x.shape}')
        sharding = placed(self._mesh, *axes)
        cuts_replicas = any(size > 1 for axis, size in self._mesh.shape.items() if axis != 'arm')
        return jax.lax.with_sharding_constraint(x, sharding) if cuts_replicas else x

    def per_device(self, function: Callable, in_axes: tuple[Axes, ...], out_axes: Any) -> Callable:
        """`function` under a `shard_map` over all of the mesh: TPU kernels are not partitioned automatically."""
        in_specs, out_specs = jax.tree.map(lambda axes: spec(axes, self._mesh), (in_axes, out_axes), is_leaf=_is_axes)
        return jax.shard_map(function, mesh=self._mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)


def _is_axes(node: Any) -> bool:
    return isinstance(node, tuple) and all(name is None or isinstance(name, str) for name in node)
