"""The model inside the program that trains all arms: a scan of a vmap over mesh axis `arm`, rows split over `data`."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np

from model import mlm
from model.config import ModelConfig

CONFIG = ModelConfig(layers=2, width=16, heads=2, feed_forward=32, max_length=16, vocab_size=60, dropout=0.3)
POSITIONS_BxM = np.arange(24).reshape(8, 3) * 5 % 16


def loss_and_gradients(replica):
    """Of one replica: (parameters, dropout key, tokens)."""
    params, key, tokens_BxL = replica

    def loss_of(params):
        documents_BxL = 1 + (jnp.arange(16) > 9)[None].astype(jnp.int32) * jnp.ones_like(tokens_BxL)
        hidden_BxMxD = mlm.encode(params, CONFIG, tokens_BxL, documents_BxL, key=key, positions_BxM=POSITIONS_BxM)
        return jax.nn.logsumexp(mlm.predict(params, CONFIG, hidden_BxMxD), axis=-1).mean()

    return jax.value_and_grad(loss_of)(params)


def replicas():
    keys = jax.vmap(jax.random.key)(jnp.arange(4))
    params = jax.vmap(lambda key: mlm.init(key, CONFIG))(keys)
    return params, keys, jax.random.randint(jax.random.key(9), (4, 8, 16), 0, 60)


def on_a_mesh():
    """The four replicas on 2 x 2 devices, two a group."""
    devices = np.array(jax.devices()[:4]).reshape(2, 2)
    mesh = jax.sharding.Mesh(devices, ('arm', 'data'), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    spec = jax.sharding.PartitionSpec
    by_arm, by_row = (jax.NamedSharding(mesh, spec(*axes)) for axes in (('arm',), ('arm', 'data')))

    def run(stacked):
        split = jax.tree.map(lambda a: a.reshape((2, 2) + a.shape[1:]).swapaxes(0, 1), stacked)
        one_each = jax.vmap(loss_and_gradients, spmd_axis_name='arm')
        _, out = jax.lax.scan(lambda _, each: (None, one_each(each)), None, split)
        return jax.tree.map(lambda a: a.swapaxes(0, 1).reshape((4,) + a.shape[2:]), out)

    stacked = jax.jit(replicas, out_shardings=(by_arm, by_arm, by_row))()
    return jax.jit(run)(stacked)


def main(path: str) -> None:
    np.savez(path, *jax.tree.leaves(on_a_mesh()))


def test_sharded_replicas_equal_each_alone(tmp_path):
    flags = os.environ.get('XLA_FLAGS', '') + ' --xla_force_host_platform_device_count=4'
    subprocess.run(
        [sys.executable, '-c', f'from tests.model.test_arms import main; main({str(tmp_path / "out.npz")!r})'],
        env={**os.environ, 'XLA_FLAGS': flags},
        check=True,
    )
    found = list(np.load(tmp_path / 'out.npz').values())
    alone = [jax.jit(loss_and_gradients)(jax.tree.map(lambda a, i=i: a[i], replicas())) for i in range(4)]
    expected = jax.tree.leaves(jax.tree.map(lambda *each: np.stack(each), *alone))
    assert len({round(float(loss), 4) for loss in found[0]}) == 4
    for a, b in zip(found, expected, strict=True):
        # The gradient of the keys' biases is 0 but for rounding.
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * np.abs(b).max() + 1e-9)
