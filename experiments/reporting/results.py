"""Workdirs as arrays: which arms and seeds there are, and each measure's values [arms, seeds]."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.config_json import from_json
from experiments.known_metrics import METRICS, known
from experiments.reporting.pooling import check_poolable
from experiments.reporting.records import Row, read_records
from train.cohort import CONTROL, REFERENCES
from train.objectives.config import ObjectiveConfig

_PLACES = {metric: place for place, metric in enumerate(METRICS)}


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
        replicas = {replica for part in parts for replica in part.replicas} | self.controls.keys()
        self.failed = {replica: step for part in parts for replica, step in part.failed.items() if replica in replicas}
        """(arm, seed) of every failed replica, controls too -> the step from which it stood still."""
        self.sampled = {replica: records for part in parts for replica, records in part.sampled.items()}
        """(arm, seed) of every replica whose chosen tokens are replaced -> update -> its training record."""
        self.runs = [part.runs for part in parts]
        """One list of 'run' records a workdir."""
        self.tasks = {task: record for part in parts for task, record in part.tasks.items()}
        """Downstream task -> what is to be known of it: examples, hyperparameters, primary metric."""
        self.looks = [
            look['seeds']
            for part in parts
            for look in part.looks
            if {seed for _, seed in part.replicas} - set(look['seeds'])
        ]
        """Seeds of each report that was made before other seeds were added to its workdir."""
        seen = [look['arms'] for part in parts for look in part.looks]
        self.late_arms = [arm for arm in self.arms if any(arm not in arms for arms in seen)]
        """Arms that were added to a workdir after a report."""
        self.not_finite = list(
            dict.fromkeys(
                f'{metric} of arm {arm}, seed {seed}'
                for part in parts
                for metric, arm, seed in part.not_finite
                if (arm, seed) in replicas and (arm, seed) not in self.failed
            )
        )
        """Figures of sound replicas that have no number."""
        rows = {row[:-1]: row for part in parts for row in part.rows}.values()
        self.rows = sorted(
            (row for row in rows if row.arm in ('', *REFERENCES) or (row.arm, row.seed) in replicas), key=self._order
        )
        """All figures of the arms, their controls and references, of failed replicas too; not those of tuning."""
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
        metric, rate, task = (self.ablation.get(name) for name in ('primary', 'primary_rate', 'primary_task'))
        if task:
            return Measure(metric, None, task)
        if known(metric).kind == 'common':
            return Measure(metric, rate)
        found = [m for m in self.measures if m[:2] == (metric, None) and m not in self.downstream]
        return found[0] if found else Measure(metric, None)

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
        found = {measure for measure, arm, _ in self._final if arm in self.arms}
        return sorted((m for m in found if known(m.metric).kind not in ('cost', 'note')), key=_measure_order)

    @cached_property
    def downstream(self) -> list[Measure]:
        """Those of the measures that are of fine-tuned models: one value for each fine-tuning seed."""
        fine_tuned = {Measure(row.metric, row.eval_rate, row.task) for row in self.rows if row.ft_seed is not None}
        return [measure for measure in self.measures if measure in fine_tuned]

    def lacks(self, arm: str, metric: str) -> bool:
        """Whether an arm has no such figure by its nature: it has no head for it, or rows that it alone was trained on
        cannot be made again."""
        trained, needs = self.objective(arm), known(metric)
        without_head = (needs.needs_head and not trained.predicts) or (needs.needs_pairs and not trained.judges_pairs)
        return without_head or (needs.kind == 'own' and trained.replaces)

    def objective(self, arm: str) -> ObjectiveConfig:
        """What an arm was trained to do."""
        return from_json(ObjectiveConfig, self.config['configs'][arm].get('objective', {}))

    def rates(self, metric: str) -> list[float]:
        """Evaluation rates of a metric that is measured at several."""
        return [m.eval_rate for m in self.measures if m.metric == metric and m.eval_rate is not None]

    def values(self, measure: Measure) -> np.ndarray:
        """Float64 [arms, seeds]; NaN where there is no figure."""
        return np.array([[self.value(measure, arm, seed) for seed in self.seeds] for arm in self.arms]).reshape(
            len(self.arms), len(self.seeds)
        )

    def value(self, measure: Measure, arm: str, seed: int) -> float:
        """Of one replica, a control too; NaN if there is no figure. Several fine-tuning seeds are averaged."""
        return float(np.mean(self._final.get((measure, arm, seed), np.nan)))

    def fine_tunings(self, measure: Measure, arm: str) -> list[list[float]]:
        """For each pretraining seed of an arm or a reference that has any: the figure of each fine-tuning seed."""
        return [values for (found, name, _), values in self._final.items() if (found, name) == (measure, arm)]

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

    def curve(self, arm: str, metric: str = 'curve_loss') -> tuple[list[int], np.ndarray]:
        """Steps and values [points, seeds] of a learning curve; NaN where there is no figure."""
        points = {(row.step, row.seed): row.value for row in self.sound if (row.arm, row.metric) == (arm, metric)}
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
        return self.sound + sorted(failures, key=self._order)

    @cached_property
    def sound(self) -> list[Row]:
        """The rows of all but failed replicas."""
        return [row for row in self.rows if (row.arm, row.seed) not in self.failed]

    @cached_property
    def _final(self) -> dict[tuple[Measure, str, int], list[float]]:
        """Figures of finished replicas: (measure, arm, seed) -> one value, or one a fine-tuning seed."""
        found: dict[tuple[Measure, str, int], list[float]] = {}
        for row in self.sound:
            if row.arm and not row.metric.startswith('curve_') and self._at_end(row):
                measure = Measure(row.metric, row.eval_rate, row.task)
                found.setdefault((measure, row.arm, row.seed), []).append(row.value)
        return found

    def _at_end(self, row: Row) -> bool:
        return row.ft_seed is not None or row.step is None or row.step >= self.steps(row.arm)

    def _arm(self, name: str) -> str:
        """The arm of this name, or the twin of the control of this name."""
        return name if name in self.arms else name.removesuffix(CONTROL)

    def _place(self, name: str) -> int:
        """Baselines by counting come first, then references, the arms, and their controls."""
        if not name:
            return -1 - len(REFERENCES)
        if name in REFERENCES:
            return REFERENCES.index(name) - len(REFERENCES)
        return self.arms.index(self._arm(name)) + len(self.arms) * (name not in self.arms)

    def _order(self, row: Row) -> tuple:
        numbers = [-1 if number is None else number for number in (row.seed, row.step, row.ft_seed)]
        return (self._place(row.arm), *numbers, _measure_order(Measure(row.metric, row.eval_rate, row.task)))


def _measure_order(measure: Measure) -> tuple:
    place = _PLACES.get(measure.metric, len(_PLACES))
    return place, measure.metric, measure.task or '', measure.eval_rate or 0.0
