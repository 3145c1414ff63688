"""What generators and detectors did in training, of arms whose rows hold a generator's samples."""

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


def detection_section(results: Results) -> Section | None:
    """Means over the last updates of training, for arms with a generator."""
    if not results.sampled:
        return None
    rows = []
    for name, arm in zip(arm_names(results), results.arms, strict=True):
        means = [_means(results, arm, seed) for seed in results.seeds if (arm, seed) not in results.failed]
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
            'curve, is found in bins of the scores.',
            Table('Training rows, %', ['arm', 'n', *COLUMNS.values()], rows),
        ],
    )


def _means(results: Results, arm: str, seed: int) -> dict[str, float]:
    """Metric -> its mean over a replica's last updates; of those metrics alone that its records have."""
    begin = (1 - SHARE) * results.steps(arm)
    last = [record for step, record in results.sampled.get((arm, seed), {}).items() if step > begin]
    weights = [record['steps'] for record in last]
    shared = [metric for metric in COLUMNS if last and all(record.get(metric) is not None for record in last)]
    return {metric: float(np.average([record[metric] for record in last], weights=weights)) for metric in shared}
