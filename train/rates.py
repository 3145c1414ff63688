"""Masking rates as integers: their course over a run, and the counts, copies and slots that follow from them.

Rates travel in units of 1/100,000, since round(rate x n) in float32 is wrong for some n.
"""

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal

from train.config import MaskingConfig

UNITS = 100_000
LONGEST_ROW = (2**31 - 1 - UNITS // 2) // UNITS
"""Beyond this length (21,474) the count would overflow int32."""


def rate_units(rate: float) -> int:
    """A rate, as written in decimal, in units of 1/100,000, ties up."""
    return int((Decimal(repr(float(rate))) * UNITS).to_integral_value(ROUND_HALF_UP))


def count(units, maskable):
    """round(rate x maskable), ties up, in integers: Python's, numpy's or traced int32."""
    return (units * maskable + UNITS // 2) // UNITS


def rate_at(config: MaskingConfig, step: int, steps: int) -> float:
    """Corruption rate of an update, counted from 0, in a run of `steps`; `rate_at(config, steps, steps)` is the end's.

    Linear is p(t) = p0 + t/T (p1 - p0) (Ankner et al. 2023); cosine is half a wave between two points; step holds a
    rate until the next point.
    """
    share, left = step / steps, (0.0, config.corruption_rate)
    for right in config.rate_points:
        if share < right[0]:
            way = (share - left[0]) / (right[0] - left[0])
            if config.rate_curve == 'step':
                way = 0.0
            elif config.rate_curve == 'cosine':
                way = (1 - math.cos(math.pi * way)) / 2
            return left[1] + way * (right[1] - left[1])
        left = right
    return left[1]


def copies(config: MaskingConfig) -> int:
    """Copies of a row that score prediction_rate of its tokens while each corrupts corruption_rate of them.

    Raises:
      ValueError: the corruption rate rounds to 0 while tokens are to be scored.
    """
    corruption, prediction = rate_units(config.corruption_rate), rate_units(config.prediction_rate or 0)
    if prediction and not corruption:
        raise ValueError(f'masking.corruption_rate is {config.corruption_rate}: use 0.00001 or more to score tokens')
    return max(1, -(-prediction // corruption)) if corruption else 1


def target_slots(configs: Sequence[MaskingConfig], length: int) -> int:
    """M: slots that the targets of any row of `length` need, at the highest rate of any arm at any time.

    A multiple of 8, and never 0. A row holds at most length - 2 maskable tokens, between its [CLS] and [SEP].
    """
    needed = 1
    for config in configs:
        rate = max([config.corruption_rate, *(rate for _, rate in config.rate_points)])
        scored = rate if config.prediction_rate is None else min(rate, config.prediction_rate)
        needed = max(needed, count(rate_units(scored), length - 2))
    return -(-needed // 8) * 8
