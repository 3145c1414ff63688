"""Attention kernels of accelerators: neither has an array of [L, L] in memory, and neither drops attention weights."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu import splash_attention

from model.config import ModelConfig
from model.layout import per_device

LANES = 128
"""Queries and keys come to the TPU's kernel in multiples of this."""
LARGEST_BLOCK = 512
"""Queries, and keys, that the TPU's kernel holds at once; rows up to this length are read once."""
PADDING = -1
"""Segment of the keys that fill a row up to a multiple of LANES. No query of the caller's is in it."""


def splash(
    query_BxHxMxK: jax.Array,
    key_BxHxLxK: jax.Array,
    value_BxHxLxK: jax.Array,
    query_segments_BxM: jax.Array,
    key_segments_BxL: jax.Array,
    window: int = 0,
    interpret: bool = False,
) -> jax.Array:
    """Scaled dot-product attention by JAX's Splash kernel for TPU, its backward pass fused; [B, H, M, K].

    On a mesh each device runs it on its own rows and heads: XLA cannot partition a kernel by itself.

    Args:
      query_segments_BxM, key_segments_BxL: a query attends to the keys with its number, of which there is at least one.
      window: tokens to each side that a query may attend to, itself apart; 0: any. With a window M is L.
      interpret: run the kernel's steps as XLA operations, on any device.
    """
    queries, keys = query_BxHxMxK.shape[2], key_BxHxLxK.shape[2]
    more_queries, more_keys = -queries % LANES, -keys % LANES
    query_BxHxMxK *= query_BxHxMxK.shape[-1] ** -0.5
    if more_queries:
        query_BxHxMxK = _lengthened(query_BxHxMxK, more_queries)
        # They attend to what the last query does, so that none is without a key; with a window, to the added keys.
        fill = dict(constant_values=PADDING) if more_keys else dict(mode='edge')
        query_segments_BxM = jnp.pad(query_segments_BxM, [(0, 0), (0, more_queries)], **fill)
    if more_keys:
        key_BxHxLxK, value_BxHxLxK = (_lengthened(a, more_keys) for a in (key_BxHxLxK, value_BxHxLxK))
        key_segments_BxL = jnp.pad(key_segments_BxL, [(0, 0), (0, more_keys)], constant_values=PADDING)
    kernel = _kernel(query_BxHxMxK.shape[2], key_BxHxLxK.shape[2], window, interpret)
    arguments = (query_BxHxMxK, key_BxHxLxK, value_BxHxLxK, query_segments_BxM, key_segments_BxL)
    states, segments = ('batch', 'heads', None, None), ('batch', None)
    kernel = per_device(kernel, (states, states, states, segments, segments), states)
    return kernel(*arguments)[:, :, :queries]


def _lengthened(x: jax.Array, more: int) -> jax.Array:
    return jnp.pad(x, [(0, 0), (0, 0), (0, more), (0, 0)])


def _kernel(queries: int, keys: int, window: int, interpret: bool) -> Callable[..., jax.Array]:
    """The kernel for rows of these lengths, with as many heads as it is given."""
    shape = (queries, keys)
    block_q, block_kv = (max(b for b in range(LANES, LARGEST_BLOCK + 1, LANES) if size % b == 0) for size in shape)
    sizes = splash_attention.BlockSizes(
        block_q=block_q,
        block_kv=block_kv,
        block_q_dkv=block_q,
        block_kv_dkv=block_kv,
        use_fused_bwd_kernel=True,
        # A head is half as wide as a tile of memory, so what is kept for the backward pass lies along the row.
        q_layout=splash_attention.QKVLayout.SEQ_MINOR,
        k_layout=splash_attention.QKVLayout.SEQ_MINOR,
        v_layout=splash_attention.QKVLayout.SEQ_MINOR,
    )
    mask = splash_attention.LocalMask(shape, (window, window), 0) if window else splash_attention.FullMask(shape)

    def over_rows(query_BxHxMxK, key_BxHxLxK, value_BxHxLxK, query_segments_BxM, key_segments_BxL):
        one_row = splash_attention.make_splash_mha_single_device(
            splash_attention.MultiHeadMask([mask] * query_BxHxMxK.shape[1]), block_sizes=sizes, interpret=interpret
        )
        segments = splash_attention.SegmentIds(query_segments_BxM, key_segments_BxL)
        return jax.vmap(one_row)(query_BxHxMxK, key_BxHxLxK, value_BxHxLxK, segments)

    return over_rows


def splash_flops(config: ModelConfig, rows: int, length: int, targets: int) -> float:
    """Operations that Splash carries out in a train step of B rows of L tokens with M scored positions each.

    What XLA does not count. Two products in the forward pass and five in the backward one (the scores are computed
    again), of whole rows, and of the last layer the scored positions alone, both in multiples of LANES.
    """
    length, targets = (-(-size // LANES) * LANES for size in (length, targets))
    products = (config.layers - 1) * length * length + targets * length
    return float(rows) * 7 * 2 * config.width * products


def cudnn(
    query_BxHxMxK: jax.Array,
    key_BxHxLxK: jax.Array,
    value_BxHxLxK: jax.Array,
    mask_Bx1xMxL: jax.Array,
) -> jax.Array:
    """Scaled dot-product attention by cuDNN's flash attention; [B, H, M, K]. Needs an NVIDIA GPU and bfloat16."""
    shape = (mask_Bx1xMxL.shape[0], 1, query_BxHxMxK.shape[2], key_BxHxLxK.shape[2])
    states = (a.swapaxes(1, 2) for a in (query_BxHxMxK, key_BxHxLxK, value_BxHxLxK))
    mask_Bx1xMxL = jnp.broadcast_to(mask_Bx1xMxL, shape)
    return jax.nn.dot_product_attention(*states, mask=mask_Bx1xMxL, implementation='cudnn').swapaxes(1, 2)
