"""What becomes of a run in which a replica's loss or gradients are not finite."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from data.errors import UserError
from data.loader import HostBatch
from train.checkpoints import Checkpoints
from train.hosts import is_first
from train.records import StepRecords

_MEND = 'try a lower --optimizer.learning_rate or --optimizer.clip_norm 1 in another --workdir'


class AllFailed(UserError):
    """No replica of a cohort is left whose loss and gradients are finite."""


def stop_if_failed(
    records: StepRecords, checkpoints: Checkpoints, workdir: Path, batch: Callable[[int], HostBatch]
) -> None:
    """Ends the run at its first failure, or under `run.on_nan continue` at that of the last replica that was left.

    By then the last save is complete, and the rows at which it failed are in the workdir.

    Args:
      batch: the rows of an update, counted from 0, on all hosts.

    Raises:
      AllFailed: no replica is left.
      UserError: one failed, and the others are not to go on.
    """
    config, replicas = records.cohort.config, records.cohort.replicas
    none_left = len(records.failed) == len(replicas)
    if not records.failed or (config.run.on_nan == 'continue' and not none_left):
        return
    checkpoints.wait()
    step = max(records.failed.values())
    found = [f'arm {arm}, seed {seed}' for (arm, seed), at in records.failed.items() if at == step]
    who = '; '.join(found[:3]) + (f' and {len(found) - 3} more' if len(found) > 3 else '')
    where = f'step {step} of {config.steps} ({who}{_save_batch(records, step, workdir, batch)}'
    if config.run.on_nan == 'continue':
        raise AllFailed(f'the loss or a gradient is not finite in any replica since {where}): {_MEND}')
    whole = checkpoints.steps()
    kept = f'the checkpoint of step {whole[-1]} is the last' if whole else 'there is no checkpoint yet'
    others = '' if none_left else '; or let the others go on with --run.on_nan continue'
    raise UserError(f'the loss or a gradient is not finite at {where}; {kept}): {_MEND}{others}')


def _save_batch(records: StepRecords, step: int, workdir: Path, batch: Callable[[int], HostBatch]) -> str:
    """Where the rows are; nothing where they were of an earlier run of the command, which has saved them."""
    if not records.failed_here:
        return ''
    path = Path(workdir) / f'failed-batch-{step}.npz'
    if is_first():
        np.savez(path, **{name: rows for name, rows in batch(step - 1)._asdict().items() if rows is not None})
    return f'; its batch is in {path}'
