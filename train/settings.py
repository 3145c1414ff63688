"""What may differ between the arms of one program: numbers that the compiled step takes as arguments."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from train.config import Config
from train.rates import rate_at, rate_units
from train.schedule import learning_rate
from train.units import UNIT_NUMBERS


class Settings(NamedTuple):
    """One replica's numbers at one update: scalars, or with a leading replica axis."""

    seed: np.uint32 | jax.Array
    noise: np.uint32 | jax.Array
    """masking.noise."""
    corruption: np.int32 | jax.Array
    """Corruption rate in units of 1/100,000."""
    prediction: np.int32 | jax.Array
    """Prediction rate in units of 1/100,000."""
    mask_share: np.float32 | jax.Array
    """Share of corrupted tokens that become [MASK]."""
    random_share: np.float32 | jax.Array
    """Share of corrupted tokens that become a random one; the rest stay."""
    unit: np.int32 | jax.Array
    """What is masked together: a number of `UNIT_NUMBERS`."""
    duplicates: np.int32 | jax.Array
    """Masks a row has under static masking; 0: a new one each epoch."""
    learning_rate: np.float32 | jax.Array
    weight_decay: np.float32 | jax.Array


def settings_at(config: Config, seed: int, step: int) -> Settings:
    """The settings of one replica at an update, counted from 0. numpy scalars."""
    masking = config.masking
    corruption = rate_units(rate_at(masking, step, config.steps))
    mask_share, random_share, _ = masking.rule
    return Settings(
        seed=np.uint32(seed),
        noise=np.uint32(masking.noise),
        corruption=np.int32(corruption),
        prediction=np.int32(corruption if masking.prediction_rate is None else rate_units(masking.prediction_rate)),
        mask_share=np.float32(mask_share),
        random_share=np.float32(random_share),
        unit=np.int32(UNIT_NUMBERS[masking.unit]),
        duplicates=np.int32(masking.duplicates),
        learning_rate=np.float32(learning_rate(config, step)),
        weight_decay=np.float32(config.optimizer.weight_decay),
    )


def stacked(settings_R: Sequence[Settings]) -> Settings:
    """The settings of several replicas, each leaf [R]."""
    return Settings(*(np.stack(leaf) for leaf in zip(*settings_R, strict=True)))
