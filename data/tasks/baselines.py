"""What a task's metrics are without reading its texts, and which runs did no better."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from data.tasks.scores import scores
from data.tasks.task import Example, Task


def majority(task: Task, train: Sequence[Example], examples: Sequence[Example]) -> dict[str, float]:
    """Scores, in percent, of always giving the commonest label of training (ties: the first by name).

    Of numbers their mean, of tags O, of answers none.
    """
    if task.kind == 'regression':
        always: Any = float(np.mean([example.label for example in train]))
    elif task.kind == 'classification':
        counts = Counter(example.label for example in train)
        always = min(counts, key=lambda label: (-counts[label], label))
    else:
        always = ''
    if task.kind == 'tagging':
        return scores(task, [['O'] * len(example.words) for example in examples], examples)
    return scores(task, [always] * len(examples), examples)


def is_degenerate(task: Task, predictions: Sequence[Any], found: dict[str, float], trivial: dict[str, float]) -> bool:
    """Whether a run has learnt nothing: all predictions alike, or no metric above those of `trivial`.

    Args:
      found: the run's scores.
      trivial: `majority` on the same examples.
    """
    kinds = {tag for tags in predictions for tag in tags} if task.kind == 'tagging' else set(predictions)
    return len(kinds) == 1 or all(found[metric] <= trivial[metric] for metric in task.metrics)
