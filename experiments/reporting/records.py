"""What one workdir holds: config.json and metrics.jsonl, as they are."""

import csv
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from data.errors import UserError
from experiments.workdir import read_workdir
from train.metrics import read


class Row(NamedTuple):
    """One figure, as a line of results.csv; None where a column does not apply."""

    arm: str
    """Empty for a baseline by counting; one of train.cohort.REFERENCES for what is measured without pretraining."""
    seed: int | None
    stage: int | None
    step: int | None
    metric: str
    eval_rate: float | None
    task: str | None
    ft_seed: int | None
    value: float


@dataclass
class Records:
    """A workdir, read."""

    workdir: Path
    config: dict
    rows: list[Row] = field(default_factory=list)
    """Finite figures."""
    examples: list[dict] = field(default_factory=list)
    failed: dict[tuple[str, int], int] = field(default_factory=dict)
    """(arm, seed) -> the step from which the replica stood still."""
    sampled: dict[tuple[str, int], dict[int, dict]] = field(default_factory=dict)
    """(arm, seed) -> update -> the training record that ends there, of replicas whose chosen tokens are replaced."""
    runs: list[dict] = field(default_factory=list)
    tasks: dict[str, dict] = field(default_factory=dict)
    """Downstream task -> what is to be known of it."""
    looks: list[dict] = field(default_factory=list)
    """`seeds` and `arms` of each report that was made here while the ablation was run, in order."""
    not_finite: list[tuple[str, str, int]] = field(default_factory=list)
    """(metric, arm, seed) of figures that have no number."""

    @property
    def replicas(self) -> set[tuple[str, int]]:
        """(arm, seed) of every figure and failure of the ablation's arms; those of tuning have other names."""
        found = {(row.arm, row.seed) for row in self.rows} | set(self.failed)
        return {replica for replica in found if replica[0] in self.config['ablation']['arms']}


def read_records(workdir: Path) -> Records:
    """Reads a workdir.

    Raises:
      UserError: it is no workdir, nothing was trained in it yet, or a file in it cannot be read.
    """
    records = Records(workdir, read_workdir(workdir).record)
    if records.config['ablation']['baseline'] not in records.config['ablation']['arms']:
        raise UserError(f'{workdir} has no trained arm yet: start the ablation again, it goes on where it stopped')
    if not (workdir / 'metrics.jsonl').is_file():
        raise UserError(f'{workdir} has no metrics.jsonl: start the ablation again, it goes on where it stopped')
    for record in read(workdir):
        kind = record.get('kind')
        if kind == 'figure':
            row = Row(**{name: record.get(name) for name in Row._fields})
            if row.value is None or not math.isfinite(row.value):
                records.not_finite.append((row.metric, row.arm, row.seed))
            else:
                records.rows.append(row._replace(value=float(row.value)))
        elif kind == 'example':
            records.examples.append(record)
        elif kind == 'failed':
            records.failed[record['arm'], record['seed']] = record['step']
        elif kind == 'train' and not {'generator_accuracy', 'fake_share'}.isdisjoint(record):
            records.sampled.setdefault((record['arm'], record['seed']), {})[record['step']] = record
        elif kind == 'run':
            records.runs.append(record)
        elif kind == 'report':
            records.looks.append(record)
        elif kind == 'task':
            records.tasks[record['task']] = record
    return records


def write_csv(rows: list[Row], path: Path) -> None:
    """results.csv: numbers in full, nothing where a column does not apply."""
    with path.open('w', newline='', encoding='utf-8') as file:
        writer = csv.writer(file, lineterminator='\n')
        writer.writerow(Row._fields)
        for row in rows:
            writer.writerow(['' if cell is None else repr(cell) if isinstance(cell, float) else cell for cell in row])


def read_csv(path: Path) -> list[Row]:
    """The rows that `write_csv` wrote."""
    kinds = {'arm': str, 'metric': str, 'task': str, 'eval_rate': float, 'value': float}
    with path.open(newline='', encoding='utf-8') as file:
        return [
            Row(
                **{
                    name: kinds.get(name, int)(cell) if cell or name in ('arm', 'metric') else None
                    for name, cell in line.items()
                }
            )
            for line in csv.DictReader(file)
        ]
