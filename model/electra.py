"""What ELECTRA adds to an encoder (Clark et al. 2020): a detector's head, a gate, and a generator that shares tables.

Beside the parameters of `model.mlm`, which are the encoder's own, there are
  detection/{dense,output}/{kernel,bias}
  gate/{kernel,bias} (all-tokens MLM)
  generator/..., the tree of `model.mlm` without what the generator shares with the encoder; what is shared is one leaf,
  at the encoder's place
  embeddings/token/delta, where the encoder's token table is the generator's plus this one
"""

from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from model import mlm
from model.config import GeneratorConfig, ModelConfig, generator_model
from model.gelu import gelu
from model.layout import named
from model.linear import Linear
from model.mlm import Params


class Detection(nn.Module):
    """One logit a token, positive for a token that was replaced."""

    config: ModelConfig

    @nn.compact
    def __call__(self, hidden_BxLxD: jax.Array) -> jax.Array:
        width = self.config.width
        dense = Linear('bld,de->ble', (width, width), ('embed', 'head_embed'), name='dense')
        hidden_BxLxD = gelu(named(dense(hidden_BxLxD), 'batch', 'length', 'width'))
        output = Linear('bld,dc->blc', (width, 1), ('embed', 'label'), name='output')
        return output(hidden_BxLxD.astype(jnp.float32))[..., 0]


class Gate(nn.Module):
    """One logit a token, positive where the token that is read is probably the right one."""

    config: ModelConfig

    @nn.compact
    def __call__(self, hidden_BxLxD: jax.Array) -> jax.Array:
        output = Linear('bld,dc->blc', (self.config.width, 1), ('embed', 'label'), name='output')
        return output(hidden_BxLxD.astype(jnp.float32))[..., 0]


def detect(params: Params, config: ModelConfig, hidden_BxLxD: jax.Array) -> jax.Array:
    """Logits [B, L], float32, that the tokens with these hidden states were replaced."""
    return Detection(config).apply({'params': params['detection']}, hidden_BxLxD)


def gate(params: Params, config: ModelConfig, hidden_BxLxD: jax.Array) -> jax.Array:
    """Logits [B, L], float32, that the tokens with these hidden states are to be copied."""
    return Gate(config).apply({'params': params['gate']}, hidden_BxLxD)


def declared_head(config: ModelConfig, name: str) -> Params:
    """The boxes, as `mlm.declared` has them, of head 'detection' or 'gate', under its name."""
    module = {'detection': Detection, 'gate': Gate}[name](config)
    return {name: mlm.declared_by(module, jnp.zeros((1, 1, config.width), config.dtype))}


def with_generator(boxes: Params, model: ModelConfig, config: GeneratorConfig) -> Params:
    """The boxes of an encoder's parameters with those of a generator beside them."""
    own = mlm.declared(generator_model(model, config))
    if config.share == 'weights':
        own = {'head': own['head']}
    elif config.share == 'embeddings':
        own['embeddings'] = {name: box for name, box in own['embeddings'].items() if name == 'projection'}
    elif config.share != 'none':
        own['embeddings'] = {name: box for name, box in own['embeddings'].items() if name != 'token'}
    own = {name: part for name, part in own.items() if part}
    if config.share == 'disentangled':
        token = boxes['embeddings']['token']
        embeddings = {**boxes['embeddings'], 'token': {**token, 'delta': token['embedding']}}
        boxes = {**boxes, 'embeddings': embeddings}
    return {**boxes, 'generator': own}


def generator(params: Params, config: GeneratorConfig) -> Params:
    """The generator as the tree of `model.mlm`, for functions that take one."""
    own = params['generator']
    if config.share == 'none':
        return own
    if config.share == 'weights':
        return {**encoder(params), **own}
    table = {'embedding': params['embeddings']['token']['embedding']}
    if config.share != 'embeddings':
        return {**own, 'embeddings': {**own['embeddings'], 'token': table}}
    shared = {name: part for name, part in params['embeddings'].items() if name != 'projection'}
    return {**own, 'embeddings': {**shared, **own.get('embeddings', {})}}


def encoder(params: Params) -> Params:
    """The model itself as the tree of `model.mlm`, with a `head` where it has one; the leaves may be stacked.

    A table that is a delta and the generator's is their sum, and the generator's gets no gradient through it.
    """
    kept = {name: params[name] for name in ('embeddings', 'layers', 'shared', 'final_norm', 'head') if name in params}
    token: dict[str, Any] = kept['embeddings']['token']
    if 'delta' not in token:
        return kept
    table = jax.lax.stop_gradient(token['embedding']) + token['delta']
    return {**kept, 'embeddings': {**kept['embeddings'], 'token': {'embedding': table}}}
