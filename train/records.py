"""Step metrics on their way from the devices to metrics.jsonl, one step late."""

import time
from collections.abc import Callable

import jax
import numpy as np

from data.loader import HostBatch
from train.cohort import Cohort, Replica
from train.cost import step_flops
from train.metrics import Metrics as MetricWriter
from train.position import rows_before, stage_of
from train.rates import rate_at
from train.schedule import learning_rate
from train.step import Metrics, State


class StepRecords:
    """Fetches the metrics of step k - 1 while step k runs, averages them between log lines and notes failures."""

    def __init__(
        self,
        cohort: Cohort,
        writer: MetricWriter,
        log: Callable[[str], None] = print,
        peak_flops: float | None = None,
    ):
        """Begins a window of metrics.

        Args:
          peak_flops: operations a second of all devices at best; None: not known, so there is no 'mfu'.
        """
        self.cohort = cohort
        self.failed: dict[tuple[str, int], int] = {}
        """(arm, seed) -> the first update, counted from 1, whose loss or gradients were not finite."""
        self.failed_batch: HostBatch | None = None
        """The rows at which the last of them failed; None: it had failed before this process took up the run."""
        self._writer = writer
        self._log = log
        self._peak_flops = peak_flops
        stages = range(len(cohort.config.stages))
        self._flops_of_stage = [sum(step_flops(replica.config, i) for replica in cohort.replicas) for i in stages]
        self._pending: tuple[int, Metrics, HostBatch] | None = None
        self._restart_window()

    def take_up(self, state: State, step: int) -> None:
        """Notes the replicas that had failed before the `step` updates that a restored state has behind it."""
        for replica, reached in zip(self.cohort.replicas, jax.device_get(state.step), strict=True):
            if reached < step:
                self._note(replica, int(reached) + 1, None)

    def add(self, step: int, metrics: Metrics, host: HostBatch) -> None:
        """Takes the metrics of update `step` (from 0) without waiting for them."""
        before, self._pending = self._pending, (step, metrics, host)
        self._take(before)

    def flush(self) -> None:
        """Waits for the metrics of the last step given."""
        pending, self._pending = self._pending, None
        self._take(pending)

    def _take(self, pending) -> None:
        if pending is None:
            return
        step, metrics, host = pending
        metrics = jax.device_get(metrics)
        for replica, alive in zip(self.cohort.replicas, metrics.alive, strict=True):
            if not alive and (replica.arm, replica.seed) not in self.failed:
                self._note(replica, step + 1, host)
        self._sums += np.stack([metrics.loss, metrics.weight, metrics.correct])
        self._tokens += host.tokens_SxBxL[0].size
        done = step + 1
        config = self.cohort.config
        self._flops += self._flops_of_stage[stage_of(config, step)[0]]
        if done % config.run.log_every == 0 or done == config.steps:
            self._write(step, metrics)
            self._restart_window()

    def _note(self, replica: Replica, step: int, host: HostBatch | None) -> None:
        self.failed[replica.arm, replica.seed], self.failed_batch = step, host
        self._log(f'arm {replica.arm}, seed {replica.seed}: not finite at step {step}; kept as it was before')
        self._writer.write({'kind': 'failed', 'arm': replica.arm, 'seed': replica.seed, 'step': step})

    def _write(self, step: int, metrics: Metrics) -> None:
        seconds = max(time.monotonic() - self._began, 1e-9)
        loss_R, weight_R, correct_R = self._sums
        config = self.cohort.config
        replicas = len(self.cohort.replicas)
        for i, replica in enumerate(self.cohort.replicas):
            weight = max(weight_R[i], 1.0)
            self._writer.write(
                {
                    'kind': 'train',
                    'arm': replica.arm,
                    'seed': replica.seed,
                    'stage': stage_of(config, step)[0],
                    'step': step + 1,
                    'loss': loss_R[i] / weight,
                    'accuracy': correct_R[i] / weight,
                    'grad_norm': float(metrics.grad_norm[i]),
                    'learning_rate': learning_rate(replica.config, step),
                    'rate': rate_at(replica.config.masking, step, config.steps),
                    'seen_rows': rows_before(config, step)[0] + config.stages[stage_of(config, step)[0]].batch_size,
                    'tokens_per_second': replicas * self._tokens / seconds,
                    'targets_per_second': float(weight_R.sum()) / seconds,
                    # Model FLOPs utilisation (Chowdhery et al. 2022, Appendix B), of all replicas together.
                    'mfu': self._flops / seconds / self._peak_flops if self._peak_flops else None,
                }
            )

    def _restart_window(self) -> None:
        self._sums = np.zeros((3, len(self.cohort.replicas)), np.float64)
        self._tokens = 0
        self._flops = 0.0
        self._began = time.monotonic()
