"""Names of measures and how numbers are written. A missing number is written as its reason, never as nan."""

from experiments.known_metrics import Metric, known
from experiments.reporting.power import smallest_difference
from experiments.reporting.results import Measure, Results
from experiments.statistics import Summary, Test

TESTS = {'paired': 'paired t', 'welch': 'Welch t'}

DASH = '–'


def arm_names(results: Results) -> list[str]:
    """The arms, the baseline marked."""
    return [f'{arm} (baseline)' if i == results.baseline else arm for i, arm in enumerate(results.arms)]


def without_head(results: Results) -> list[str]:
    """A sentence on the arms that have no loss, if there are any."""
    names = [arm for arm in results.arms if results.lacks(arm, 'loss')]
    if not names:
        return []
    have = 'has' if len(names) == 1 else 'have'
    return [
        f'Arm {listed(names)} {have} no MLM head, which the objective does not train: no loss, accuracy or likelihood '
        'on masked tokens. What compares such arms is the probe and the downstream tasks.'
    ]


def never_masked(results: Results) -> list[str]:
    """A sentence on the arms whose losses are of an input that they were not trained on, if there are any."""
    names = [arm for arm in results.arms if results.objective(arm).replaces and not results.lacks(arm, 'loss')]
    if not names:
        return []
    return [
        f'Arm {listed(names)} read samples of a generator in training where others read [MASK]. Losses and likelihood '
        'are measured under [MASK], which they never met: theirs say little of what they learnt.'
    ]


def other_units(results: Results) -> list[str]:
    """A sentence on the arms that mask other units than those under which all are measured, if there are any."""
    units = {arm: results.config['configs'][arm]['masking'].get('unit', 'token') for arm in results.arms}
    names = [arm for arm, unit in units.items() if unit != 'token' and not results.lacks(arm, 'loss')]
    if not names:
        return []
    return [
        'Single tokens are masked here, whatever an arm was trained on, which favours arms trained so: arm '
        f'{listed(names)} hid whole words or more at a time.'
    ]


def measure_name(measure: Measure) -> str:
    """Such as 'loss at 15%' or 'probe accuracy (century)'."""
    name = known(measure.metric).name
    name += f' ({measure.task})' if measure.task else ''
    return name + (f' at {percent(measure.eval_rate)}' if measure.eval_rate is not None else '')


def percent(rate: float) -> str:
    return f'{round(100 * rate, 6):g}%'


def fixed(value: float | None, digits: int) -> str:
    """A number with so many decimals; no negative zero."""
    if value is None:
        return DASH
    text = f'{value:.{digits}f}'
    return text.lstrip('-') if float(text) == 0 else text


def signed(value: float, digits: int) -> str:
    text = fixed(value, digits)
    return text if text.startswith('-') or float(text) == 0 else f'+{text}'


def small(value: float, digits: int) -> str:
    """A positive number, written as below the last decimal rather than as 0."""
    text = fixed(value, digits)
    return text if float(text) or not value else f'<{10**-digits:.{digits}f}'


def p_value(p: float | None) -> str:
    return DASH if p is None else small(p, 3)


def spoken(summary: Summary, unit: Metric, n: int) -> str:
    """'4.123 ± 0.045', or why there is no interval; the number of seeds where it is not `n`."""
    if summary.mean is None:
        return summary.reason
    text = fixed(summary.mean, unit.digits)
    if summary.half_width is None:
        text += f' ({summary.reason})'
    else:
        text += f' ± {small(summary.half_width, unit.digits)}'
    return text if summary.n in (n, 1) else f'{text} (n {summary.n})'


def difference(test: Test, unit: Metric) -> str:
    """'-0.123 (-0.200 to -0.046)', or why there is no interval."""
    if test.difference is None:
        return test.reason
    text = signed(test.difference, unit.digits)
    if test.reason:
        return f'{text} ({test.reason})'
    low, high = (signed(end, unit.digits) for end in (test.low, test.high))
    return f'{text} ({low} to {high})'


def tested(test: Test) -> str:
    """p, or that there is no test."""
    return 'not tested' if test.p is None else p_value(test.p)


def counted_number(number: int, noun: str) -> str:
    return f'{number} {noun}' if number == 1 else f'{number} {noun}s'


def listed(items: list[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return ' and '.join([', '.join(items[:-1]), items[-1]] if len(items) > 1 else items)


def quantity(value: float | None, unit: str = '') -> str:
    """Three digits and a prefix: 1.84 M, 320 T."""
    if value is None:
        return DASH
    for prefix, size in (('E', 1e18), ('P', 1e15), ('T', 1e12), ('G', 1e9), ('M', 1e6), ('k', 1e3), ('', 1.0)):
        if abs(value) >= 0.9995 * size:
            return f'{_three_digits(value / size)} {prefix}{unit}'.strip()
    return f'{value:.3g} {unit}'.strip()


def _three_digits(value: float) -> str:
    return f'{value:.{max(0, 2 - len(str(int(value))) + 1)}f}'


def duration(seconds: float) -> str:
    """Such as '4 min 12 s'."""
    whole = round(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    if hours:
        return f'{hours} h {minutes} min'
    return f'{minutes} min {whole % 60} s' if minutes else f'{seconds:.1f} s'


def smallest_said(test: Test, unit: Metric) -> tuple[str, bool]:
    """The smallest difference that is found with chance POWER, and whether figures can differ by so much."""
    able = smallest_difference(test.standard_error, test.df)
    return small(able, unit.digits), unit.difference_unit != 'points' or able <= 100


def capital(text: str) -> str:
    """With a capital first letter."""
    return text[0].upper() + text[1:]
