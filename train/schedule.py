"""The learning rate of every update, over all stages."""

import math

from train.config import Config


def learning_rate(config: Config, step: int) -> float:
    """Learning rate of an update, counted from 0 over the whole run.

    A schedule spans the stages up to the next with `restart`. In its T updates the rate rises over the first W (to the
    peak at update W - 1, never 0), and then falls linearly to 0 at update T, the first that is not made: from W on
    (linear), or over the last decay_share (trapezoidal: warmup, stable, decay).
    """
    begin, updates, peak, warmup_share = _schedule_at(config, step)
    warmup = max(1, _rounded(warmup_share * updates))
    if config.optimizer.schedule == 'linear':
        decay = updates - _rounded(warmup_share * updates)
    else:
        decay = _rounded(config.optimizer.decay_share * updates)
    update = step - begin
    return peak * min(1.0, (update + 1) / warmup, (updates - update) / max(1, decay))


def _schedule_at(config: Config, step: int) -> tuple[int, int, float, float]:
    """First update, number of updates, peak and warmup share of the schedule that an update belongs to.

    Raises:
      ValueError: the run has no such update.
    """
    if not 0 <= step < config.steps:
        raise ValueError(f'update {step} is outside the run of {config.steps}')
    optimizer = config.optimizer
    schedules, begin = [], 0
    for stage in config.stages:
        if stage.restart or not schedules:
            warmup_share = optimizer.warmup_share if stage.warmup_share is None else stage.warmup_share
            schedules.append([begin, 0, optimizer.learning_rate * stage.peak_scale, warmup_share])
        schedules[-1][1] += stage.steps
        begin += stage.steps
    return tuple(next(schedule for schedule in reversed(schedules) if schedule[0] <= step))


def _rounded(number: float) -> int:
    return math.floor(number + 0.5)
