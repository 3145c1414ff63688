"""Downstream tasks: the arms beside what needs no pretraining, both spreads, differences, runs that learnt nothing."""

from itertools import groupby

import numpy as np

from experiments.known_metrics import known
from experiments.reporting import comparisons
from experiments.reporting.document import Section, Table
from experiments.reporting.results import Measure, Results
from experiments.reporting.wording import (
    arm_names,
    counted_number,
    difference,
    fixed,
    listed,
    measure_name,
    spoken,
    tested,
)
from experiments.statistics import LEVEL, summary
from train.cohort import MAJORITY, RANDOM, REFERENCES, TFIDF

_ABOUT = {
    MAJORITY: 'the label that is commonest in training, always',
    TFIDF: 'with logistic regression on words, nothing tuned',
    RANDOM: 'the same encoder, fine-tuned from the weights that pretraining starts from',
}


def downstream_section(results: Results) -> Section | None:
    """A table for each task, differences from the baseline, and what is to be known of single runs."""
    absent = _left_out(results)
    if not results.downstream:
        return Section('Downstream tasks', [absent], brief=True) if absent else None
    by_task = {task: list(group) for task, group in groupby(_ordered(results), key=lambda measure: measure.task)}
    blocks: list[str | Table] = [
        f'After pretraining every replica is fine-tuned on each task {_fine_tunings(results)}, and intervals are over '
        'pretraining seeds. Whatever is chosen is chosen on a slice of train, never on what is reported.',
        *(_in_words(record) for record in results.tasks.values()),
        f'Without pretraining: {"; ".join(f"{name} ({_ABOUT[name]})" for name in _references(results))}.',
        *(_table(results, task, measures) for task, measures in by_task.items()),
        *_nothing_gained(results, by_task),
        *_differences(results),
        *_flags(results, by_task),
        *([absent] if absent else []),
    ]
    return Section('Downstream tasks', blocks, brief=True)


def _fine_tunings(results: Results) -> str:
    drawn = 'the head, the order of rows and, if there is any, dropout'
    found = (values for m in results.downstream for arm in results.arms for values in results.fine_tunings(m, arm))
    if max(map(len, found), default=0) > 1:
        return (
            f'with several fine-tuning seeds, the same for all arms; they draw {drawn}. A replica’s figure is the mean '
            'of its fine-tunings'
        )
    return (
        f'once, with one fine-tuning seed for all arms; it draws {drawn}. What it draws is the same in every '
        'replica, so no interval covers the chance in it'
    )


def _ordered(results: Results) -> list[Measure]:
    """Task by task as the config names them, each task's main metric first."""
    titles = list(results.tasks)

    def place(measure: Measure) -> tuple:
        mine = [t for t in titles if measure.task == t or measure.task.startswith(f'{t} ')]
        title = max(mine, key=len, default='')
        is_other = measure.metric != results.tasks.get(title, {}).get('primary')
        return titles.index(title) if title else len(titles), measure.task, is_other

    return sorted(results.downstream, key=place)


def _in_words(record: dict) -> str:
    counts = record['examples']
    parts = [f'{record["task"]}: {counts["train"]:,} examples to train on']
    parts += [f'{count:,} of {split.replace("_", " ")}' for split, count in counts.items() if split != 'train']
    points = record['points']
    how = points[0] if len(points) == 1 else f'the best of {len(points)} points for each arm'
    if record['features']:
        how += f'; the encoder frozen, its last {counted_number(record["features"], "layer")} read'
    chosen = f' Chosen by {known(record["primary"]).name} on the {record["chosen_by"]}.' if record['chosen_by'] else ''
    return f'{", ".join(parts)}; {how}.{chosen}'


def _references(results: Results) -> list[str]:
    measured = {row.arm for row in results.rows}
    return [name for name in REFERENCES if name in measured]


def _table(results: Results, task: str, measures: list[Measure]) -> Table:
    references = _references(results)
    rows = [
        _row(results, measures, arm, name)
        for arm, name in [*((name, name) for name in references), *zip(results.arms, arm_names(results), strict=True)]
    ]
    units = [known(measure.metric) for measure in measures]
    columns = [
        'arm',
        'n',
        *(f'{unit.name}, {unit.unit}' for unit in units),
        'sd over seeds',
        'sd over fine-tunings',
        'learnt nothing',
    ]
    caption = (
        f'{task}: mean ± half of CI95 over pretraining seeds; spreads of {units[0].name} over pretraining seeds, and '
        'over the fine-tunings of one of them'
    )
    return Table(caption, columns, rows, len(references), brief=True)


def _nothing_gained(results: Results, tasks: dict[str, list[Measure]]) -> list[str]:
    """Which tasks cannot tell the arms apart, since no arm does better than without pretraining."""
    lines = []
    for task, (main, *_) in tasks.items():
        without, *means = (
            summary(list(map(np.mean, results.fine_tunings(main, arm)))).mean for arm in (RANDOM, *results.arms)
        )
        reached = [mean for mean in means if mean is not None]
        if without is not None and reached and max(reached) <= without:
            lines.append(
                f'{task}: no arm is above the same encoder without pretraining, so this task says nothing for or '
                'against any of them.'
            )
    return lines


def _row(results: Results, measures: list[Measure], arm: str, name: str) -> list[str]:
    runs = results.fine_tunings(measures[0], arm)
    found = [summary(list(map(np.mean, results.fine_tunings(measure, arm)))) for measure in measures]
    if arm in (MAJORITY, TFIDF):
        values = [fixed(each.mean, known(m.metric).digits) for each, m in zip(found, measures, strict=True)]
        return [name, '', *values, '', '', '']
    cells = [spoken(each, known(m.metric), found[0].n) for each, m in zip(found, measures, strict=True)]
    digits = known(measures[0].metric).digits
    nothing = results.fine_tunings(Measure('degenerate', None, measures[0].task), arm)
    return [
        name,
        str(found[0].n),
        *cells,
        fixed(found[0].sd, digits),
        fixed(within(runs), digits),
        f'{sum(map(sum, nothing)):g} of {sum(map(len, nothing))}',
    ]


def within(runs: list[list[float]]) -> float | None:
    """Standard deviation over the fine-tunings of one replica, pooled over replicas; None with one each."""
    freedom = sum(len(values) - 1 for values in runs)
    if not freedom:
        return None
    return float(np.sqrt(sum(np.sum((values - np.mean(values)) ** 2) for values in runs) / freedom))


def _differences(results: Results) -> list[str | Table]:
    measures = [measure for measure in _ordered(results) if measure != results.primary]
    rows = [
        [measure_name(measure), results.arms[c.second], difference(c.paired, known(measure.metric)), tested(c.paired)]
        + [str(c.paired.ns[0])]
        for measure in measures
        for c in comparisons.differences(results, measure)
    ]
    if not rows:
        return []
    baseline = results.arms[results.baseline]
    return [
        f'Paired by pretraining seed, {counted_number(len(rows), "difference")}, none of them corrected for their '
        f'number: with no true difference anywhere about one in twenty would have p below {1 - LEVEL:.2f}.',
        Table(
            f'Downstream tasks: arm less {baseline}, points, uncorrected',
            ['measure', 'arm', 'paired t (95%)', 'p, uncorrected', 'pairs'],
            rows,
            brief=True,
        ),
    ]


def _flags(results: Results, tasks: dict[str, list[Measure]]) -> list[str]:
    """Runs that came to nothing. They stay in the means: to leave them out would flatter an arm."""
    lines = []
    for task in tasks:
        runs = [row for row in results.sound if (row.metric, row.task) == ('degenerate', task)]
        nothing = sum(row.value for row in runs)
        if nothing:
            lines.append(
                f'{task}: {nothing:g} of {counted_number(len(runs), "fine-tuning")} learnt nothing (one answer always, '
                'or in no metric above the commonest label). They stay in the means; results.csv names them.'
            )
        failed = [row for row in results.sound if (row.metric, row.task) == ('finetuning_failed', task)]
        if failed:
            names = '; '.join(
                f'arm {row.arm}, seed {row.seed}, fine-tuning seed {row.ft_seed} (at step {row.value:g})'
                for row in failed
            )
            lines.append(f'{task}: not finite, scored as they were before, and in the means: {names}.')
    return lines


def _left_out(results: Results) -> str:
    evaluation = results.config['configs'].get(results.ablation['baseline'], {}).get('evaluation', {})
    absent = [
        each['name'] or each['task']['task']
        for each in evaluation.get('tasks', [])
        if (each['name'] or each['task']['task']) not in results.tasks
    ]
    if not absent:
        return ''
    place = evaluation['data_dir']
    why = f'no result yet, or its files are not in {place}' if place else 'its files need --evaluation.data_dir'
    return f'Not evaluated: {listed(absent)} ({why}). The same command, with the folder, adds what is missing.'
