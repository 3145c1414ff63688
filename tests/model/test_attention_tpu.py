"""Splash compiled for a TPU, forward and backward, alone and on a mesh of replicas, rows and heads."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from experiments.planning.topology import slice_of
from model import mlm
from model.config import ModelConfig
from model.layout import laid_out
from train.mesh import AXES
from train.sharding import MeshLayout

CONFIG = ModelConfig(layers=2, width=128, heads=2, feed_forward=256, max_length=256, vocab_size=128, dtype='bfloat16')
CONFIG = dataclasses.replace(CONFIG, attention='splash', attention_dropout=0.0, dropout=0.0, scan_layers=False)


def compiled(config: ModelConfig, shape=(1, 1, 1, 1), rows: int = 4, queries: int | None = None) -> str:
    """The program of a step's gradients for a replica on each group of chips."""
    chips = slice_of('v5e:2x2').devices[: int(np.prod(shape))]
    mesh = Mesh(np.array(chips).reshape(shape), AXES, axis_types=(AxisType.Auto,) * 4)

    def gradients(params, tokens_BxL, documents_BxL):
        positions_BxM = None if queries is None else jnp.zeros((rows, queries), jnp.int32)
        with laid_out(MeshLayout(mesh)):

            def loss(params):
                hidden = mlm.encode(params, config, tokens_BxL, documents_BxL, positions_BxM=positions_BxM)
                return jnp.sum(hidden.astype(jnp.float32))

            return jax.grad(loss)(params)

    def abstract(shape, dtype, *axes):
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*axes)))

    shapes = mlm.shapes(config)
    del shapes['pooler']
    params = jax.tree.map(lambda leaf: abstract((shape[0], *leaf.shape), leaf.dtype, 'arm'), shapes)
    tokens = abstract((rows, config.max_length), jnp.int32, ('data', 'fsdp'))
    every = jax.jit(jax.vmap(gradients, in_axes=(0, None, None), spmd_axis_name='arm'))
    return every.lower(params, tokens, tokens).compile().as_text()


def kernels(program: str) -> int:
    return program.count('custom_call_target="tpu_custom_call"')


@pytest.mark.peers
@pytest.mark.parametrize(
    ('changes', 'queries', 'expected'),
    [
        # A kernel forward and one backward in each layer.
        ({}, None, 4),
        ({'window': 64, 'attend': 'document'}, None, 4),
        ({}, 40, 4),
        # The last layer's queries are some of the tokens: with a window it is XLA's.
        ({'window': 64}, 40, 2),
    ],
)
def test_splash_compiles_forward_and_backward(changes, queries, expected):
    assert kernels(compiled(dataclasses.replace(CONFIG, **changes), queries=queries)) == expected


@pytest.mark.peers
@pytest.mark.parametrize('shape', [(1, 2, 1, 2), (2, 1, 1, 2), (2, 1, 2, 1)])
def test_each_chip_runs_the_kernel_on_its_own_rows_and_heads(shape):
    program = compiled(CONFIG, shape)
    assert kernels(program) == 4
    rows, heads = 4 // (shape[1] * shape[2]), 2 // shape[3]
    # Keys as the kernel takes them: a head's features, then places.
    assert f'bf16[{rows},{heads},64,256]' in program
    assert f'bf16[{rows * 2},{heads},64,256]' not in program and f'bf16[{rows},{heads * 2},64,256]' not in program
