"""The training loop of one cohort, from its newest checkpoint to its last step."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
from tqdm import tqdm

from data.errors import UserError
from data.loader import HostBatch, batches
from data.store import TokenStore
from train import hosts
from train.checkpoints import Checkpoints
from train.chips import peak_flops
from train.failures import stop_if_failed
from train.metrics import Metrics as MetricWriter
from train.position import rows_before, stage_of
from train.preemption import Preemption
from train.profiling import Profile
from train.program import Program
from train.records import StepRecords
from train.save_times import SaveTimes
from train.step import State


class Stopped(Exception):
    """The run was asked to stop and has saved."""


def train(
    program: Program,
    store: TokenStore,
    checkpoints: Checkpoints,
    writer: MetricWriter,
    preemption: Preemption,
    meta: dict,
    curve: Callable[[State, int, int], None],
    workdir: Path,
    log: Callable[[str], None] = print,
    clock: Callable[[], float] = time.monotonic,
) -> State:
    """Trains a cohort to its last step and returns its state; takes up the newest complete checkpoint if there is one.

    Args:
      meta: saved with every checkpoint.
      curve: called with the state, the stage and the step at each point of the learning curve and at each stage's end.
      clock: seconds; saves by time go by it.

    Raises:
      Stopped: preemption asked for it; the state is saved.
      UserError: a stage does not fit in memory; no room for a checkpoint; a replica failed and the run is to stop then.
      AllFailed: no replica is left whose loss and gradients are finite.
    """
    config = program.cohort.config
    restored = checkpoints.restore(program.abstract_state())
    state, step = (restored[1], restored[0]) if restored else (program.init(), 0)
    for part in ('replicas', 'tokenizer', 'text'):
        if restored and restored[2].get(part) != meta[part]:
            raise UserError(f'the checkpoints in {workdir}/checkpoints are of other {part}: name another --workdir')
    replicas = [(replica.arm, replica.seed) for replica in program.cohort.replicas]
    writer.truncate_after(dict.fromkeys(replicas, step), program.cohort.name)
    if restored:
        log(f'cohort {program.cohort.name}: goes on from step {step} of {config.steps}')
    if step == config.steps:
        return state
    devices = program.mesh.devices
    peak = peak_flops(devices.flat[0].device_kind)
    records = StepRecords(program.cohort, writer, log, peak and devices.size * peak, clock)
    profile = Profile(workdir / 'profile', config.run.profile if hosts.is_first() else (0, 0), log)
    records.take_up(hosts.readable(state.step, program.mesh), step)

    def settle() -> None:
        """Nothing is evaluated or saved before it is known that the step before was finite."""
        records.flush()
        stop_if_failed(records, checkpoints, workdir, whole_batch)

    def whole_batch(at: int) -> HostBatch:
        """What update `at` read on all hosts."""
        return next(_rows(program, store, at, 1))

    settle()
    began = time.monotonic()
    # All stages before the first step: one that does not fit in memory is known at once.
    steps = {index: _compiled(program, index) for index in range(stage_of(config, step)[0], len(config.stages))}
    log(f'cohort {program.cohort.name}: compiled {len(steps)} stages in {time.monotonic() - began:.1f} s')
    hosts.wait()  # compilation takes some longer than others
    records.begin()
    votes = hosts.Votes()
    times = SaveTimes(config.run, clock())
    shown = None if hosts.is_first() else True  # None: on a terminal
    bar = tqdm(total=config.steps, initial=step, unit='step', disable=shown, desc=f'cohort {program.cohort.name}')
    with bar, profile:
        while step < config.steps:
            index, start = stage_of(config, step)
            stage = config.stages[index]
            rows = _rows(program, store, step, start + stage.steps - step, program.local_rows(index))
            for host in rows:
                with profile.step(step, state):
                    state, metrics = steps[index](state, program.settings(step), program.batch(host, index, step))
                profile.after(step, state)
                records.add(step, hosts.readable(metrics, program.mesh))  # fetches the step before while this one runs
                step += 1
                bar.update()
                at_end = step == start + stage.steps
                every = config.evaluation.curve_every
                if at_end or (every and step % every == 0):
                    settle()
                    curve(state, index, step)
                # Read once: a signal may arrive between two readings.
                asked, due = votes(preemption.requested, times.due(clock()))
                if asked or due or at_end or times.kept(step):
                    settle()
                    writer.flush()  # a checkpoint never has a step of which there is no record
                    checkpoints.save(step, state, {**meta, 'step': step, 'stage': index})
                    times.saved(clock())
                    votes.drop()
                    if bar.disable:
                        log(records.line(step))
                if asked and step < config.steps:
                    checkpoints.wait()
                    raise Stopped(
                        f'stopped at step {step} of {config.steps}; saved. The same command goes on from here.'
                    )
                stop_if_failed(records, checkpoints, workdir, whole_batch)
                checkpoints.check()
    records.flush()
    checkpoints.wait()
    return state


def _rows(
    program: Program, store: TokenStore, step: int, steps: int, local: np.ndarray | slice = slice(None)
) -> Iterator[HostBatch]:
    """The batches of `steps` updates of one stage, from update `step` on."""
    config = program.cohort.config
    stage = config.stages[stage_of(config, step)[0]]
    return batches(
        store.train,
        store.tokenizer.vocabulary,
        seeds=program.cohort.seeds,
        length=stage.length,
        batch_size=stage.batch_size,
        start=rows_before(config, step)[1],
        steps=steps,
        local=local,
        form=config.objective.rows,
        second=config.objective.second,
    )


def _compiled(program: Program, index: int) -> Any:
    """The step of a stage.

    Raises:
      UserError: it needs more memory than a device has.
    """
    try:
        return program.compile_step(index)
    except jax.errors.JaxRuntimeError as error:
        if 'RESOURCE_EXHAUSTED' not in str(error):
            raise
        stage = program.cohort.config.stages[index]
        raise UserError(
            f'stages.{index} (length {stage.length}, batch_size {stage.batch_size}) does not fit in memory: raise '
            f'--optimizer.micro_batches, or the third number of --run.mesh; experiments.plan says how much it needs. '
            f'{str(error).splitlines()[0]}'
        ) from None
