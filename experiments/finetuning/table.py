"""Results of a fine-tuning as a table and as rows."""

import csv
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.reporting import table as tables
from experiments.reporting.document import Table
from experiments.statistics import summary
from train.finetuning.task_data import SLICE, TaskData
from train.finetuning.tune import Result, best_points, chosen


def table(data: TaskData, results: Sequence[Result]) -> str:
    """The chosen point's scores over its seeds, beside those of the commonest label, and how it was chosen."""
    (best,) = best_points(results).values()
    rows = []
    here = chosen(results)
    for split in data.reported:
        trivial = data.majority(split)
        for metric in data.task.metrics:
            values = [result.scores[split][metric] for result in here]
            found = summary(values)
            interval = f'± {found.half_width:.2f}' if found.half_width is not None else found.reason
            rows.append(
                (
                    split,
                    metric.replace('_', ' '),
                    f'{np.mean(values):.2f}',
                    interval,
                    f'{np.median(values):.2f}',
                    f'{min(values):.2f} to {max(values):.2f}',
                    str(len(values)),
                    f'{trivial[metric]:.2f}',
                )
            )
    columns = ('split', 'metric', 'mean', 'CI95', 'median', 'range', 'seeds', 'commonest label')
    title = f'{data.task.name}, {len(data.task.examples("train")):,} training examples, percent. {best}.'
    parts = [tables.table(Table(title, columns, tuple(rows)))]
    parts.insert(0, title)
    points = list(dict.fromkeys(result.point for result in results))
    if len(points) > 1:
        parts.append(f'Chosen of {len(points)} points by {data.task.primary} on {_place(data)}.')
    elif data.chosen_by:
        parts.append(f'Choices were made by {data.task.primary} on {_place(data)}.')
    parts += [f'Seed {r.ft_seed} learnt nothing: {_split(r)}.' for r in here if any(r.degenerate.values())]
    parts += [f'Seed {r.ft_seed} failed at step {r.failed_at}.' for r in here if r.failed_at is not None]
    return '\n\n'.join(parts) + '\n'


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


def _place(data: TaskData) -> str:
    if data.chosen_by != SLICE:
        return f'{data.chosen_by}, which is also reported: these figures are too good'
    return f'{len(data.task.examples(SLICE)):,} examples held out of train'


def _split(result: Result) -> str:
    splits = ', '.join(split for split, is_so in result.degenerate.items() if is_so)
    return f'one answer always, or no better than the commonest label, on {splits}'
