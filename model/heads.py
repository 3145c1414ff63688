"""Heads for downstream tasks (Devlin et al. 2019, Section 4): pure functions of (parameters, hidden states).

Parameters of a head are a nested dict of float32 arrays:
  output/{kernel,bias}
  pooler/dense/{kernel,bias} (classification and regression)
  tagger/{forward,backward}_{0,1}/cell/... (tagging over frozen features)
"""

from typing import Literal

import jax
import jax.numpy as jnp
from flax import linen as nn

from model.bert import Pooler
from model.config import ModelConfig
from model.dropout import drop, noise_seed
from model.linear import Linear
from model.mlm import Params, declared_by
from model.parameters import draw_tree

Kind = Literal['classification', 'regression', 'tagging', 'span']
POOLED = ('classification', 'regression')
"""Kinds whose head reads the first token, [CLS], alone."""


class Tagger(nn.Module):
    """Two layers of a bidirectional LSTM, D wide each way, over frozen features (Devlin et al. 2019, Section 5.3)."""

    width: int

    @nn.compact
    def __call__(self, features_BxLxE: jax.Array, lengths_B: jax.Array) -> jax.Array:
        states_BxLxE = features_BxLxE
        for number in range(2):
            there, back = (
                nn.RNN(nn.OptimizedLSTMCell(self.width, parent=None), name=f'{way}_{number}')
                for way in ('forward', 'backward')
            )
            states_BxLxE = nn.Bidirectional(there, back)(states_BxLxE, seq_lengths=lengths_B)
        return states_BxLxE


class TaskHead(nn.Module):
    """The head of one task: see `apply_head`."""

    config: ModelConfig
    kind: Kind
    labels: int
    frozen: bool

    @nn.compact
    def __call__(self, features_BxLxE: jax.Array, lengths_B: jax.Array, key: jax.Array | None = None) -> jax.Array:
        rate, x = self.config.dropout, features_BxLxE
        if self.kind == 'tagging' and self.frozen:
            x = Tagger(self.config.width, name='tagger')(x, lengths_B)
        if self.kind in POOLED:
            x = Pooler(self.config, name='pooler')(x)[:, None]
        if key is not None and rate and self.kind != 'span':
            x = drop(x, noise_seed(key), rate)
        output = Linear('bld,dc->blc', (x.shape[-1], self.labels), ('embed', 'label'), name='output')
        logits_BxLxC = output(x.astype(jnp.float32))
        return logits_BxLxC[:, 0] if self.kind in POOLED else logits_BxLxC


def init_head(key: jax.Array, config: ModelConfig, kind: Kind, labels: int, features: int = 0) -> Params:
    """Initial parameters, drawn leaf by leaf as the encoder's; an LSTM's as Flax draws them.

    Args:
      labels: number of outputs, C: the task's labels, 1 for regression, 2 (start, end) for span.
      features: 0: the encoder is trained with the head. Otherwise it is frozen, and the head reads the states of so
        many of its last layers side by side.
    """
    head = TaskHead(config, kind, labels, features > 0)
    states_1x1xE = jnp.zeros((1, 1, max(features, 1) * config.width), config.dtype)
    lengths_1 = jnp.ones(1, jnp.int32)
    shapes = nn.unbox(jax.eval_shape(head.init, key, states_1x1xE, lengths_1)['params'])
    drawn = draw_tree(key, {name: part for name, part in shapes.items() if name != 'tagger'}, config.init_stddev)
    if 'tagger' in shapes:
        drawn['tagger'] = nn.unbox(head.init(key, states_1x1xE, lengths_1)['params']['tagger'])
    return drawn


def declared_head(config: ModelConfig, kind: Kind, labels: int) -> Params:
    """The boxes of such a head's parameters, as `model.mlm.declared` has those of the encoder."""
    inputs = (jnp.zeros((1, 1, config.width), config.dtype), jnp.ones(1, jnp.int32))
    return declared_by(TaskHead(config, kind, labels, frozen=False), *inputs)


def apply_head(
    params: Params,
    config: ModelConfig,
    kind: Kind,
    labels: int,
    features_BxLxE: jax.Array,
    lengths_B: jax.Array,
    key: jax.Array | None = None,
    frozen: bool = False,
) -> jax.Array:
    """Outputs in float32.

    Args:
      features_BxLxE: hidden states of the encoder, or those of some last layers side by side; for classification and
        regression those of [CLS] alone do, [B, 1, E].
      lengths_B: valid tokens of each row, which come first in it; a head of frozen features for tagging needs them.
      key: typed key for dropout; None: no dropout.
      frozen: `features` of `init_head` was not 0.

    Returns:
      classification: logits [B, C]; regression: values [B, 1]; tagging: logits [B, L, C]; span: logits of start and
      end, [B, L, 2].
    """
    return TaskHead(config, kind, labels, frozen).apply({'params': params}, features_BxLxE, lengths_B, key)
