"""How a parameter is declared, named and drawn.

A leaf's initial value depends on the key, its path and its layer alone, so that models that differ in structure
(post-LN and pre-LN, learned and rotary positions, 6 layers and 12) start with the same values wherever they have the
same leaf. What layers share starts as the first of layers that share nothing.
"""

import math
import zlib

import jax
import jax.numpy as jnp
from flax import linen as nn

# Names of the axes of parameters, for a table that lays them out on a mesh.
AXES = (
    'layers', 'vocab', 'position', 'type', 'embed', 'head_embed', 'boundary', 'heads', 'head', 'feed_forward', 'label',
)  # fmt: skip


def declare(module: nn.Module, name: str, shape: tuple[int, ...], axes: tuple[str, ...]) -> jax.Array:
    """The module's parameter `name`, float32, whose axes carry logical names.

    Its name says how it starts: `kernel` and `embedding` from a truncated normal, `bias` and `delta` (what is added to
    another parameter) at 0, `scale` at 1.
    """
    assert len(shape) == len(axes) and set(axes) <= set(AXES), (name, shape, axes)
    return module.param(name, nn.with_logical_partitioning(nn.initializers.zeros, axes), shape, jnp.float32)


def logical_axes(declared: dict) -> dict:
    """A tree of boxes (`model.mlm.declared`) with, for each leaf, the names of its axes."""
    return jax.tree.map(lambda box: box.names, declared, is_leaf=lambda x: isinstance(x, nn.Partitioned))


def axis_sizes(declared: dict) -> dict[str, int]:
    """Size of each logical axis in a tree of boxes; of several sizes what divides them all."""
    sizes: dict[str, int] = {}
    for box in jax.tree.leaves(declared, is_leaf=lambda x: isinstance(x, nn.Partitioned)):
        for name, size in zip(box.names, box.value.shape, strict=True):
            sizes[name] = math.gcd(sizes.get(name, 0), size)
    return sizes


def draw(key: jax.Array, path: str, shape: tuple[int, ...], stddev: float) -> jax.Array:
    """Initial values of one leaf.

    A normal distribution cut off at two standard deviations, as BERT's (google-research/bert, modeling.py). With a
    longer first axis the first rows stay the same.

    Args:
      key: typed key.
      path: the leaf's place in the tree, such as 'layers/attention/query/kernel'; under a 'layers' the first axis of
        `shape` counts layers, and a 'shared' stands for 'layers' where they are one.
      stddev: that of the normal distribution before it is cut.
    """
    if 'shared' in path.split('/'):
        return draw(key, path.replace('shared/', 'layers/'), (1, *shape), stddev)[0]
    kind = path.rsplit('/', 1)[-1]
    if kind in ('bias', 'delta'):
        return jnp.zeros(shape, jnp.float32)
    if kind == 'scale':
        return jnp.ones(shape, jnp.float32)
    if kind not in ('kernel', 'embedding'):
        raise ValueError(f'parameter {path}: no initial distribution for a leaf named {kind!r}')
    key = jax.random.fold_in(key, zlib.crc32(path.encode()))
    if 'layers' in path.split('/'):
        keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(shape[0]))
        return stddev * jax.vmap(lambda k: jax.random.truncated_normal(k, -2.0, 2.0, shape[1:], jnp.float32))(keys)
    return stddev * jax.random.truncated_normal(key, -2.0, 2.0, shape, jnp.float32)


def draw_tree(key: jax.Array, declared: dict, stddev: float) -> dict:
    """Initial values for a nested dict of shapes, in boxes or without."""
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: draw(key, '/'.join(entry.key for entry in path), leaf.shape, stddev), nn.unbox(declared)
    )
