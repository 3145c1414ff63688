"""Step metrics of fine-tuning on their way to metrics.jsonl, one step late."""

import time
from collections.abc import Callable, Sequence

import jax
import numpy as np

from train.finetuning.program import Program
from train.finetuning.settings import learning_rate
from train.finetuning.step import Metrics


class StepRecords:
    """Fetches the metrics of step k - 1 while step k runs, averages them between log lines and notes failures."""

    def __init__(
        self,
        program: Program,
        names: Sequence[dict],
        write: Callable[[dict], None],
        log: Callable[[str], None] = print,
    ):
        """`names`: what identifies each replica in its records, [R]."""
        self._program, self._names, self._write, self._log = program, names, write, log
        self.failed: dict[int, int] = {}
        """Replica -> the first update, counted from 1, whose loss or gradients were not finite."""
        self._pending: tuple[int, int, Metrics] | None = None
        self._restart_window()

    def add(self, step: int, steps: int, metrics: Metrics) -> None:
        """Takes the metrics of update `step` (from 0) of `steps` without waiting for them."""
        before, self._pending = self._pending, (step, steps, metrics)
        self._take(before)

    def flush(self) -> None:
        """Waits for the metrics of the last step given."""
        pending, self._pending = self._pending, None
        self._take(pending)

    def _take(self, pending) -> None:
        if pending is None:
            return
        step, steps, metrics = pending
        metrics = jax.device_get(metrics)
        for replica in np.flatnonzero(~metrics.alive):
            if int(replica) not in self.failed:
                self.failed[int(replica)] = step + 1
                words = ', '.join(f'{field} {value}' for field, value in self._names[replica].items() if value != '')
                self._log(f'{words}: not finite at step {step + 1}; kept as it was before')
        self._sums += np.stack([metrics.loss, metrics.weight])
        done, every = step + 1, self._program.config.run.log_every
        if done % every and done != steps:
            return
        seconds = max(time.monotonic() - self._began, 1e-9)
        for replica, (name, (loss, weight)) in enumerate(zip(self._names, self._sums.T, strict=True)):
            self._write(
                {
                    'kind': 'finetune',
                    **name,
                    'step': done,
                    'loss': loss / max(weight, 1.0),
                    'grad_norm': float(metrics.grad_norm[replica]),
                    'learning_rate': learning_rate(self._program.replicas[replica].config, step, steps),
                    'targets_per_second': float(self._sums[1].sum()) / seconds,
                }
            )
        self._restart_window()

    def _restart_window(self) -> None:
        self._sums = np.zeros((2, len(self._names)), np.float64)
        self._began = time.monotonic()
