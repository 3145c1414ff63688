"""Every difference with its tests."""

from experiments.known_metrics import known
from experiments.reporting import comparisons
from experiments.reporting.controls import shown_controls
from experiments.reporting.document import Figure, Section, Table
from experiments.reporting.power import POWER, seeds_needed, smallest_difference
from experiments.reporting.results import Results
from experiments.reporting.wording import (
    DASH,
    TESTS,
    capital,
    counted_number,
    difference,
    fixed,
    measure_name,
    p_value,
    smallest_said,
    tested,
)
from experiments.statistics import LEVEL, Comparison, Test, exact_binomial

DIFFERENCES_PNG, PAIRS_PNG = 'differences.png', 'p_values.png'


def difference_section(results: Results) -> Section:
    """The primary measure both ways, corrected, and what these seeds could have found."""
    measure, baseline = results.primary, results.arms[results.baseline]
    found = comparisons.differences(results, measure)
    if not found:
        return Section('Differences from the baseline', ['One arm alone: nothing to compare.'])
    counts = TESTS[results.ablation['comparison']]
    return Section(
        f'Differences from arm {baseline} in {measure_name(measure)}',
        [
            *([_difference_figure(results)] if comparisons.any_difference(found) else []),
            f'Arm less baseline in {known(measure.metric).difference_unit}, with the 95% interval. Fixed beforehand: '
            f'the primary measure is {measure_name(measure)}, and {counts} counts; its p is corrected over the '
            f'{counted_number(len(found), "arm")} by Holm’s method. The other test stands beside it for comparison. '
            'Pairs are replicas of one seed: they share data order and noise, unless the arms differ in just these, '
            'and initial weights as far as the table below says, trained in one program or in two. Pairing pays as far '
            'as their outcomes correlate (r, from 3 pairs on).',
            _tests_table(results, found),
            f'What these seeds could have found: the smallest true difference that {counts} would find with '
            f'{POWER:.0%} chance (two-sided, {1 - LEVEL:.0%}, noncentral t, this spread taken as the true one, no '
            'correction), and the seeds an arm that half of it would need.'
            + (' Welch’s test finds a little less with few seeds.' if counts == TESTS['welch'] else ''),
            _power_table(results, found),
        ],
    )


def _difference_figure(results: Results) -> Figure:
    baseline = results.arms[results.baseline]
    return Figure(
        DIFFERENCES_PNG,
        f'Differences of each arm from {baseline}, with 95% intervals',
        f'Mean differences from arm {baseline} with 95% intervals'
        + (', one panel an evaluation rate' if results.primary.eval_rate is not None else '')
        + '. Black: the test that counts; grey: the other one.'
        + (' Diamonds: A/A controls, each less its twin, one a seed.' if shown_controls(results) else ''),
    )


def _tests_table(results: Results, found: list[Comparison]) -> Table:
    unit = known(results.primary.metric)
    columns = ['arm', 'paired t (95%)', 'p', 'Welch t (95%)', 'p', 'Holm p', 'pairs', 'r']
    rows = [[results.arms[c.second], *_test_cells(c, unit)] for c in found]
    for row, comparison in zip(rows, found, strict=True):
        row.insert(5, 'not tested' if comparison.holm_p is None else p_value(comparison.holm_p))
    caption = (
        f'{capital(measure_name(results.primary))}: arm less {results.arms[results.baseline]}, {unit.difference_unit}'
    )
    return Table(caption, columns, rows, brief=True)


def _test_cells(comparison: Comparison, unit) -> list[str]:
    paired, welch = comparison.paired, comparison.welch
    r = comparison.correlation
    return [
        difference(paired, unit),
        tested(paired),
        difference(welch, unit),
        tested(welch),
        str(paired.ns[0]),
        DASH if r is None else fixed(r, 2),
    ]


def _power_table(results: Results, found: list[Comparison]) -> Table:
    unit = known(results.primary.metric)
    baseline = results.arms[results.baseline]
    rows = []
    for comparison in found:
        arm = results.arms[comparison.second]
        together = comparisons.one_program(results, baseline, arm)
        same = comparisons.same_start(results, baseline, arm)
        rows.append(
            [
                arm,
                *_able(comparison.counting, unit),
                'one program' if together else 'two programs',
                'the same' if same else 'the same where structures agree',
            ]
        )
    caption = f'Smallest difference that these seeds could find ({POWER:.0%} power), {unit.difference_unit}'
    columns = ['arm', 'could find', 'seeds for half of it', 'trained in', 'initial weights']
    return Table(caption, columns, rows, brief=True)


def _able(test: Test, unit) -> list[str]:
    if test.reason:
        return [test.reason, DASH]
    able, possible = smallest_said(test, unit)
    if not possible:
        return ['none that is possible', DASH]
    needed = seeds_needed(smallest_difference(test.standard_error, test.df) / 2, test.spreads)
    return [able, 'over a million' if needed is None else str(needed)]


def secondary_section(results: Results) -> Section | None:
    """Every other measure, uncorrected."""
    measures = comparisons.secondary(results)
    if not measures or len(results.arms) == 1:
        return None
    rows: list[list[str]] = []
    for measure in measures:
        for comparison in comparisons.differences(results, measure):
            if any(results.lacks(results.arms[arm], measure.metric) for arm in (comparison.first, comparison.second)):
                continue
            cells = _test_cells(comparison, known(measure.metric))
            rows.append([measure_name(measure), results.arms[comparison.second], *cells])
    return Section(
        f'Differences from arm {results.arms[results.baseline]} in all else, uncorrected',
        [
            f'{counted_number(len(rows), "difference")}, none of them corrected for their number: with no true '
            f'difference anywhere about one in twenty would have p below {1 - LEVEL:.2f}. They suggest, they do not '
            'confirm. Figures at the arms’ own rates are left out, since they are not comparable.',
            Table(
                'All other measures, uncorrected',
                ['measure', 'arm', 'paired t (95%)', 'p, uncorrected', 'Welch t (95%)', 'p, uncorrected', 'pairs', 'r'],
                rows,
            ),
        ],
    )


def pairs_section(results: Results) -> Section | None:
    """All pairs of arms: what chance looks like when arms are alike."""
    if not results.ablation['all_pairs'] or len(results.arms) < 2:
        return None
    found = comparisons.pairs(results)
    ps = [c.counting.p for c in found if c.counting.p is not None]
    unit, measure = known(results.primary.metric), results.primary
    rows = [
        [
            f'{results.arms[c.second]} less {results.arms[c.first]}',
            difference(c.counting, unit),
            tested(c.counting),
            'not tested' if c.holm_p is None else p_value(c.holm_p),
        ]
        for c in found
    ]
    text = [
        f'{capital(measure_name(measure))}: {counted_number(len(found), "pair")} of {len(results.arms)} arms, '
        f'{len(ps)} of them tested ({TESTS[results.ablation["comparison"]]}).'
    ]
    if ps:
        below = sum(p < 1 - LEVEL for p in ps)
        low, high = exact_binomial(below, len(ps))
        text.append(
            f'{below} of {len(ps)} p values are below {1 - LEVEL:.2f}: {below / len(ps):.1%} (exact binomial 95% '
            f'interval {low:.1%} to {high:.1%}). If arms differ by chance alone, 5% are expected and p is spread '
            f'evenly over 0 to 1. The pairs are not independent, since each arm is in {len(results.arms) - 1} of them: '
            'the interval is narrower than it ought to be.'
        )
    figure = Figure(
        PAIRS_PNG, 'Histogram of the p values of all pairs', 'p of all pairs against an even spread (line).'
    )
    table = Table('Every pair', ['pair', 'difference (95%)', 'p', 'Holm p over pairs'], rows)
    return Section('All pairs of arms', [*text, *([figure] if ps else []), table], brief=True)
