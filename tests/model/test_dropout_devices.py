"""Dropout's noise does not depend on how many devices an array lies on."""

import os
import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from model.dropout import drop, noise_seed

SHAPE = (4, 2, 8, 16)
EIGHT_DEVICES = """
import sys
import jax, numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from tests.model.test_dropout_devices import case, dropped

assert jax.device_count() == 8
for i, (shape, names) in enumerate([((8,), P(None, None, 'a')), ((2, 2, 2), P('a', 'b', None, 'c'))]):
    mesh = jax.make_mesh(shape, ('a', 'b', 'c')[: len(shape)], axis_types=(AxisType.Auto,) * len(shape))
    x = jax.device_put(case(), NamedSharding(mesh, names))
    out, gradient = dropped(x)
    assert len(out.sharding.device_set) == len(gradient.sharding.device_set) == 8 and not out.is_fully_replicated
    program = dropped.lower(x).compile().as_text()
    collectives = [name for name in ('all-gather', 'all-reduce', 'all-to-all', 'collective-permute') if name in program]
    assert not collectives, collectives
    np.savez(f'{sys.argv[1]}/{i}.npz', out=out, gradient=gradient)
"""


def case():
    return np.random.default_rng(0).normal(size=SHAPE).astype(np.float32)


@jax.jit
def dropped(x):
    out, pull_back = jax.vjp(partial(drop, seed_3=noise_seed(jax.random.key(3)), rate=0.3), x)
    return out, pull_back(jnp.ones_like(x))[0]


def test_one_and_eight_devices_drop_the_same(tmp_path):
    flags = '--xla_force_host_platform_device_count=8'
    environment = {**os.environ, 'JAX_PLATFORMS': 'cpu', 'XLA_FLAGS': flags, 'PYTHONPATH': os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, '-c', EIGHT_DEVICES, tmp_path], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    here = dropped(case())
    assert jax.device_count() == 1 and 0.15 < (np.asarray(here[0]) == 0).mean() < 0.45
    for name in ('0.npz', '1.npz'):
        there = np.load(tmp_path / name)
        np.testing.assert_array_equal(there['out'], here[0])
        np.testing.assert_array_equal(there['gradient'], here[1])
