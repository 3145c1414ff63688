"""The masks of evaluations, the same for every arm and seed."""

from collections.abc import Iterable

import numpy as np

from train.cohort import Replica
from train.config import MaskingConfig
from train.rates import rate_at, rate_units, target_slots
from train.settings import Settings, settings_at
from train.units import UNIT_NUMBERS

SEED = 2**32 - 1
"""Seed of all evaluation masks: a constant, so that they are the same for every arm and seed."""


def fixed_settings(rate: float) -> Settings:
    """Masking at one of the common rates: every chosen token becomes [MASK], whatever the arm's rule."""
    units = np.int32(rate_units(rate))
    return Settings(
        seed=np.uint32(SEED),
        noise=np.uint32(0),
        corruption=units,
        prediction=units,
        mask_share=np.float32(1),
        random_share=np.float32(0),
        unit=np.int32(UNIT_NUMBERS['token']),
        duplicates=np.int32(0),
        learning_rate=np.float32(0),
        weight_decay=np.float32(0),
    )


def own_settings(replica: Replica) -> Settings:
    """Masking at the corruption rate with which the arm ends, by its own rule; all that is corrupted is scored.

    A prediction rate apart from the corruption rate changes how many of the corrupted tokens are scored, not what a
    token's loss is expected to be, so here it is left out.
    """
    config = replica.config
    units = np.int32(rate_units(rate_at(config.masking, config.steps, config.steps)))
    settings = settings_at(config, replica.seed, config.steps - 1)
    fixed = fixed_settings(0.0)
    return fixed._replace(
        corruption=units,
        prediction=units,
        mask_share=settings.mask_share,
        random_share=settings.random_share,
        unit=settings.unit,
    )


def slots_for(rates: Iterable[float], length: int) -> int:
    """M, target slots a row that serve all of `rates`."""
    return target_slots([MaskingConfig(corruption_rate=rate) for rate in rates], length)
