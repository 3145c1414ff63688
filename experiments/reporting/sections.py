"""The report from top to bottom."""

from experiments.known_metrics import known
from experiments.reporting import comparisons
from experiments.reporting.compute import compute_section
from experiments.reporting.controls import controls_section
from experiments.reporting.costs import cost_section
from experiments.reporting.detection import detection_section
from experiments.reporting.differences import difference_section, pairs_section, secondary_section
from experiments.reporting.document import Figure, Section, Table
from experiments.reporting.downstream import downstream_section
from experiments.reporting.losses import accuracy_section, loss_section
from experiments.reporting.outcome import outcome_section
from experiments.reporting.rates import rates_section
from experiments.reporting.results import Results
from experiments.reporting.wording import (
    DASH,
    TESTS,
    arm_names,
    counted_number,
    fixed,
    listed,
    measure_name,
    percent,
    spoken,
)
from experiments.statistics import LEVEL, summary

CURVES_PNG = 'curves.png'


def all_sections(results: Results) -> list[Section]:
    """Every section that applies, in order."""
    makers = (
        outcome_section,
        loss_section,
        difference_section,
        rates_section,
        downstream_section,
        controls_section,
        pairs_section,
        accuracy_section,
        measures_section,
        detection_section,
        secondary_section,
        published_section,
        curve_section,
        compute_section,
        grid_section,
        setup_section,
        config_section,
        cost_section,
        reading_section,
    )
    return [section for section in (make(results) for make in makers) if section]


def headline(results: Results) -> str:
    """One line: how many arms and seeds, at which scale, compared how."""
    ablation = results.ablation
    workdirs = [str(workdir) for workdir in results.workdirs]
    return (
        f'{counted_number(len(results.arms), "arm")}, {counted_number(len(results.seeds), "seed")} '
        f'({", ".join(map(str, results.seeds)) or "none yet"}), scale {results.config["scale"]}. '
        f'Baseline {ablation["baseline"]}; primary measure {measure_name(results.primary)}, '
        f'{TESTS[ablation["comparison"]]}.' + (f' Pooled from {listed(workdirs)}.' if len(workdirs) > 1 else '')
    )


def measures_section(results: Results) -> Section | None:
    """Pseudo-log-likelihood, probe and whatever else was measured."""
    told = [m for m in results.measures if known(m.metric).kind in ('common', 'own')] + results.downstream
    measures = [measure for measure in results.measures if measure not in told]
    if not measures:
        return None
    lines = [results.counted('probe_majority', None, m.task) if m.metric == 'probe' else None for m in measures]
    digits = [known(measure.metric).digits for measure in measures]
    reference = ['commonest label', '', *(fixed(line, d) for line, d in zip(lines, digits, strict=True))]
    columns_MxA = [[summary(values) for values in results.values(measure)] for measure in measures]
    rows = []
    for arm, name in enumerate(arm_names(results)):
        n = max(column[arm].n for column in columns_MxA)
        cells = [
            '' if results.lacks(results.arms[arm], m.metric) else spoken(column[arm], known(m.metric), n)
            for column, m in zip(columns_MxA, measures, strict=True)
        ]
        rows.append([name, str(n), *cells])
    with_reference = any(value is not None for value in lines)
    metrics = {measure.metric for measure in measures}
    text = ['Mean over seeds ± half the width of the 95% interval.']
    if 'likelihood' in metrics:
        text.append(
            'The pseudo-log-likelihood hides one word at a time, all pieces of it, and sums their log probabilities: '
            'higher is closer to the text. Nearly everything is left to read, so it is a low-rate measure and leans '
            'towards arms trained at low rates, and towards those trained to guess whole words.'
        )
    if 'probe' in metrics:
        text.append(
            'The probe is a logistic regression on frozen, mean-pooled states, learnt on some documents held out of '
            'pretraining and tested on others. An arm at the share of the commonest label has learnt nothing of it.'
        )
    if metrics & {'nsp_accuracy', 'sop_accuracy'}:
        text.append(
            'NSP and SOP accuracy are of held-out pairs of segments, each shown as it stands in the text and once more '
            'with a segment of another document second (NSP) or its two segments in the other order (SOP): guessing '
            'makes 50%, though segments’ lengths tell a little. Rows with a part of a sentence, one too long for them, '
            'are left out. Both are asked of every arm that judges pairs, whichever it was trained on.'
        )
    columns = ['arm', 'n', *(_with_unit(measure_name(m), known(m.metric).unit) for m in measures)]
    table = Table('Other measures', columns, [reference] * with_reference + rows, int(with_reference))
    return Section('Other measures', [*text, table])


def _with_unit(name: str, unit: str) -> str:
    return f'{name}, {unit}' if unit else name


def published_section(results: Results) -> Section | None:
    """The paper's figures beside ours, a table for each source."""
    published = results.ablation['published']
    if not published:
        return None
    blocks: list[str | Table] = [
        'Published figures are from another scale: other models, data and budgets, and other measures, mostly of one '
        'pretraining run a setting. They stand here for the direction of an effect, not as targets, and what depends '
        'on size there need not show at ours. Each table names its source.'
    ]
    for source in dict.fromkeys(figure['source'] for figure in published):
        figures = {(f['arm'], f['metric']): f['value'] for f in published if f['source'] == source}
        metrics = list(dict.fromkeys(metric for _, metric in figures))
        digits = max(len(str(value).partition('.')[2]) for value in figures.values())
        arms = list(dict.fromkeys([*results.arms, *(arm for arm, _ in figures)]))
        # Ours on the very tasks of the table; on none of them, the primary measure.
        shown = [m for m in results.downstream if m.task in metrics] or [results.primary]
        ours = [dict(zip(results.arms, map(summary, results.values(measure)), strict=True)) for measure in shown]
        rows = [
            [
                arm,
                *(
                    spoken(each[arm], known(m.metric), each[arm].n) if arm in each else 'not run here'
                    for each, m in zip(ours, shown, strict=True)
                ),
                *(fixed(figures.get((arm, metric)), digits) for metric in metrics),
            ]
            for arm in arms
        ]
        caption = f'Ours beside published figures from another scale: {source}'
        blocks.append(Table(caption, ['arm', *(f'ours: {measure_name(m)}' for m in shown), *metrics], rows))
    return Section('Published figures, from another scale', blocks)


def curve_section(results: Results) -> Section | None:
    """Learning curves."""
    if not any(len(results.curve(arm)[0]) for arm in results.arms):
        return None
    rate = next(row.eval_rate for row in results.rows if row.metric == 'curve_loss')
    caption = (
        f'Loss at {percent(rate)} on a sample of the held-out rows, at the length of the last stage throughout (until '
        'it begins, learned positions that no earlier stage has are untrained): mean over seeds, the band from the '
        'lowest seed to the highest. Points of different arms are comparable, points and the tables above are not '
        '(other rows); the unigram entropy is that of the whole held-out text.'
    )
    return Section('Learning curves', [Figure(CURVES_PNG, f'Loss at {percent(rate)} during training, by arm', caption)])


def grid_section(results: Results) -> Section | None:
    """The value at which each arm is reported, and what it was chosen from."""
    grid = results.config.get('grid')
    if not grid or 'chosen' not in grid:
        return None
    values = [f'{value:g}' for value in grid['values']]
    rows = []
    for arm in results.arms:
        scores = grid['scores'].get(arm, {})
        cells = [fixed(scores[v], known(results.primary.metric).digits) if v in scores else 'failed' for v in values]
        rows.append([arm, *cells, f'{grid["chosen"][arm]:g}'])
    return Section(
        'Tuning',
        [
            f'Every arm was trained at each value of {grid["field"]} with seed {grid["tuning_seed"]}, which is in no '
            f'other table, and is reported at the value with the best {measure_name(results.primary)} there.',
            Table(
                'Scores on the tuning seed',
                ['arm', *(f'{grid["field"].split(".")[-1]} {value}' for value in values), 'chosen'],
                rows,
            ),
        ],
    )


def setup_section(results: Results) -> Section:
    """What was trained, and how: the baseline's text, model, objective, masks, optimizer and stages."""
    config = results.config['configs'][results.arms[results.baseline]]
    parts = {part: config[part] for part in ('data', 'model', 'objective', 'masking', 'optimizer') if part in config}
    parts |= {f'stage {number}': stage for number, stage in enumerate(config['stages'], 1)}
    return Section(
        'Setup',
        [
            'The resolved config of the baseline; the other arms differ from it in the fields of the next table alone. '
            'config.json holds all of it.',
            *(f'{part}: {_fields(values)}.' for part, values in parts.items()),
        ],
    )


def _fields(values: dict) -> str:
    return ', '.join(f'{name} {_shown(value)}' for name, value in values.items() if value not in ('', None))


def config_section(results: Results) -> Section:
    """The fields in which the arms differ."""
    differing = comparisons.config_differences(results)
    if not differing:
        return Section('How the arms differ', ['No two arms differ in any field.'])
    rows = [[name, *map(_shown, values)] for name, values in differing.items()]
    return Section(
        'How the arms differ',
        [
            'Every field of the resolved configs in which any two arms differ; all else is equal.',
            Table('Fields that differ', ['field', *results.arms], rows),
        ],
    )


def _shown(value) -> str:
    if isinstance(value, list):
        return '(' + ', '.join(map(_shown, value)) + ')'
    return DASH if value is None else str(value)


def reading_section(results: Results) -> Section:
    """What the intervals cover, and what this was made with."""
    n = len(results.seeds)
    lines = [
        f'Intervals are two-sided {LEVEL:.0%} t intervals over seeds (n − 1 degrees of freedom; for Welch’s test '
        'Satterthwaite’s). They cover what changes with the seed: initial weights, data order and noise. They do not '
        'cover the held-out sample or its masks, which are the same for every arm and seed: on other text all arms '
        'would move, mostly together.',
    ]
    if 1 < n < 5:
        lines.append(f'With {n} seeds intervals are wide and rest on the seeds’ outcomes being near normal.')
    versions = next((run['versions'] for runs in results.runs for run in runs if run.get('versions')), {})
    lines.append('Command: ' + str(results.config.get('command')))
    if versions:
        lines.append('Made with ' + ', '.join(f'{name} {version}' for name, version in versions.items()) + '.')
    return Section('How to read this', lines)
