"""A small state of several replicas, and steps of it on disk."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

from train.checkpoints import Checkpoints

ROOT = Path(__file__).parents[2]
REPLICAS = 3
OPTIMIZER = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-2))


def make_state(seed: int = 0, width: int = 16):
    key = jax.random.key(seed)
    params = {
        'layers': {'kernel': jax.random.normal(key, (REPLICAS, 2, width, width))},
        'bias': jax.random.normal(jax.random.fold_in(key, 1), (REPLICAS, width)),
    }
    return {
        'params': params,
        'optimizer': jax.vmap(OPTIMIZER.init)(params),
        'step': jnp.full((REPLICAS,), seed, jnp.int32),
        'alive': jnp.ones((REPLICAS,), bool),
    }


def abstract(state):
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding), state)


def assert_same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def save_steps(folder, *steps, keep=10):
    with Checkpoints(folder, keep) as checkpoints:
        for step in steps:
            checkpoints.save(step, make_state(step), {'step': step})


def restore(folder, like=None):
    lines = []
    found = Checkpoints(folder, 10, lines.append).restore(abstract(make_state() if like is None else like))
    return found, lines


def files_of(folder):
    return {path.relative_to(folder): path.stat().st_mtime_ns for path in folder.rglob('*')}


def python(code: str, *args, devices: int = 1) -> subprocess.Popen:
    env = dict(os.environ, JAX_PLATFORMS='cpu', XLA_FLAGS=f'--xla_force_host_platform_device_count={devices}')
    command = [sys.executable, '-c', textwrap.dedent(code), *map(str, args)]
    return subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
