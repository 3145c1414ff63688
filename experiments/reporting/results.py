"""Workdirs as arrays: which arms and seeds there are, and each measure's values [arms, seeds]."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.reporting.pooling import check_poolable
from experiments.reporting.records import Row, read_records
from train.cohort import CONTROL

COSTS = ('flops', 'tokens', 'targets')
ORDER = ('loss', 'accuracy', 'own_loss', 'own_accuracy', 'likelihood', 'probe')
"""Measures in the order of the report; others follow by name."""


class Measure(NamedTuple):
    """What a figure measures."""

    metric: str
    eval_rate: float | None = None
    task: str | None = None


class Results:
    """The pooled figures of one ablation.

    A failed replica (one that stood still from some step on) gives no figure: it is named, not averaged.
    """

    def __init__(self, workdirs: Sequence[Path]):
        """Reads the workdirs.

        Raises:
          UserError: one cannot be read, or they do not belong together.
        """
        parts = [read_records(Path(workdir)) for workdir in workdirs]
        check_poolable(parts)
        self.workdirs = [part.workdir for part in parts]
        self.config: dict = parts[0].config
        self.ablation: dict = self.config['ablation']
        planned = {
            (arm, seed): (number, cohort['name'])
            for number, part in enumerate(parts)
            for cohort in part.config['cohorts']
            for arm, seed in cohort['replicas']
        }
        self.programs = {replica: program for replica, program in planned.items() if replica[0] in self.arms}
        """(arm, seed) of every planned replica of an arm -> the compiled program that trains it."""
        controls = [
            replica for replica in planned if replica[0] not in self.arms and self._arm(replica[0]) in self.arms
        ]
        self.controls = {
            (name, seed): self._arm(name)
            for name, seed in sorted(controls, key=lambda control: (self._place(control[0]), control[1]))
        }
        """(name, seed) of every planned A/A control of an arm -> the arm, its twin."""
        known = {replica for part in parts for replica in part.replicas} | self.controls.keys()
        self.failed = {replica: step for part in parts for replica, step in part.failed.items() if replica in known}
        """(arm, seed) of every failed replica, controls too -> the step from which it stood still."""
        self.runs = [part.runs for part in parts]
        """One list of 'run' records a workdir."""
        self.not_finite = list(
            dict.fromkeys(
                f'{metric} of arm {arm}, seed {seed}'
                for part in parts
                for metric, arm, seed in part.not_finite
                if (arm, seed) in known and (arm, seed) not in self.failed
            )
        )
        """Figures of sound replicas that have no number."""
        rows = {row[:-1]: row for part in parts for row in part.rows}.values()
        self.rows = sorted((row for row in rows if not row.arm or (row.arm, row.seed) in known), key=self._order)
        """All figures of the arms and their controls, of failed replicas too; those of tuning are left out."""
        self.examples = [example for part in parts for example in part.examples if example['arm'] in self.arms]

    @property
    def arms(self) -> list[str]:
        return list(self.ablation['arms'])

    @property
    def baseline(self) -> int:
        """Number of the arm that the others are compared with."""
        return self.arms.index(self.ablation['baseline'])

    @property
    def primary(self) -> Measure:
        """The measure fixed beforehand: at primary_rate where the metric is evaluated at rates."""
        metric, rate = self.ablation['primary'], self.ablation['primary_rate']
        unrated = [measure for measure in self.measures if measure.metric == metric and measure.eval_rate is None]
        return unrated[0] if unrated else Measure(metric, rate)

    @cached_property
    def seeds(self) -> list[int]:
        """Seeds of which there is any figure or failure, in order."""
        replicas = {(row.arm, row.seed) for row in self.rows} | self.failed.keys()
        return sorted({seed for arm, seed in replicas if arm in self.arms})

    @cached_property
    def finished(self) -> set[tuple[str, int]]:
        """(arm, seed) of every replica with a primary figure."""
        return {(arm, seed) for measure, arm, seed in self._final if measure == self.primary}

    @cached_property
    def measures(self) -> list[Measure]:
        """What was measured at the end of training, costs apart."""
        found = {measure for measure, arm, _ in self._final if measure.metric not in COSTS and arm in self.arms}
        return sorted(found, key=_measure_order)

    def rates(self, metric: str) -> list[float]:
        """Evaluation rates of a metric."""
        return [measure.eval_rate for measure in self.measures if measure.metric == metric]

    def values(self, measure: Measure) -> np.ndarray:
        """Float64 [arms, seeds]; NaN where there is no figure."""
        return np.array([[self.value(measure, arm, seed) for seed in self.seeds] for arm in self.arms]).reshape(
            len(self.arms), len(self.seeds)
        )

    def value(self, measure: Measure, arm: str, seed: int) -> float:
        """Of one replica, a control too; NaN if there is no figure. Several fine-tuning seeds are averaged."""
        return float(np.mean(self._final.get((measure, arm, seed), np.nan)))

    def own(self, metric: str) -> tuple[np.ndarray, list[float | None]]:
        """A metric at each arm's own rate: values [arms, seeds], and the rates."""
        values_AxS, rates = np.full((len(self.arms), len(self.seeds)), np.nan), [None] * len(self.arms)
        for measure in self.measures:
            if measure.metric == metric:
                here_AxS = self.values(measure)
                values_AxS = np.where(np.isfinite(here_AxS), here_AxS, values_AxS)
                for arm in np.flatnonzero(np.isfinite(here_AxS).any(axis=1)):
                    rates[arm] = measure.eval_rate
        return values_AxS, rates

    def counted(self, metric: str, rate: float | None = None, task: str | None = None) -> float | None:
        """A baseline by counting."""
        for row in self.rows:
            if not row.arm and row[4:7] == (metric, rate, task):
                return row.value
        return None

    def cost(self, metric: str) -> list[float | None]:
        """What one replica of each arm costs, as if it ran alone."""
        values_AxS = self.values(Measure(metric))
        return [float(np.nanmean(row)) if np.isfinite(row).any() else None for row in values_AxS]

    def curve(self, arm: str) -> tuple[list[int], np.ndarray]:
        """Steps and losses [points, seeds] of the learning curve; NaN where there is no figure."""
        points = {
            (row.step, row.seed): row.value for row in self._sound if (row.arm, row.metric) == (arm, 'curve_loss')
        }
        steps = sorted({step for step, _ in points})
        values = [[points.get((step, seed), np.nan) for seed in self.seeds] for step in steps]
        return steps, np.array(values).reshape(len(steps), len(self.seeds))

    def steps(self, arm: str) -> int:
        """Updates of a whole run of this arm, or of a control's."""
        return sum(stage['steps'] for stage in self.config['configs'][self._arm(arm)]['stages'])

    def csv_rows(self) -> list[Row]:
        """The rows of results.csv: figures of sound replicas, and one row `failed` for each that is not."""
        failures = [
            Row(arm, seed, None, step, 'failed', None, None, None, 1.0) for (arm, seed), step in self.failed.items()
        ]
        return self._sound + sorted(failures, key=self._order)

    @cached_property
    def _sound(self) -> list[Row]:
        return [row for row in self.rows if (row.arm, row.seed) not in self.failed]

    @cached_property
    def _final(self) -> dict[tuple[Measure, str, int], list[float]]:
        """Figures of finished replicas: (measure, arm, seed) -> one value, or one a fine-tuning seed."""
        found: dict[tuple[Measure, str, int], list[float]] = {}
        for row in self._sound:
            if row.arm and row.metric != 'curve_loss' and self._at_end(row):
                measure = Measure(row.metric, row.eval_rate, row.task)
                found.setdefault((measure, row.arm, row.seed), []).append(row.value)
        return found

    def _at_end(self, row: Row) -> bool:
        return row.ft_seed is not None or row.step is None or row.step >= self.steps(row.arm)

    def _arm(self, name: str) -> str:
        """The arm of this name, or the twin of the control of this name."""
        return name if name in self.arms else name.removesuffix(CONTROL)

    def _place(self, name: str) -> int:
        """Baselines by counting come first, then the arms, then their controls."""
        if not name:
            return -1
        return self.arms.index(self._arm(name)) + len(self.arms) * (name not in self.arms)

    def _order(self, row: Row) -> tuple:
        numbers = [-1 if number is None else number for number in (row.seed, row.step, row.ft_seed)]
        return (self._place(row.arm), *numbers, _measure_order(Measure(row.metric, row.eval_rate, row.task)))


def _measure_order(measure: Measure) -> tuple:
    place = ORDER.index(measure.metric) if measure.metric in ORDER else len(ORDER)
    return place, measure.metric, measure.task or '', measure.eval_rate or 0.0
