"""What chance looks like: A/A controls less their twins, beside the arms less the baseline at the same seeds."""

import numpy as np

from experiments.known_metrics import Metric, known
from experiments.reporting.document import Section, Table
from experiments.reporting.results import Measure, Results
from experiments.reporting.wording import (
    DASH,
    counted_number,
    fixed,
    listed,
    measure_name,
    p_value,
    signed,
)
from experiments.statistics import paired


def controls_section(results: Results) -> Section | None:
    """Every control's difference from its twin in the primary measure; None where no control was planned."""
    if not results.controls:
        return None
    controls = shown_controls(results)
    blocks: list[str | Table] = [
        'Slots that the arms left empty were filled with A/A controls: an arm again, with the same seed and so with '
        'the same initial weights and data order, but with other masks. What separates a control from its twin is the '
        'chance of the masks alone; other initial weights and another data order would add to it. Controls are in no '
        'other table.',
        *(_in_words(results, name) for name in controls),
        *_compared(results, controls),
        *_left_out(results),
    ]
    if controls:
        blocks.append(_table(results, controls))
    return Section('What chance looks like', blocks, brief=True)


def shown_controls(results: Results) -> list[str]:
    """Names of the controls that have a difference in the primary measure."""
    return [name for name in _twins(results) if np.isfinite(control_differences(results, results.primary, name)).any()]


def control_differences(results: Results, measure: Measure, name: str) -> np.ndarray:
    """A control less its twin at each seed of which there are controls; NaN where either has no figure."""
    return _differences(results, measure, name, _twins(results)[name])


def _twins(results: Results) -> dict[str, str]:
    return {name: twin for (name, _), twin in results.controls.items()}


def _seeds(results: Results) -> list[int]:
    return sorted({seed for _, seed in results.controls})


def _values(results: Results, measure: Measure, arm: str) -> np.ndarray:
    return np.array([results.value(measure, arm, seed) for seed in _seeds(results)])


def _differences(results: Results, measure: Measure, arm: str, other: str) -> np.ndarray:
    return _values(results, measure, arm) - _values(results, measure, other)


def _others(results: Results) -> list[str]:
    return [arm for arm in results.arms if arm != results.ablation['baseline']]


def _in_words(results: Results, name: str) -> str:
    measure, twin = results.primary, _twins(results)[name]
    unit = known(measure.metric)
    test = paired(_values(results, measure, twin), _values(results, measure, name))
    found = control_differences(results, measure, name)
    head = f'{name} less {twin}, {measure_name(measure)}:'
    size = f'{signed(test.difference, unit.digits)} {unit.difference_unit}'.rstrip()
    if test.ns[0] == 1:
        seed = _seeds(results)[int(np.flatnonzero(np.isfinite(found))[0])]
        return f'{head} {size} at seed {seed} ({test.reason}: no interval, not tested).'
    evidence = f'{test.reason}: not tested'
    if not test.reason:
        low, high = (signed(end, unit.digits) for end in (test.low, test.high))
        evidence = f'95% interval {low} to {high}; paired t, p {p_value(test.p)}, outside Holm’s family'
    return f'{head} mean {size} over {test.ns[0]} pairs, which range from {_range(found, unit)} ({evidence}).'


def _compared(results: Results, controls: list[str]) -> list[str]:
    """How many of the arms' differences are larger than every control's."""
    measure, baseline = results.primary, results.ablation['baseline']
    unit = known(measure.metric)
    sizes = np.abs([_differences(results, measure, arm, baseline) for arm in _others(results)])
    number = int(np.isfinite(sizes).sum())
    if not controls or not number:
        return []
    chance = np.nanmax([np.abs(control_differences(results, measure, name)) for name in controls])
    return [
        f'Larger in size than any control’s ({fixed(chance, unit.digits)} at most): '
        f'{int((sizes > chance).sum())} of {counted_number(number, "difference")} of the arms from {baseline} at the '
        'same seeds. A few controls show the order of size that chance has here, not its bounds: they test no arm.'
    ]


def _left_out(results: Results) -> list[str]:
    reasons = []
    for (name, seed), twin in results.controls.items():
        if np.isfinite(results.value(results.primary, name, seed) - results.value(results.primary, twin, seed)):
            continue
        if (name, seed) in results.failed:
            reason = f'failed at step {results.failed[name, seed]}'
        elif (twin, seed) in results.failed:
            reason = f'its twin failed at step {results.failed[twin, seed]}'
        else:
            reason = 'no result yet'
        reasons.append(f'{name}, seed {seed} ({reason})')
    return [f'Without a difference: {listed(reasons)}.'] if reasons else []


def _table(results: Results, controls: list[str]) -> Table:
    twins, baseline, seeds = _twins(results), results.ablation['baseline'], _seeds(results)
    unit = known(results.primary.metric).difference_unit
    pairs = [(name, twins[name]) for name in controls] + [(arm, baseline) for arm in _others(results)]
    columns = ['difference', *(f'seed {seed}' for seed in seeds), *(['mean', 'range'] if len(seeds) > 1 else [])]
    caption = f'{measure_name(results.primary)} at the seeds of the controls, {unit}'.rstrip(', ')
    rows = [_row(results, arm, other) for arm, other in pairs]
    return Table(caption[0].upper() + caption[1:], columns, rows, len(controls), brief=True)


def _row(results: Results, arm: str, other: str) -> list[str]:
    unit = known(results.primary.metric)
    found = _differences(results, results.primary, arm, other)
    cells = [signed(value, unit.digits) if np.isfinite(value) else DASH for value in found]
    if len(found) > 1:
        n = int(np.isfinite(found).sum())
        cells.append(signed(np.nanmean(found), unit.digits) if n else DASH)
        cells.append(_range(found, unit) if n > 1 else DASH)
    return [f'{arm} less {other}', *cells]


def _range(values: np.ndarray, unit: Metric) -> str:
    return ' to '.join(signed(end, unit.digits) for end in (np.nanmin(values), np.nanmax(values)))
