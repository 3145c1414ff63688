"""Fine-tunes the replicas of one program, from the newest checkpoint to the last step."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from data.errors import UserError
from data.tasks.buckets import steps_per_epoch, training_batches
from data.tasks.features import Features
from train import hosts
from train.checkpoints import Checkpoints
from train.finetuning.early_stopping import Course
from train.finetuning.program import Program
from train.finetuning.records import StepRecords
from train.loop import Stopped
from train.preemption import Preemption
from train.records import whole_minutes
from train.save_times import SaveTimes

Selection = Callable[[Any, Any], np.ndarray]
"""(params, frozen) -> each replica's score on what early stopping and grids choose by, [R]; NaN where there is none."""


@dataclass(frozen=True)
class Trained:
    """What came of a program."""

    params: Any
    """[R, ...]: those of the best epoch under early stopping, else the last."""
    frozen: Any
    failed: dict[int, int]
    """Replica -> the update, counted from 1, whose loss or gradients were not finite: it was left as it was before."""
    epochs_R: np.ndarray
    """The epoch whose weights these are, from 1."""


def fine_tune(
    program: Program,
    features: Features,
    selection: Selection,
    records: StepRecords,
    *,
    checkpoints: Checkpoints | None,
    preemption: Preemption | None,
    meta: dict,
    name: str,
    log: Callable[[str], None] = print,
) -> Trained:
    """Trains on every row so many times, or until early stopping has stopped all replicas.

    Args:
      features: the training rows.
      selection: asked at the end of each epoch under early stopping, and not otherwise.
      checkpoints: None: nothing is saved, and nothing taken up.
      meta: what must be the same for a checkpoint to be taken up; saved with it.
      name: shown with the progress bar.

    Raises:
      Stopped: preemption asked for it; what can be saved is.
      UserError: the checkpoints are of something else.
    """
    config = program.config
    in_epoch = steps_per_epoch(features, config.batch_size)
    total = in_epoch * config.epochs
    state, frozen = program.init()
    tree, step, course = {'state': state}, 0, Course(len(program.replicas), config.patience)
    if config.patience:
        tree['best'] = jax.tree.map(jnp.copy, state.params)
    if checkpoints and (found := checkpoints.restore(_abstract(program))):
        step, tree, saved = found
        if any(saved.get(part) != meta[part] for part in meta):
            raise UserError(f'the checkpoints of {name} are of another fine-tuning: name another --workdir')
        course.history = saved['history']
        records.failed = {int(replica): at for replica, at in saved['failed']}
        log(f'{name}: goes on from step {step} of {total}')
    del state
    choose = jax.jit(_choose, donate_argnums=1)
    began, first = time.monotonic(), step
    times = SaveTimes(config.run, began)

    def save() -> None:
        records.flush()
        failed = [[int(replica), int(at)] for replica, at in records.failed.items()]
        checkpoints.save(step, tree, {**meta, 'history': course.history, 'failed': failed})

    votes = hosts.Votes()
    shown = None if hosts.is_first() else True  # None: on a terminal
    bar = tqdm(total=total, initial=step, unit='step', disable=shown, desc=name, leave=False)
    rows = training_batches(
        features, seeds=program.seeds, batch_size=config.batch_size, epochs=config.epochs, start=step
    )
    with bar:
        while step < total and course.running_R.any():
            host = next(rows)
            tree['state'], metrics = program.step(
                tree['state'], frozen, program.settings(step, total), program.batch(host, step)
            )
            # Fetches the step before while this one runs.
            records.add(step, total, hosts.readable(metrics, program.mesh))
            step += 1
            bar.update()
            if config.patience and step % in_epoch == 0:
                better_R = course.add(selection(tree['state'].params, frozen))
                tree['best'] = choose(better_R, tree['best'], tree['state'].params)
            asked, due = votes(preemption is not None and preemption.requested, times.due(time.monotonic()))
            ended = step == total or not course.running_R.any()
            if checkpoints and (asked or due or ended or times.kept(step)):
                save()
                times.saved(time.monotonic())
                votes.drop()
                if bar.disable:
                    left = (time.monotonic() - began) / (step - first) * (total - step)
                    log(
                        f'{name}: step {step:,} of {total:,}'
                        + (f'; about {whole_minutes(left)} left' if not ended else '')
                    )
            if asked:
                if checkpoints:
                    checkpoints.wait()
                raise Stopped(f'stopped at step {step} of {total} of {name}. The same command goes on from here.')
    records.flush()
    if checkpoints:
        checkpoints.wait()
    last_R = np.full(len(program.replicas), -(-step // in_epoch))
    params = tree['best'] if config.patience else tree['state'].params
    return Trained(params, frozen, dict(records.failed), course.best_R + 1 if config.patience else last_R)


def _abstract(program: Program) -> dict:
    state = program.abstract_state()
    return {'state': state, 'best': state.params} if program.config.patience else {'state': state}


def _choose(better_R: jax.Array, best: Any, params: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(better_R.reshape((-1,) + (1,) * (a.ndim - 1)), b, a), best, params)
