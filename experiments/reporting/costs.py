"""What the arms cost: counted for each as if it ran alone, and the wall time that they shared."""

from experiments.known_metrics import of_kind
from experiments.reporting.document import Section, Table
from experiments.reporting.results import Results
from experiments.reporting.wording import DASH, arm_names, counted_number, duration, listed, quantity


def cost_section(results: Results) -> Section:
    """FLOPs, tokens and targets of one replica of each arm, and the wall time of all."""
    flops, tokens, targets = (results.cost(metric) for metric in of_kind('cost'))
    base = flops[results.baseline]
    rows = [
        [
            name,
            quantity(flops[arm], 'FLOP'),
            DASH if not base or flops[arm] is None else f'{flops[arm] / base:.2f}',
            quantity(tokens[arm]),
            quantity(targets[arm]),
            DASH if not tokens[arm] or targets[arm] is None else f'{targets[arm] / tokens[arm]:.1%}',
        ]
        for arm, name in enumerate(arm_names(results))
    ]
    columns = ['arm', 'compute', 'of baseline', 'tokens', 'targets', 'targets a token']
    return Section(
        'Cost',
        [
            'Of one replica, counted analytically as if it ran alone: training FLOPs (forward and backward) with the '
            'target slots that the arm’s own rate needs (the highest of its schedule; they come in eights), tokens '
            'read with their [CLS] and [SEP], and targets scored. A row has a whole number of targets, the rate times '
            'its maskable tokens, rounded: in short rows a little more or less than the rate. Rows of sentences are '
            'counted as if they were full: their tokens and targets are those of padding, too.',
            Table('Cost of one replica', columns, rows),
            *_wall_time(results),
        ],
    )


def _wall_time(results: Results) -> list[str]:
    lines = []
    for workdir, runs in zip(results.workdirs, results.runs, strict=True):
        starts, ends = ([run for run in runs if run['event'] == event] for event in ('start', 'end'))
        if not starts:
            continue
        text = f'{workdir}: ' if len(results.workdirs) > 1 else ''
        if ends:
            whole, training = (duration(sum(run[part] for run in ends)) for part in ('seconds', 'training'))
            tuning = sum(run.get('fine_tuning', 0.0) for run in ends)
            parts = f'training {training}' + (f' and fine-tuning {duration(tuning)}' if tuning >= 1 else '')
            text += f'Wall time {whole}, of which {parts}, shared by all replicas: it has no split by arm. '
        text += f'Machine: {listed(list(dict.fromkeys(map(_host, starts))))}.'
        if len(starts) > len(ends):
            cut = counted_number(len(starts) - len(ends), 'start')
            text += f' Not counted: {cut} without an end on record (stopped, killed or still running).'
        lines.append(text)
    return lines


def _host(start: dict) -> str:
    return start['host'] + (f', {start["date"]}' if 'date' in start else '')  # records of before 2026-12 have no date
