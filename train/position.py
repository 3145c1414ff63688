"""Where a step is: its stage, and the rows consumed before it. Functions of the config and the step alone."""

from train.config import Config


def stage_of(config: Config, step: int) -> tuple[int, int]:
    """The stage in which update number `step` (from 0) lies, and the step at which that stage starts."""
    start = 0
    for index, stage in enumerate(config.stages):
        if step < start + stage.steps:
            return index, start
        start += stage.steps
    return len(config.stages) - 1, start - config.stages[-1].steps


def rows_before(config: Config, step: int) -> tuple[int, int]:
    """Rows consumed in all before update `step`, and those of them at the length of its stage.

    A stage that has the length of an earlier one goes on where that one stopped.
    """
    index, start = stage_of(config, step)
    length = config.stages[index].length
    seen = [(stage.length, stage.batch_size * stage.steps) for stage in config.stages[:index]]
    seen.append((length, config.stages[index].batch_size * (step - start)))
    return sum(rows for _, rows in seen), sum(rows for at, rows in seen if at == length)


def tokens_after(config: Config, step: int) -> int:
    """Tokens of the rows that a replica has still to read once `step` updates are done."""
    left, total = config.steps - step, 0
    for stage in reversed(config.stages):
        steps = min(left, stage.steps)
        total += steps * stage.batch_size * stage.length
        left -= steps
    return total
