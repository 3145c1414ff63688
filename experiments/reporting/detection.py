"""What generators and detectors did in training, of arms whose chosen tokens are replaced."""

import numpy as np

from experiments.known_metrics import Metric
from experiments.reporting.document import Section, Table
from experiments.reporting.results import Results
from experiments.reporting.wording import arm_names, spoken
from experiments.statistics import summary

SHARE = 0.1
"""Of the updates, from the end."""
COLUMNS = {
    'generator_accuracy': 'generator’s guesses right',
    'fake_share': 'replaced',
    'detection_accuracy': 'detection accuracy',
    'precision': 'precision',
    'recall': 'recall',
    'auc': 'AUC',
}
"""Metric of a training record -> its column, in percent."""
MEANS = COLUMNS.keys() - {'precision', 'recall'}
ROUNDING = 1e-6
"""Percent of the tokens, below which there are none."""


def detection_section(results: Results) -> Section | None:
    """Means over the last updates of training, for arms whose chosen tokens are replaced."""
    if not results.sampled:
        return None
    rows = []
    for name, arm in zip(arm_names(results), results.arms, strict=True):
        means = [_figures(results, arm, seed) for seed in results.seeds if (arm, seed) not in results.failed]
        found = {metric: summary(np.array([mean[metric] for mean in means if metric in mean])) for metric in COLUMNS}
        n = max(each.n for each in found.values())
        if n:
            cells = [spoken(each, Metric(metric, digits=2), n) if each.n else '' for metric, each in found.items()]
            rows.append([name, str(n), *cells])
    return Section(
        'Generators and detectors',
        [
            f'Of the training rows of the last {SHARE:.0%} of the updates, not of held-out text; mean over seeds ± '
            'half the width of the 95% interval. A sample equal to the token that was there counts as original. The '
            'share replaced, accuracy, precision and recall are of the tokens that the arm’s loss is of (of all, or of '
            'those chosen); calling a token replaced means that it is likelier than not. AUC, the area under the ROC '
            'curve, is found in bins of the scores of an update, and is the mean over updates.',
            Table('Training rows, %', ['arm', 'n', *COLUMNS.values()], rows),
        ],
    )


def _figures(results: Results, arm: str, seed: int) -> dict[str, float]:
    """Metric -> what it is over a replica's last updates, of the metrics that its records have.

    Precision and recall are of all tokens together: not each update has a token that is called replaced, or one that
    is. AUC is the mean of the updates that have it.
    """
    begin = (1 - SHARE) * results.steps(arm)
    last = [record for step, record in results.sampled.get((arm, seed), {}).items() if step > begin]
    found = {metric: mean for metric in MEANS if (mean := _mean(last, metric)) is not None}
    if 'detection_accuracy' in found:
        # Percent of all tokens: those rightly called replaced, and those called so at all.
        rightly = _mean(
            [{**each, 'rightly': each['fake_share'] * (each['recall'] or 0) / 100} for each in last], 'rightly'
        )
        called = 100 - found['fake_share'] - found['detection_accuracy'] + 2 * rightly
        for metric, of in (('precision', called), ('recall', found['fake_share'])):
            if of > ROUNDING:
                found[metric] = 100 * rightly / of
    return found


def _mean(records: list[dict], metric: str) -> float | None:
    """Over the updates of the records that have it."""
    having = [record for record in records if record.get(metric) is not None]
    weights = [record['steps'] for record in having]
    return float(np.average([record[metric] for record in having], weights=weights)) if having else None
