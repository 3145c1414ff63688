"""Pretrained encoders to fine-tune: the replicas of a cohort, or one that was read."""

from dataclasses import dataclass
from typing import Any

import jax

from model.config import ModelConfig


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
