"""Arm by evaluation rate: loss, how far below counting, accuracy and perplexity."""

from math import exp

import numpy as np

from experiments.known_metrics import known, of_kind
from experiments.reporting.document import Section, Table
from experiments.reporting.results import Measure, Results
from experiments.reporting.wording import (
    DASH,
    arm_names,
    fixed,
    listed,
    never_masked,
    other_units,
    percent,
    spoken,
    without_head,
)
from experiments.statistics import Summary, summary

OWN_COLUMN = 'own rate: not comparable'


def loss_section(results: Results) -> Section:
    """The main table, and how far each arm is below the unigram entropy."""
    if all(results.lacks(arm, 'loss') for arm in results.arms):
        return Section('Loss, arm by evaluation rate', without_head(results))
    caption = 'Loss, nats a token (mean ± half of CI95 over seeds): compare within a column'
    return Section(
        'Loss, arm by evaluation rate',
        [
            'Cross-entropy on held-out text, every chosen token replaced by [MASK], on one set of masks that is the '
            'same for all arms and seeds: mean over seeds ± half the width of its 95% interval, which covers the seeds '
            'and not the choice of held-out text. Compare arms within a column. A loss at one rate says nothing '
            'against a loss at another, and no column alone says which arm is the better model.',
            _table(caption, results, 'loss', 'own_loss'),
            'The lines above the arms are what counting words alone reaches: the entropy of the whole held-out text '
            '(no fixed guess can do better on the whole of it), and frequencies of the training text given nothing, '
            'the left neighbour, or both neighbours, on the very targets of the arms, which may be easier. The last '
            'column is each arm at its own final masking rate, rule and unit. Own-rate losses are not comparable '
            'between arms: a higher rate, or a larger unit, leaves less to read.',
            *without_head(results),
            *never_masked(results),
            *other_units(results),
            *_early(results),
            *_below_unigram(results),
        ],
    )


def _early(results: Results) -> list[str]:
    """A warning where counting neighbours still beats an arm."""
    line = _line(results, 'both_loss', results.primary.eval_rate) if results.primary.metric == 'loss' else None
    if line is None:
        return []
    means = [summary(values).mean for values in results.values(results.primary)]
    behind = [name for name, mean in zip(results.arms, means, strict=True) if mean is not None and mean > line]
    if not behind:
        return []
    return [
        f'Arm {listed(behind)} at {percent(results.primary.eval_rate)}: above what counting both neighbours reaches. '
        'These are early days of training, and differences may be of how fast arms learn rather than of what they '
        'come to; the targets that each has scored are in the table of costs.'
    ]


def accuracy_section(results: Results) -> Section | None:
    """Accuracy, and perplexity derived from the loss."""
    if all(results.lacks(arm, 'accuracy') for arm in results.arms):
        return None
    return Section(
        'Accuracy and perplexity',
        [
            'Share of targets whose likeliest token is the right one, in percent: mean ± half the width of the 95% '
            'interval. The last column is again at each arm’s own rate, not comparable between arms.',
            _table('Accuracy, %', results, 'accuracy', 'own_accuracy'),
            'Perplexity, e to the mean loss, with the ends of the loss’s interval carried over.',
            _perplexities(results),
        ],
    )


def _table(caption: str, results: Results, metric: str, own_metric: str) -> Table:
    rates, unit = results.rates(metric), known(metric)
    counts = [(key, metric.name) for key, metric in of_kind('counted').items()]
    counted = [(name, [_line(results, key, rate) for rate in rates]) for key, name in counts]
    lines = [[name, '', *(fixed(value, unit.digits) for value in values), ''] for name, values in counted]
    lines = [line for line, (_, values) in zip(lines, counted, strict=True) if metric == 'loss' and any(values)]
    own_AxS, own_rates = results.own(own_metric)
    rows = []
    for arm, name in enumerate(arm_names(results)):
        own = summary(own_AxS[arm])
        n = _n(results, arm)
        if results.lacks(results.arms[arm], metric):
            rows.append([name, str(n), *([''] * len(rates)), ''])
            continue
        cells = [spoken(summary(results.values(Measure(metric, rate))[arm]), unit, n) for rate in rates]
        at = f' at {percent(own_rates[arm])}' if own.n else ''
        lacking = results.lacks(results.arms[arm], own_metric)
        rows.append([name, str(n), *cells, '' if lacking else spoken(own, known(own_metric), n) + at])
    columns = ['arm', 'n', *(f'at {percent(rate)}' for rate in rates), OWN_COLUMN]
    return Table(caption, columns, lines + rows, len(lines), brief=metric == 'loss')


def _below_unigram(results: Results) -> list[str | Table]:
    rates = [rate for rate in results.rates('loss') if _line(results, 'unigram_entropy', rate) is not None]
    if not rates:
        return []
    rows = []
    for arm, name in enumerate(arm_names(results)):
        means = [summary(results.values(Measure('loss', rate))[arm]).mean for rate in rates]
        lines = [_line(results, 'unigram_entropy', rate) for rate in rates]
        rows.append([name, *(DASH if m is None else fixed(u - m, 3) for m, u in zip(means, lines, strict=True))])
    caption = 'Nats below the unigram entropy of the held-out text'
    return [
        'An arm that is not clearly below the unigram entropy has learned word frequencies at most.',
        Table(caption, ['arm', *(f'at {percent(rate)}' for rate in rates)], rows, brief=True),
    ]


def _perplexities(results: Results) -> Table:
    rates = results.rates('loss')
    rows = []
    for arm, name in enumerate(arm_names(results)):
        summaries = [summary(results.values(Measure('loss', rate))[arm]) for rate in rates]
        lacking = results.lacks(results.arms[arm], 'loss')
        cells = [''] * len(rates) if lacking else map(_perplexity, summaries)
        rows.append([name, str(_n(results, arm)), *cells])
    return Table('Perplexity', ['arm', 'n', *(f'at {percent(rate)}' for rate in rates)], rows)


def _perplexity(loss: Summary) -> str:
    if loss.mean is None:
        return loss.reason
    if loss.half_width is None:
        return f'{exp(loss.mean):.2f} ({loss.reason})'
    return f'{exp(loss.mean):.2f} ({exp(loss.mean - loss.half_width):.2f} to {exp(loss.mean + loss.half_width):.2f})'


def _line(results: Results, metric: str, rate: float) -> float | None:
    """A baseline by counting; the entropy is the same at every rate."""
    return results.counted(metric) if metric == 'unigram_entropy' else results.counted(metric, rate)


def _n(results: Results, arm: int) -> int:
    return int(np.isfinite(results.values(results.primary)[arm]).sum())
