"""How good predictions are, in percent.

A figure that is not defined (a correlation with a constant, or with what is not finite) is 0.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from data.tasks.squad_rules import squad_scores
from data.tasks.task import Example, Task


def scores(task: Task, predictions: Sequence[Any], examples: Sequence[Example]) -> dict[str, float]:
    """The metrics of a task, each in percent.

    accuracy, f1 (of the second label), macro_f1 and matthews: scikit-learn's. pearson, spearman: scipy's. entity_f1:
    seqeval's, micro-averaged over entities as conlleval counts them. f1 and exact_match of a span task: SQuAD's.

    Args:
      predictions: one for each example: a label's name, a number, a sequence of tags (one for each word), or an
        answer's text ('' for none).

    Raises:
      ValueError: there is no example, predictions are fewer or more, or a label is kept back.
    """
    if not examples or len(predictions) != len(examples):
        raise ValueError(f'{len(predictions)} predictions for {len(examples)} examples')
    if task.kind == 'span':
        return squad_scores(predictions, examples, task.no_answer)
    gold = [example.tags if task.kind == 'tagging' else example.label for example in examples]
    if any(each is None for each in gold):
        raise ValueError(f'{task.name}: there are examples whose label is kept back')
    if task.kind == 'classification':
        return class_scores(task.metrics, list(predictions), gold, task.labels)
    if task.kind == 'regression':
        found = _correlations(np.asarray(predictions, np.float64), np.asarray(gold, np.float64))
    else:
        found = _tags([list(tags) for tags in predictions], [list(tags) for tags in gold])
    return {metric: 100 * float(found[metric]) for metric in task.metrics}


def class_scores(
    metrics: Sequence[str],
    predicted: Sequence[str],
    gold: Sequence[str],
    labels: Sequence[str],
) -> dict[str, float]:
    """The metrics of classes, in percent."""
    import sklearn.metrics  # here, as the others below: most commands score nothing, and they take a second to import

    one = {'labels': [labels[1]] if len(labels) == 2 else None, 'average': 'micro', 'zero_division': 0}
    found = {
        'accuracy': (sklearn.metrics.accuracy_score, {}),
        # The one label named, so that it is a number even where neither side holds it.
        'f1': (sklearn.metrics.f1_score, one),
        'macro_f1': (sklearn.metrics.f1_score, {'average': 'macro', 'zero_division': 0}),
        'matthews': (sklearn.metrics.matthews_corrcoef, {}),
    }
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # where both sides hold one label alone
        return {metric: 100 * float(found[metric][0](gold, predicted, **found[metric][1])) for metric in metrics}


def _correlations(predicted: np.ndarray, gold: np.ndarray) -> dict[str, float]:
    if not np.isfinite(predicted).all():  # of a replica that failed: the others have their scores
        return {'pearson': 0.0, 'spearman': 0.0}
    import scipy.stats

    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # a constant has no correlation: NaN
        found = {
            'pearson': scipy.stats.pearsonr(predicted, gold).statistic if len(gold) > 1 else np.nan,
            'spearman': scipy.stats.spearmanr(predicted, gold).statistic if len(gold) > 1 else np.nan,
        }
    return {name: value if np.isfinite(value) else 0.0 for name, value in found.items()}


def _tags(predicted: list[list[str]], gold: list[list[str]]) -> dict[str, float]:
    if [len(tags) for tags in predicted] != [len(tags) for tags in gold]:
        raise ValueError('a sentence has more or fewer predicted tags than words')
    import seqeval.metrics

    return {
        'entity_f1': seqeval.metrics.f1_score(gold, predicted, zero_division=0),
        'token_accuracy': seqeval.metrics.accuracy_score(gold, predicted),
    }
