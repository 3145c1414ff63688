"""All that is known of a metric, in one table: a new one needs one line here."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Metric:
    """How a figure is named, written and judged."""

    name: str
    unit: str = ''
    difference_unit: str = ''
    digits: int = 3
    higher_is_better: bool | None = None
    """None: neither is, and nothing can be chosen by it."""
    kind: Literal['common', 'own', 'whole', 'task', 'cost', 'counted', 'note'] = 'whole'
    """Measured at each common rate; at the arm's own rate, so that no difference means anything; once for a model; on
    a downstream task; what a replica costs; a baseline by counting; no measure but something to know of one."""
    needs_head: bool = False
    """It is measured with an MLM head, which not every objective trains."""
    needs_pairs: bool = False
    """It is measured with a head for pairs, which few objectives train."""


METRICS = {
    'loss': Metric('loss', 'nats a token', 'nats', 3, False, 'common', True),
    # Of masked tokens; with a task, of that task's examples.
    'accuracy': Metric('accuracy', '%', 'points', 2, True, 'common', True),
    'own_loss': Metric('own-rate loss', 'nats a token', 'nats', 3, False, 'own', True),
    'own_accuracy': Metric('own-rate accuracy', '%', 'points', 2, True, 'own', True),
    'likelihood': Metric('pseudo-log-likelihood', 'nats a word', 'nats a word', 3, True, needs_head=True),
    'probe': Metric('probe accuracy', '%', 'points', 2, True),
    'nsp_accuracy': Metric('NSP accuracy', '%', 'points', 2, True, needs_pairs=True),
    'sop_accuracy': Metric('SOP accuracy', '%', 'points', 2, True, needs_pairs=True),
    'matthews': Metric('Matthews correlation', '%', 'points', 2, True, 'task'),
    'f1': Metric('F1', '%', 'points', 2, True, 'task'),
    'macro_f1': Metric('macro F1', '%', 'points', 2, True, 'task'),
    'pearson': Metric('Pearson', '%', 'points', 2, True, 'task'),
    'spearman': Metric('Spearman', '%', 'points', 2, True, 'task'),
    'entity_f1': Metric('entity F1', '%', 'points', 2, True, 'task'),
    'token_accuracy': Metric('token accuracy', '%', 'points', 2, True, 'task'),
    'exact_match': Metric('exact match', '%', 'points', 2, True, 'task'),
    'flops': Metric('compute', 'FLOP', kind='cost'),
    'tokens': Metric('tokens', kind='cost'),
    'targets': Metric('targets', kind='cost'),
    'unigram_entropy': Metric('unigram entropy', kind='counted'),
    'unigram_loss': Metric('counts: unigram', kind='counted'),
    'left_loss': Metric('counts: left neighbour', kind='counted'),
    'both_loss': Metric('counts: both neighbours', kind='counted'),
    'probe_majority': Metric('commonest label', kind='note'),
    'curve_probe_majority': Metric('commonest label among the paragraphs of the learning curve', kind='note'),
    'curve_loss': Metric('loss of the learning curve', kind='note'),
    'curve_probe': Metric('probe accuracy of the learning curve', kind='note'),
    'degenerate': Metric('learnt nothing', kind='note'),
    'finetuning_failed': Metric('not finite in fine-tuning', kind='note'),
}
"""In the order of the report."""


def known(metric: str) -> Metric:
    """What the table says; of a metric that it does not hold, a name."""
    return METRICS.get(metric, Metric(metric.replace('_', ' ')))


def of_kind(*kinds: str) -> dict[str, Metric]:
    """The metrics of some kinds, in order."""
    return {key: metric for key, metric in METRICS.items() if metric.kind in kinds}
