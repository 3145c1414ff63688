"""What is gained by training all replicas of an ablation in one program, against one after the other."""

from collections.abc import Iterator
from dataclasses import dataclass

import jax

from configs import masking_rate
from data.store import TokenStore
from experiments.benching.clock import Sides, alternate
from experiments.benching.ours import Steps, first_rows
from experiments.study import with_vocabulary
from train.cohort import Cohort, Replica, cohorts
from train.program import Program

BATCHES = 8
"""Different batches that the steps go through."""


@dataclass(frozen=True)
class Together:
    """One stage of `configs/masking_rate.py`."""

    length: int
    replicas: int
    """Of the table, without the controls that fill up the devices."""
    tokens: int
    """Of all these replicas in a step."""
    sides: Sides
    """Seconds a step of all: in one program, and one after the other."""


def measure(store: TokenStore, pairs: int, seconds: float, scale: str = 'cpu') -> Iterator[Together]:
    """Times each stage, all replicas in one program by turns with one after the other, on the same devices.

    A replica that trains alone has only the target slots that its own rate needs.
    """
    ablation = masking_rate.config(scale)
    configs = {arm.name: with_vocabulary(ablation.config(arm.name), store) for arm in ablation.arms}
    replicas = [Replica(arm, seed, config) for seed in range(ablation.seeds) for arm, config in configs.items()]
    (all_in_one,) = cohorts(replicas, ablation.baseline, jax.device_count())
    for stage, shape in enumerate(ablation.base.stages):
        together = steps(all_in_one, store, stage)
        alone = [steps(Cohort(arm, (Replica(arm, 0, config),)), store, stage) for arm, config in configs.items()]

        def one_by_one(count: int, alone=alone) -> None:
            for runner in alone:
                runner(count * ablation.seeds)

        tokens = len(replicas) * shape.batch_size * shape.length
        yield Together(shape.length, len(replicas), tokens, alternate(together, one_by_one, pairs, seconds))


def steps(cohort: Cohort, store: TokenStore, stage: int) -> Steps:
    """The steps of a cohort on the corpus."""
    program = Program.of(cohort, store.tokenizer.vocabulary)
    return Steps(program, first_rows(program, store, stage, BATCHES), stage)
