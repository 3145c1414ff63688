"""Plans every stage of every cohort on each slice."""

import dataclasses
import sys
from collections.abc import Iterator

from jax.sharding import Mesh

from data.errors import UserError
from experiments.ablation import Ablation
from experiments.planning.estimate import StagePlan, plan_stage
from experiments.planning.fit import largest_batch
from experiments.planning.subject import planned_cohorts, vocabulary_of
from experiments.planning.topology import Slice, slice_of
from experiments.planning.work import Check, check, slots_of
from model.parameters import axis_sizes
from train.cohort import Cohort, structure
from train.mesh import make_mesh
from train.objectives.table import objective_of
from train.program import Program


def plans(ablation: Ablation, seeds: int, topologies: tuple[str, ...], fit: bool) -> Iterator[StagePlan]:
    """The plans, slice by slice. What is being compiled goes to the standard error stream, since it takes a while.

    Args:
      fit: look for the largest batch, too.

    Raises:
      UserError: no such topology, libtpu is missing, or the mesh does not fit the slice.
    """
    vocabulary = vocabulary_of(ablation.config(ablation.baseline))
    slices = [slice_of(name) for name in topologies]
    checks: dict[tuple, Check] = {}
    for where in slices:
        for cohort in planned_cohorts(ablation, seeds, len(where.devices), vocabulary):
            program = Program(cohort, vocabulary, _mesh(cohort, where))
            for stage in range(len(cohort.config.stages)):
                _log(f'{where.name}: compiling cohort {cohort.name}, stage {stage}')
                key = (structure(cohort.config), stage, slots_of(cohort, stage))
                if key not in checks:
                    checks[key] = check(cohort, stage, vocabulary, where.devices[0])
                plan = plan_stage(program, stage, where, checks[key])
                if fit:
                    largest = largest_batch(program, stage, plan.memory.capacity, _log)
                    plan = dataclasses.replace(plan, largest_batch=largest)
                yield plan


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _mesh(cohort: Cohort, where: Slice) -> Mesh:
    config = cohort.config
    rows = tuple(stage.batch_size // config.optimizer.micro_batches for stage in config.stages)
    sizes = axis_sizes(objective_of(config).declared(config))
    try:
        return make_mesh(config.run.mesh, len(cohort.replicas), rows, sizes, list(where.devices))
    except ValueError as error:
        raise UserError(f'{where.name}: {error}') from None
