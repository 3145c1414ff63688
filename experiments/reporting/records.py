"""What one workdir holds: config.json and metrics.jsonl, as they are."""

import csv
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from data.errors import UserError
from train.metrics import read


class Row(NamedTuple):
    """One figure, as a line of results.csv; None where a column does not apply."""

    arm: str
    """Empty for a baseline by counting."""
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
    runs: list[dict] = field(default_factory=list)
    not_finite: list[str] = field(default_factory=list)
    """Figures that have no number."""

    @property
    def replicas(self) -> set[tuple[str, int]]:
        """(arm, seed) of every figure and failure."""
        return {(row.arm, row.seed) for row in self.rows if row.arm} | set(self.failed)


def read_records(workdir: Path) -> Records:
    """Reads a workdir.

    Raises:
      UserError: it is no ablation's workdir, or a file in it cannot be read.
    """
    records = Records(workdir, _read_config(workdir))
    if not (workdir / 'metrics.jsonl').is_file():
        raise UserError(f'{workdir} has no metrics.jsonl: start the ablation before its report')
    for record in read(workdir):
        kind = record.get('kind')
        if kind == 'figure':
            row = Row(**{name: record.get(name) for name in Row._fields})
            if row.value is None or not math.isfinite(row.value):
                records.not_finite.append(f'{row.metric} of arm {row.arm}, seed {row.seed}')
            else:
                records.rows.append(row)
        elif kind == 'example':
            records.examples.append(record)
        elif kind == 'failed':
            records.failed[record['arm'], record['seed']] = record['step']
        elif kind == 'run':
            records.runs.append(record)
    return records


def _read_config(workdir: Path) -> dict:
    path = workdir / 'config.json'
    if not workdir.is_dir():
        raise UserError(f'no folder {workdir}: name a workdir of experiments.ablate')
    try:
        config = json.loads(path.read_text(encoding='utf-8'))
    except FileNotFoundError:
        raise UserError(f'{workdir} has no config.json: name a workdir of experiments.ablate') from None
    except ValueError as error:
        raise UserError(f'{path} is no JSON ({error}): start the ablation again in a new --workdir') from None
    if not {'ablation', 'configs', 'cohorts'} <= set(config):
        raise UserError(f'{path} has no ablation in it: name a workdir of experiments.ablate')
    return config


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
