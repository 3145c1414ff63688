"""What may differ between the replicas of one fine-tuning program: numbers that the compiled step takes."""

from typing import NamedTuple

import jax
import numpy as np

from train.finetuning.config import FinetuneConfig


class Settings(NamedTuple):
    """One replica's numbers at one update: scalars, or with a leading replica axis."""

    seed: np.uint32 | jax.Array
    """Fine-tuning seed."""
    learning_rate: np.float32 | jax.Array
    weight_decay: np.float32 | jax.Array
    layerwise_decay: np.float32 | jax.Array


def settings_at(config: FinetuneConfig, seed: int, step: int, steps: int) -> Settings:
    """The settings of one replica at update `step`, from 0, of `steps`. numpy scalars."""
    return Settings(
        seed=np.uint32(seed),
        learning_rate=np.float32(learning_rate(config, step, steps)),
        weight_decay=np.float32(config.weight_decay),
        layerwise_decay=np.float32(config.layerwise_decay),
    )


def learning_rate(config: FinetuneConfig, step: int, steps: int) -> float:
    """It rises over the first warmup_share of the updates, from the first on above 0, then falls to 0 at the end."""
    warmup = round(config.warmup_share * steps)
    return config.learning_rate * min(1.0, (step + 1) / max(warmup, 1), (steps - step) / max(steps - warmup, 1))
