"""The largest batch of a stage that fits in a chip's memory, by compiling."""

import dataclasses
from collections.abc import Callable

from experiments.planning.compile import Compiled, compile_step
from train.cohort import Cohort
from train.program import Program

FINENESS = 16
"""The search ends where what fits and what does not are this part of a batch apart, or one row on each chip."""


def largest_batch(program: Program, stage: int, capacity: int, log: Callable[[str], None]) -> int:
    """Rows a step, with the config's micro-batches and the program's mesh; 0: not one row on each chip fits."""
    unit = program.mesh.shape['data'] * program.mesh.shape['fsdp'] * program.cohort.config.optimizer.micro_batches

    def fits(units: int) -> bool:
        resized = with_batch(program, stage, units * unit)
        compiled = compile_step(resized, stage)
        fine = isinstance(compiled, Compiled) and compiled.bytes <= capacity
        log(f'batch of {units * unit} rows: {compiled.bytes / 2**30:.2f} GiB, {"fits" if fine else "does not fit"}')
        return fine

    return unit * last(fits, max(program.cohort.config.stages[stage].batch_size // unit, 1))


def last(fits: Callable[[int], bool], start: int) -> int:
    """The largest number found to fit, where all up to some number fit: by doubling, then by halving the interval."""
    low, high = 0, start
    while fits(high):
        low, high = high, 2 * high
    while high - low > max(low // FINENESS, 1):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def with_batch(program: Program, stage: int, batch_size: int) -> Program:
    """The program with another batch in a stage, on the same mesh."""

    def changed(replica):
        stages = list(replica.config.stages)
        stages[stage] = dataclasses.replace(stages[stage], batch_size=batch_size)
        return dataclasses.replace(replica, config=dataclasses.replace(replica.config, stages=tuple(stages)))

    cohort = Cohort(program.cohort.name, tuple(map(changed, program.cohort.replicas)))
    return dataclasses.replace(program, cohort=cohort)
