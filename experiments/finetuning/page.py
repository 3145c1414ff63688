"""Fine-tunings as one page of Markdown, out of their workdirs alone: what came of each, and how to do it again."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.errors import UserError
from experiments.finetuning.table import Line, lines, remarks
from experiments.finetuning.workdir import read_finetuning
from experiments.reporting import table as tables
from experiments.reporting.document import Section, Table
from experiments.reporting.wording import counted_number, duration, listed
from train.finetuning.tune import Result, best_points, from_records
from train.metrics import read

LEAD = (
    'Made from the workdirs of `experiments.finetune`; no figure is typed by hand. Figures are in percent, of the '
    'weights that each fine-tuning ends with; intervals are over fine-tuning seeds of the one encoder, which draw the '
    'head, the order of rows and dropout. Commonest label: that of train always (of numbers their mean, of tags O, of '
    'answers none).'
)


@dataclass(frozen=True)
class Finetuning:
    """A finished workdir."""

    name: str
    asked: dict[str, Any]
    task: dict[str, Any]
    """The record of `experiments.finetuning.table.task_record`."""
    ends: list[dict[str, Any]]
    """A record for each program: when, where, in what time."""
    results: list[Result]

    @classmethod
    def read(cls, path: Path) -> 'Finetuning':
        """Reads a workdir.

        Raises:
          UserError: it holds no fine-tuning, or one that has not finished.
        """
        asked, records = read_finetuning(path), read(path)
        of_kind = {kind: [record for record in records if record['kind'] == kind] for kind in ('task', 'run')}
        if not (path / 'table.md').exists() or not of_kind['task']:
            raise UserError(f'{path} has not finished: give its experiments.finetune command again')
        results = list(itertools.chain(*from_records(records).values()))
        return cls(path.resolve().name, asked, of_kind['task'][-1], of_kind['run'], results)


def page(title: str, workdirs: Sequence[Path]) -> str:
    """The page; fine-tunings of one encoder stand together, in the order given.

    Raises:
      UserError: a workdir cannot be read.
    """
    held: dict[str, list[Finetuning]] = {}
    for path in workdirs:
        found = Finetuning.read(path)
        held.setdefault(found.asked['encoder']['weights'], []).append(found)
    return tables.markdown(title, [LEAD], [_section(each) for each in held.values()])


def _section(held: list[Finetuning]) -> Section:
    encoder = held[0].asked['encoder']
    columns = ['run', *Line._fields[:2], 'examples', 'mean', 'CI95', 'range', 'seeds', 'commonest label']
    rows = [
        [each.name, line.split, line.metric, f'{each.task["examples"][line.split]:,}', line.mean, line.interval,
         line.range, line.seeds, line.commonest]
        for each in held for line in lines(each.task, each.results)
    ]  # fmt: skip
    blocks = [_about(encoder), Table('Scores, percent', columns, rows)]
    for each in held:
        blocks += [f'**{each.name}.** {" ".join(_how(each))}', f'```\n{each.asked["command"]}\n```']
    return Section(_heading(encoder), blocks)


def _heading(encoder: dict[str, Any]) -> str:
    if 'loss' not in encoder:
        return encoder['arm']
    return f'{encoder["arm"]}, seed {encoder["seed"]}, of {encoder["pretraining"]}'


def _about(encoder: dict[str, Any]) -> str:
    layers = counted_number(encoder['layers'], 'layer')
    size = f'{layers}, width {encoder["width"]}, {encoder["parameters"]:,} parameters.'
    if 'loss' not in encoder:
        return f'Weights as they were read: {size}'
    losses = [f'{value:.3f} at {100 * float(rate):g}%' for rate, value in encoder['loss'].items()]
    loss = f' Loss on held-out text, nats a token: {listed(losses)}.' if losses else ''
    return f'Pretrained here, scale {encoder["scale"]}, {encoder["step"]:,} steps: {size}{loss}'


def _how(each: Finetuning) -> Iterator[str]:
    """What was trained on, with which hyperparameters, when, where, and what is to be known."""
    (best,) = best_points(each.results).values()
    task = each.task
    yield f'Task {task["task"]}, {task["examples"]["train"]:,} examples to train on. {best[0].upper()}{best[1:]}.'
    yield from remarks(task, each.results)
    dates, hosts = ([*dict.fromkeys(end[name] for end in each.ends)] for name in ('date', 'host'))
    times = [end['seconds'] for end in each.ends]
    yield f'{listed(dates)}, {listed(hosts)}, {"in several starts" if None in times else duration(sum(times))}.'
    yield from (f'{note}.' for note in task['notes'])
