"""Results of a fine-tuning as a table and as rows."""

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.reporting import table as tables
from experiments.reporting.document import Table
from experiments.statistics import summary
from train.finetuning.task_data import SLICE, TaskData
from train.finetuning.tune import Result, best_points, chosen


def task_record(data: TaskData) -> dict[str, Any]:
    """What a table says of the task, for metrics.jsonl: kind 'task'."""
    task = data.task
    return {
        'kind': 'task',
        'task': task.name,
        'data': task.fingerprint,
        'metrics': list(task.metrics),
        'examples': {split: len(examples) for split, examples in task.splits.items()},
        'chosen_by': data.chosen_by,
        'commonest': {split: data.majority(split) for split in data.reported},
        'notes': list(task.notes),
    }


class Line(NamedTuple):
    """One metric of one split over the seeds of the chosen point, as text."""

    split: str
    metric: str
    mean: str
    interval: str
    median: str
    range: str
    seeds: str
    commonest: str


COLUMNS = ('split', 'metric', 'mean', 'CI95', 'median', 'range', 'seeds', 'commonest label')


def lines(about: Mapping[str, Any], results: Sequence[Result]) -> Iterator[Line]:
    """The chosen point's scores, in percent, beside those of the commonest label.

    Args:
      about: as `task_record` makes it.
    """
    here = chosen(results)
    for split, commonest in about['commonest'].items():
        for metric in about['metrics']:
            values = [result.scores[split][metric] for result in here]
            found = summary(values)
            interval = f'± {found.half_width:.2f}' if found.half_width is not None else found.reason
            yield Line(
                split,
                metric.replace('_', ' '),
                f'{np.mean(values):.2f}',
                interval,
                f'{np.median(values):.2f}',
                f'{min(values):.2f} to {max(values):.2f}',
                str(len(values)),
                f'{commonest[metric]:.2f}',
            )


def table(about: Mapping[str, Any], results: Sequence[Result]) -> str:
    """The chosen point's scores over its seeds, and how it was chosen."""
    (best,) = best_points(results).values()
    title = f'{about["task"]}, {about["examples"]["train"]:,} training examples, percent. {best}.'
    rows = tables.table(Table(title, list(COLUMNS), [list(line) for line in lines(about, results)]))
    return '\n\n'.join([title, rows, *remarks(about, results)]) + '\n'


def remarks(about: Mapping[str, Any], results: Sequence[Result]) -> list[str]:
    """How the point was chosen, and which seeds learnt nothing or failed."""
    points = list(dict.fromkeys(result.point for result in results))
    found, here = [], chosen(results)
    if len(points) > 1:
        found.append(f'Chosen of {len(points)} points by {about["metrics"][0]} on {_place(about)}.')
    elif about['chosen_by']:
        found.append(f'Choices were made by {about["metrics"][0]} on {_place(about)}.')
    found += [f'Seed {r.ft_seed} learnt nothing: {_splits(r)}.' for r in here if _degenerate(r)]
    return found + [f'Seed {r.ft_seed} failed at step {r.failed_at}.' for r in here if r.failed_at is not None]


def write_csv(path: Path, results: Sequence[Result]) -> None:
    """One row a figure, of all points."""
    best = best_points(results)
    part = path.with_suffix('.part')
    with open(part, 'w', newline='') as file:
        rows = csv.writer(file)
        rows.writerow(['arm', 'seed', 'task', 'ft_seed', 'point', 'chosen', 'epoch', 'split', 'metric', 'value'])
        for r in results:
            figures = [(split, metric, value) for split, each in r.scores.items() for metric, value in each.items()]
            figures += [('', 'selection', r.selection)] if r.selection is not None else []
            for split, metric, value in figures:
                is_best = int(best[r.arm] == r.point)
                rows.writerow([r.arm, r.seed, r.task, r.ft_seed, r.point, is_best, r.epoch, split, metric, value])
    os.replace(part, path)


def _place(about: Mapping[str, Any]) -> str:
    if about['chosen_by'] != SLICE:
        return f'{about["chosen_by"]}, which is also reported: these figures are too good'
    return f'{about["examples"][SLICE]:,} examples held out of train'


def _degenerate(result: Result) -> list[str]:
    """Splits that show that it learnt nothing. AdvGLUE's do not: a sound model may well be below chance on them."""
    return [split for split, is_so in result.degenerate.items() if is_so and not split.startswith('adversarial')]


def _splits(result: Result) -> str:
    return f'one answer always, or no better than the commonest label, on {", ".join(_degenerate(result))}'
