"""What came out of the comparison that was fixed beforehand, in sentences."""

from experiments.known_metrics import known
from experiments.reporting import comparisons
from experiments.reporting.document import Section
from experiments.reporting.power import POWER
from experiments.reporting.results import Measure, Results
from experiments.reporting.wording import (
    TESTS,
    capital,
    difference,
    fixed,
    listed,
    measure_name,
    p_value,
    percent,
    signed,
    smallest_said,
)
from experiments.statistics import LEVEL, Comparison

LIKE_COMPUTE = 0.05
"""Share by which arms may differ in FLOPs and be said to have cost the same."""


def outcome_section(results: Results) -> Section:
    """One sentence or two for each arm, on the primary measure, and what is missing."""
    lines = _missing(results)
    if len(results.arms) == 1:
        lines.append('One arm alone: nothing to compare.')
    found = comparisons.differences(results, results.primary)
    lines += [_outcome(results, comparison, len(found)) for comparison in found]
    if any(comparison.holm_p is not None and comparison.holm_p >= 1 - LEVEL for comparison in found):
        lines.append('That no difference is shown is not evidence that there is none.')
    if results.looks and len(results.arms) > 1:
        seen = [f'{"seeds" if len(seeds) > 1 else "seed"} {listed(list(map(str, seeds)))}' for seeds in results.looks]
        lines.append(
            f'Seeds were added after a look at the results: reports were made on {"; on ".join(seen)}. p values and '
            'intervals take the number of seeds as fixed beforehand; where such a look decided that more were trained, '
            'chance shows a difference more often than they say.'
        )
    if results.late_arms:
        lines.append(
            f'Added after a look at the results: arm {listed(results.late_arms)}. p values and intervals take all '
            'arms as fixed beforehand; an arm chosen for what others showed deserves a workdir and seeds of its own.'
        )
    return Section('Outcome', lines + _terms(results), brief=True)


def _terms(results: Results) -> list[str]:
    """On what terms arms were compared, where they are not those that a reader takes for granted."""
    lines = []
    flops = dict(zip(results.arms, results.cost('flops'), strict=True))
    base = flops.get(results.ablation['baseline'])
    ratios = {arm: value / base for arm, value in flops.items() if base and value is not None}
    if unequal := [f'{arm} {ratio:.2f}' for arm, ratio in ratios.items() if abs(ratio - 1) > LIKE_COMPUTE]:
        lines.append(f'Arms did not cost the same: of the baseline’s training FLOPs, {listed(unequal)} times as many.')
    grid = results.config.get('grid')
    if grid and 'chosen' in grid:
        chosen = {arm: grid['chosen'][arm] for arm in results.arms}
        lines.append(
            f'Each arm at the value of {grid["field"]} that was best for it on another seed: '
            f'{listed([f"{arm} at {value:g}" for arm, value in chosen.items()])}.'
        )
        ends = min(grid['values']), max(grid['values'])
        if edge := [arm for arm, value in chosen.items() if value in ends]:
            lines.append(f'That is the edge of the grid for {listed(edge)}: a value beyond it may be better still.')
    return lines


def _missing(results: Results) -> list[str]:
    """What is left out of the figures, and why."""
    lines = []
    failed = [(arm, seed, step) for (arm, seed), step in sorted(results.failed.items()) if arm in results.arms]
    if failed:
        replicas = [f'arm {arm}, seed {seed} (at step {step})' for arm, seed, step in failed]
        lines.append(
            f'Failed, and left out of every figure: {"; ".join(replicas)}. Their loss or gradients were not finite and '
            'they stood still from there on. What is left flatters an arm that fails for some seeds.'
        )
    waiting: dict[str, list[str]] = {}
    for arm, seed in sorted(results.programs.keys() - results.finished - results.failed.keys()):
        waiting.setdefault(arm, []).append(str(seed))
    if waiting:
        replicas = '; '.join(f'arm {arm}, seed {listed(seeds)}' for arm, seeds in waiting.items())
        lines.append(f'Planned, and without a result yet: {replicas}.')
    if results.not_finite:
        lines.append(f'Not a finite number, and left out: {"; ".join(results.not_finite)}.')
    return lines


def _outcome(results: Results, comparison: Comparison, compared: int) -> str:
    arm, unit = results.arms[comparison.second], known(results.primary.metric)
    head = f'Arm {arm} against arm {results.arms[comparison.first]}, {measure_name(results.primary)}:'
    test = comparison.counting
    if test.reason:
        return f'{head} {difference(test, unit)}; not tested.'
    size = fixed(abs(test.difference), unit.digits)
    direction = 'lower' if test.difference < 0 else 'higher'
    ends = [f'{signed(end, unit.digits)}' for end in (test.low, test.high)]
    alone = ', uncorrected,' if compared > 1 else ''
    evidence = (
        f'95% interval of the difference{alone} {ends[0]} to {ends[1]}; {TESTS[test.kind]}, '
        f'Holm-corrected p {p_value(comparison.holm_p)}'
    )
    if comparison.holm_p < 1 - LEVEL:
        return f'{head} {size} {unit.difference_unit} {direction} ({evidence}).{_elsewhere(results, comparison)}'
    able, possible = smallest_said(test, unit)
    power = (
        f'a true difference of {able} would have been found {POWER:.0%} of the time'
        if possible
        else 'the seeds differ so much that hardly any true difference would have been found'
    )
    shown = 'no difference shown' + (f' once {compared} arms are corrected for' if compared > 1 else '')
    return (
        f'{head} {shown}; {size} {unit.difference_unit} {direction} ({evidence}). '
        f'{"Without the correction, " + power if compared > 1 else capital(power)}.{_elsewhere(results, comparison)}'
    )


def _elsewhere(results: Results, comparison: Comparison) -> str:
    """The same difference at the other evaluation rates, so that none of them is read alone."""
    metric, unit = results.primary.metric, known(results.primary.metric)
    found = []
    for rate in results.rates(metric):
        if rate == results.primary.eval_rate:
            continue
        others = comparisons.differences(results, Measure(metric, rate))
        test = next(other.counting for other in others if other.second == comparison.second)
        if test.difference is not None:
            found.append(f'{signed(test.difference, unit.digits)} at {percent(rate)}')
    return f' At the other rates: {listed(found)} (uncorrected).' if found else ''
