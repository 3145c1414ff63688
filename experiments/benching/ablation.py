"""What it brings to train all replicas of an ablation in one program, against one after the other."""

import dataclasses
from collections.abc import Callable

import jax

from configs import masking_rate
from data.store import TokenStore
from experiments.ablation import Ablation
from experiments.benching.clock import Sides, alternate
from experiments.benching.ours import Steps, first_rows
from train.cohort import Cohort, Replica, cohorts
from train.config import Config
from train.program import Program

BATCHES = 8
"""Different batches that the steps go through."""


@dataclasses.dataclass(frozen=True)
class Together:
    """One stage of `configs/masking_rate.py`."""

    length: int
    replicas: int
    """Of the table, without the controls that fill up the devices."""
    tokens: int
    """Of all these replicas in a step."""
    sides: Sides
    """Seconds a step of all: in one program, and one after the other."""


def measure(store: TokenStore, pairs: int, mesh: tuple[int, int], scale: str = 'cpu', seconds: float = 1.0):
    """Yields a `Together` for each stage.

    Args:
      mesh: of one replica that trains alone.
    """
    ablation = masking_rate.config(scale)
    configs = with_vocabulary(ablation, store, lambda config: config)
    replicas = [Replica(arm, seed, config) for seed in range(ablation.seeds) for arm, config in configs.items()]
    (all_in_one,) = cohorts(replicas, ablation.baseline, jax.device_count())
    # A replica that trains alone has only the target slots that its own rate needs.
    alone = with_vocabulary(ablation, store, lambda config: on_mesh(config, mesh))
    for stage, shape in enumerate(ablation.base.stages):
        together = steps(all_in_one, store, stage)
        one_each = [steps(Cohort(arm, (Replica(arm, 0, config),)), store, stage) for arm, config in alone.items()]

        def one_by_one(count: int, one_each=one_each) -> None:
            for runner in one_each:
                runner(count * ablation.seeds)

        tokens = len(replicas) * shape.batch_size * shape.length
        yield Together(shape.length, len(replicas), tokens, alternate(together, one_by_one, pairs, seconds))


def steps(cohort: Cohort, store: TokenStore, stage: int) -> Steps:
    """The steps of a cohort on the corpus."""
    program = Program.of(cohort, store.tokenizer.vocabulary)
    return Steps(program, first_rows(program, store, stage, BATCHES), stage)


def with_vocabulary(ablation: Ablation, store: TokenStore, change: Callable[[Config], Config]) -> dict[str, Config]:
    """Each arm's config, changed, with the store's vocabulary."""
    size = store.tokenizer.vocabulary.size
    configs = {arm.name: change(ablation.config(arm.name)) for arm in ablation.arms}
    return {
        arm: dataclasses.replace(config, model=dataclasses.replace(config.model, vocab_size=size))
        for arm, config in configs.items()
    }


def on_mesh(config: Config, mesh: tuple[int, int]) -> Config:
    """The config on a mesh of its own."""
    return dataclasses.replace(config, run=dataclasses.replace(config.run, mesh=mesh))
