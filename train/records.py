"""Step metrics on their way from the devices to metrics.jsonl, one step late."""

import time
from collections.abc import Callable

import jax
import numpy as np

from train.cohort import CONTROL, Cohort, Replica
from train.flops import step_flops
from train.metrics import Metrics as MetricWriter
from train.position import rows_before, stage_of, tokens_after
from train.rates import rate_at
from train.schedule import learning_rate
from train.step import Metrics


class _Window:
    """Steps in a row: sums over their targets, and since when."""

    def __init__(self, clock: Callable[[], float]):
        self.steps = 0
        self.tokens = 0
        """That all replicas read together."""
        self.flops = 0.0
        self.targets = 0.0
        """That all replicas scored together."""
        self.pairs: dict[str, np.ndarray] = {}
        """Metric -> its sum and its weight for each replica, [2, R]."""
        self._clock, self._began = clock, clock()

    def add(self, metrics: Metrics, tokens: int, flops: float) -> None:
        self.steps += 1
        self.tokens += tokens
        self.flops += flops
        self.targets += float(metrics.targets.sum(dtype=np.float64))
        for name, pair in metrics.pairs.items():
            self.pairs[name] = self.pairs.get(name, 0) + np.stack(pair).astype(np.float64)

    def means(self) -> dict[str, np.ndarray]:
        """Metric -> its mean for each replica, NaN where there was nothing to take it of; losses in nats, shares in
        percent."""
        units = {name: 1 if name.endswith('loss') else 100 for name in self.pairs}
        with np.errstate(divide='ignore', invalid='ignore'):
            return {name: units[name] * np.divide(*pair) for name, pair in self.pairs.items()}

    @property
    def seconds(self) -> float:
        return max(self._clock() - self._began, 1e-9)


class StepRecords:
    """Fetches the metrics of step k - 1 while step k runs, averages them between log lines and notes failures."""

    def __init__(
        self,
        cohort: Cohort,
        writer: MetricWriter,
        log: Callable[[str], None] = print,
        peak_flops: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        """Begins a window of metrics.

        Args:
          peak_flops: operations a second of all devices at best; None: not known, so there is no 'mfu'.
          clock: seconds; speeds go by it.
        """
        self.cohort = cohort
        self.failed: dict[tuple[str, int], int] = {}
        """(arm, seed) -> the first update, counted from 1, whose loss or gradients were not finite."""
        self.failed_here = False
        """Whether the last of them failed in this process, not before it took up the run."""
        self._writer = writer
        self._log = log
        self._peak_flops = peak_flops
        stages = range(len(cohort.config.stages))
        self._flops_of_stage = [sum(step_flops(replica.config, i) for replica in cohort.replicas) for i in stages]
        self._pending: tuple[int, Metrics] | None = None
        self._clock = clock
        self.begin()

    def begin(self) -> None:
        """Speeds are measured from here on."""
        self._window, self._since_line = _Window(self._clock), _Window(self._clock)

    def take_up(self, steps_R: np.ndarray, step: int) -> None:
        """Notes the replicas that had failed before the `step` updates that a restored state has behind it."""
        for replica, reached in zip(self.cohort.replicas, jax.device_get(steps_R), strict=True):
            if reached < step:
                self._note(replica, int(reached) + 1, here=False)

    def add(self, step: int, metrics: Metrics) -> None:
        """Takes the metrics of update `step` (from 0), readable here, without waiting for them."""
        before, self._pending = self._pending, (step, metrics)
        self._take(before)

    def flush(self) -> None:
        """Waits for the metrics of the last step given."""
        pending, self._pending = self._pending, None
        self._take(pending)

    def _take(self, pending) -> None:
        if pending is None:
            return
        step, metrics = pending
        metrics = jax.device_get(metrics)
        for replica, alive in zip(self.cohort.replicas, metrics.alive, strict=True):
            if not alive and (replica.arm, replica.seed) not in self.failed:
                self._note(replica, step + 1, here=True)
        config = self.cohort.config
        index, replicas = stage_of(config, step)[0], len(self.cohort.replicas)
        stage = config.stages[index]
        for window in (self._window, self._since_line):
            window.add(metrics, replicas * stage.batch_size * stage.length, self._flops_of_stage[index])
        if (step + 1) % config.run.log_every == 0 or step + 1 == config.steps:
            self._write(step, metrics)
            self._window = _Window(self._clock)

    def _note(self, replica: Replica, step: int, here: bool) -> None:
        self.failed[replica.arm, replica.seed], self.failed_here = step, here
        self._log(f'arm {replica.arm}, seed {replica.seed}: not finite at step {step}; kept as it was before')
        self._writer.write({'kind': 'failed', 'arm': replica.arm, 'seed': replica.seed, 'step': step})

    def _write(self, step: int, metrics: Metrics) -> None:
        window, seconds = self._window, self._window.seconds
        means = window.means()
        config = self.cohort.config
        for i, replica in enumerate(self.cohort.replicas):
            self._writer.write(
                {
                    'kind': 'train',
                    'arm': replica.arm,
                    'seed': replica.seed,
                    'stage': stage_of(config, step)[0],
                    'step': step + 1,
                    # Fewer than log_every where the run was taken up again, or ends.
                    'steps': window.steps,
                    **{name: mean_R[i] for name, mean_R in means.items()},
                    'grad_norm': float(metrics.grad_norm[i]),
                    'learning_rate': learning_rate(replica.config, step),
                    'rate': rate_at(replica.config.masking, step, config.steps),
                    'seen_rows': rows_before(config, step)[0] + config.stages[stage_of(config, step)[0]].batch_size,
                    'cohort_tokens_per_second': window.tokens / seconds,
                    'cohort_targets_per_second': window.targets / seconds,
                    # Model FLOPs utilisation (Chowdhery et al. 2022, Appendix B), of all replicas together.
                    'mfu': window.flops / seconds / self._peak_flops if self._peak_flops else None,
                }
            )

    def line(self, step: int) -> str:
        """What a log without a progress bar says at update `step`, of the updates since it said so last."""
        window, self._since_line = self._since_line, _Window(self._clock)
        config, speed = self.cohort.config, window.tokens / window.seconds
        means_R = window.means().get('loss', np.zeros(len(self.cohort.replicas)))
        of_arm: dict[str, list[float]] = {}
        for replica, mean in zip(self.cohort.replicas, means_R, strict=True):
            if not replica.arm.endswith(CONTROL):
                of_arm.setdefault(replica.arm, []).append(mean)
        rates = {rate_at(replica.config.masking, step - 1, config.steps) for replica in self.cohort.replicas}
        parts = [
            f'cohort {self.cohort.name}: step {step:,} of {config.steps:,}',
            f'training loss{", each arm at its own rate:" if len(rates) > 1 else ""} '
            + ', '.join(f'{arm} {_number(np.mean(means))}' for arm, means in of_arm.items()),
            f'{speed:,.0f} tokens/s',
        ]
        if step < config.steps and speed:
            left = len(self.cohort.replicas) * tokens_after(config, step) / speed
            parts.append(f'about {whole_minutes(left)} left')
        return '; '.join(parts)


def _number(loss: float) -> str:
    return f'{loss:.3f}' if np.isfinite(loss) else 'not finite'


def whole_minutes(seconds: float) -> str:
    """A time in whole minutes, as a log says it."""
    minutes = round(seconds / 60)
    return f'{minutes // 60} h {minutes % 60} min' if minutes >= 60 else f'{minutes} min' if minutes else 'a minute'
