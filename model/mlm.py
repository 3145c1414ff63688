"""The model as others see it: pure functions of (parameters, arrays). No state, no Flax outside this folder.

Parameters are a nested dict of float32 arrays:
  embeddings/{token,type,position}/embedding, embeddings/norm/{scale,bias}, embeddings/projection/{kernel,bias} where
  the tables are of another width
  layers/attention/{query,key,value,output}/{kernel,bias}, layers/feed_forward/{up,down}/{kernel,bias},
  layers/{attention_norm,feed_forward_norm}/{scale,bias}, each with a leading axis of layers
  shared/..., what of those all layers share (ALBERT): without that axis, and not under `layers`
  final_norm/{scale,bias} (pre-LN)
  head/dense/{kernel,bias}, head/norm/{scale,bias}, head/bias
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from model.bert import Embeddings, Head, Layer, Pooler, rows_at
from model.config import ModelConfig
from model.norm import LayerNorm
from model.parameters import draw_tree

Params = dict[str, Any]


def init(key: jax.Array, config: ModelConfig) -> Params:
    """Initial parameters, drawn leaf by leaf from (key, path, layer)."""
    return draw_tree(key, declared(config), config.init_stddev)


def shapes(config: ModelConfig) -> Params:
    """Shapes and types of all parameters, with those of the pooler under `pooler`."""
    return nn.unbox(declared(config)) | {'pooler': nn.unbox(_pooler(config))}


def encode(
    params: Params,
    config: ModelConfig,
    tokens_BxL: jax.Array,
    document_ids_BxL: jax.Array,
    type_ids_BxL: jax.Array | None = None,
    key: jax.Array | None = None,
    positions_BxM: jax.Array | None = None,
    last: int = 1,
) -> jax.Array:
    """Hidden states in the compute type, [B, L, D], or [B, M, D] where positions are given.

    Args:
      document_ids_BxL: which document a token is from, from 1; 0 is padding.
      type_ids_BxL: BERT's token types; None: all 0.
      key: typed key for dropout; None: no dropout.
      positions_BxM: the tokens whose states are wanted; None: all. The last layer computes no others. The states, the
        dropout in them too, are those that all tokens' states would have there.
      last: the states of so many last layers stand side by side, the lowest first: [B, L, last * D].

    Raises:
      ValueError: rows are longer than config.max_length and positions are learned; or there are not so many layers.
    """
    embeddings_key, layers_key = (None, None) if key is None else jax.random.split(key)
    hidden_BxLxD = Embeddings(config).apply({'params': params['embeddings']}, tokens_BxL, type_ids_BxL, embeddings_key)

    def layer(hidden_BxLxD, number, own, positions_BxM):
        layer_key = None if key is None else jax.random.fold_in(layers_key, number)
        inputs = (hidden_BxLxD, document_ids_BxL, layer_key, positions_BxM)
        return Layer(config).apply({'params': {**own, **params.get('shared', {})}}, *inputs)

    if config.remat:
        layer = jax.checkpoint(layer, prevent_cse=not config.scan_layers)
    if not 1 <= last <= config.layers:
        raise ValueError(f'the last {last} layers are asked for, but model.layers is {config.layers}')
    stack = params.get('layers', {})
    # What is scanned leaves only its last state; layers whose states are kept, or computed in part, come after it.
    scanned = config.layers - (last if last > 1 or positions_BxM is not None else 0) if config.scan_layers else 0
    if scanned:
        stacked = (jnp.arange(scanned), jax.tree.map(lambda leaf: leaf[:scanned], stack))
        hidden_BxLxD, _ = jax.lax.scan(lambda hidden, each: (layer(hidden, *each, None), None), hidden_BxLxD, stacked)
    kept = [] if scanned < config.layers else [hidden_BxLxD]
    for number in range(scanned, config.layers):
        here = jax.tree.map(lambda leaf, number=number: leaf[number], stack)
        at_end = number == config.layers - 1
        hidden_BxLxD = layer(hidden_BxLxD, number, here, positions_BxM if at_end else None)
        if number >= config.layers - last:
            kept.append(hidden_BxLxD if at_end else rows_at(hidden_BxLxD, positions_BxM))
    if config.norm == 'pre':
        kept = [LayerNorm(config.norm_epsilon).apply({'params': params['final_norm']}, each) for each in kept]
    return kept[0] if last == 1 else jnp.concatenate(kept, axis=-1)


def predict(params: Params, config: ModelConfig, hidden_BxMxD: jax.Array) -> jax.Array:
    """Logits [B, M, V] in float32, V = config.padded_vocab_size, of tokens with these hidden states.

    Padding ids get a large negative logit, which takes them out of the softmax.
    """
    return Head(config).apply({'params': params['head']}, hidden_BxMxD, params['embeddings']['token']['embedding'])


def head_of(params: Params, config: ModelConfig) -> Params:
    """The part of the parameters that `predict` reads, so that a gradient need not be taken of the rest; its table, the
    largest of them, in the compute type, in which gradients of it take half as much."""
    table_VxE = params['embeddings']['token']['embedding'].astype(config.dtype)
    return {'head': params['head'], 'embeddings': {'token': {'embedding': table_VxE}}}


def declared(config: ModelConfig) -> Params:
    """All parameters without values: at each leaf a box of its shape and type with the names of its axes."""
    tokens_1x1 = jnp.zeros((1, 1), jnp.int32)
    hidden_1x1xD = jnp.zeros((1, 1, config.width), config.dtype)
    # One row of one token cannot be cut over a mesh, as a kernel's arrays are; the parameters are the same without.
    layer = declared_by(Layer(replace(config, attention='xla')), hidden_1x1xD, tokens_1x1)
    own = jax.tree.map(
        lambda box: nn.LogicallyPartitioned(
            jax.ShapeDtypeStruct((config.layers, *box.value.shape), box.value.dtype), ('layers', *box.names)
        ),
        {name: part for name, part in layer.items() if name not in config.shared_parts},
        is_leaf=lambda x: isinstance(x, nn.Partitioned),
    )
    boxes = {
        'embeddings': declared_by(Embeddings(config), tokens_1x1),
        **({'layers': own} if own else {}),
        **({'shared': {name: layer[name] for name in config.shared_parts}} if config.shared_parts else {}),
        'head': declared_by(Head(config), hidden_1x1xD, jnp.zeros((config.padded_vocab_size, config.table_width))),
    }
    if config.norm == 'pre':
        boxes['final_norm'] = declared_by(LayerNorm(config.norm_epsilon), hidden_1x1xD)
    return boxes


def _pooler(config: ModelConfig) -> Params:
    return declared_by(Pooler(config), jnp.zeros((1, 1, config.width), config.dtype))


def declared_by(module: nn.Module, *inputs: jax.Array) -> Params:
    """What a module declares when it is given such inputs."""
    return jax.eval_shape(module.init, jax.random.key(0), *inputs)['params']
