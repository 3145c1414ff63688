"""Plans every stage of every cohort on each slice."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from data.errors import UserError
from experiments.ablation import Ablation
from experiments.planning.estimate import StagePlan, plan_stage
from experiments.planning.fit import largest_batch
from experiments.planning.subject import planned_cohorts, vocabulary_of
from experiments.planning.topology import slice_of
from experiments.planning.work import check, slots_of
from train.cohort import Cohort
from train.mesh import make_mesh, parameter_sizes
from train.program import Program


def plans(
    ablation: Ablation, seeds: int, topologies: tuple[str, ...], fit: bool, log: Callable[[str], None]
) -> Iterator[StagePlan]:
    """The plans, slice by slice.

    Args:
      fit: look for the largest batch, too.
      log: told what is compiled, since each takes a while.

    Raises:
      UserError: no such topology, libtpu is missing, or the mesh does not fit the slice.
    """
    vocabulary = vocabulary_of(ablation.config(ablation.baseline))
    slices = [slice_of(name) for name in topologies]
    checks: dict[Any, Any] = {}
    for where in slices:
        for cohort in planned_cohorts(ablation, seeds, len(where.devices), vocabulary):
            program = Program(cohort, vocabulary, _mesh(cohort, where))
            for stage in range(len(cohort.config.stages)):
                log(f'{where.name}: compiling cohort {cohort.name}, stage {stage}')
                key = (cohort.config.model, cohort.config.stages[stage].length, slots_of(cohort, stage))
                if key not in checks:
                    checks[key] = check(cohort, stage, vocabulary, where.devices[0])
                plan = plan_stage(program, stage, where, checks[key])
                if fit:
                    largest = largest_batch(program, stage, plan.memory.capacity, log)
                    plan = dataclasses.replace(plan, largest_batch=largest)
                yield plan


def _mesh(cohort: Cohort, where) -> Any:
    config = cohort.config
    rows = tuple(stage.batch_size // config.optimizer.micro_batches for stage in config.stages)
    try:
        return make_mesh(
            config.run.mesh, len(cohort.replicas), rows, parameter_sizes(config.model), list(where.devices)
        )
    except ValueError as error:
        raise UserError(f'{where.name}: {error}') from None
