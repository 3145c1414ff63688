"""Timing of two things by turns, so that what else the machine does falls on both alike."""

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

Runner = Callable[[int], None]
"""Carries out so many steps and returns when their results are there."""


@dataclass(frozen=True)
class Sides:
    """Seconds a step of both sides, pair by pair. `theirs` is empty where there is no other side."""

    ours: tuple[float, ...]
    theirs: tuple[float, ...] = ()

    @property
    def ratio(self) -> float:
        """How many times as fast we are: the median over pairs."""
        return statistics.median(theirs / ours for ours, theirs in zip(self.ours, self.theirs, strict=True))

    @property
    def spread(self) -> tuple[float, float]:
        """The smallest and the largest ratio of a pair."""
        ratios = [theirs / ours for ours, theirs in zip(self.ours, self.theirs, strict=True)]
        return min(ratios), max(ratios)


def alternate(ours: Runner, theirs: Runner | None, pairs: int, seconds: float = 1.0) -> Sides:
    """Times both by turns, each for about `seconds` a turn, after a warm-up turn each."""
    runners = [ours] if theirs is None else [ours, theirs]
    counts = [_steps_for(runner, seconds) for runner in runners]
    turns = [[time_steps(*side) / side[1] for side in zip(runners, counts, strict=True)] for _ in range(pairs)]
    return Sides(*(tuple(side) for side in zip(*turns, strict=True)))


def time_steps(run: Runner, steps: int) -> float:
    """Seconds that so many steps take."""
    began = time.perf_counter()
    run(steps)
    return time.perf_counter() - began


def _steps_for(run: Runner, seconds: float) -> int:
    run(2)  # the first steps of all touch new memory
    return max(2, math.ceil(2 * seconds / time_steps(run, 2)))
