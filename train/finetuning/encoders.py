"""Pretrained encoders to fine-tune: the replicas of a cohort, or one that was read."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from model.config import ModelConfig
from train.config import Config


@dataclass(frozen=True)
class Encoders:
    """E encoders of one structure."""

    names: tuple[tuple[str, int], ...]
    """(arm, pretraining seed) of each."""
    model: ModelConfig
    params_E: Any
    """The tree of `model.mlm`, and `pooler` where there is one, each leaf with a leading axis E."""
    longest: int
    """Tokens of the longest rows that they were pretrained on."""

    @classmethod
    def one(cls, name: tuple[str, int], model: ModelConfig, params: Any, longest: int) -> 'Encoders':
        return cls((name,), model, jax.tree.map(lambda leaf: leaf[None], params), longest)


def ready_for_pairs(params: Any, config: Config) -> Any:
    """Parameters as fine-tuning starts from them: with a type for second segments, if pretraining had none.

    Where rows were no pairs, all tokens were of type 0: it has become a part of every state, while type 1 is as it was
    drawn. Second segments start from the type that the encoder knows, as in RoBERTa, which has one alone.

    Args:
      params: the tree of `model.mlm`, leaves with any axes before their own.
      config: that of pretraining.
    """
    if config.objective.has_pairs:
        return params
    embeddings = params['embeddings']
    alike = jax.tree.map(lambda type_TxE: jnp.broadcast_to(type_TxE[..., :1, :], type_TxE.shape), embeddings['type'])
    return {**params, 'embeddings': {**embeddings, 'type': alike}}
