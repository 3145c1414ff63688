"""Replicas whose outputs are not finite: scored, flagged and never chosen, beside one that learns."""

import dataclasses
import json

import numpy as np
import pytest

from data.tasks.task import Task, TextExample
from tests.train import finetuning_case as case
from tests.train.heldout_case import LetterTokenizer
from train.finetuning.grids import label
from train.finetuning.task_data import TaskData
from train.finetuning.tune import as_record, best_points, from_records, plan, tune

SOUND = dataclasses.replace(case.CONFIG, batch_size=8, epochs=1, seeds=1)
MAD = dataclasses.replace(SOUND, learning_rate=1e25)
"""Of one update, which is finite itself: what it leaves puts out NaN."""


@pytest.mark.parametrize('kind', ['regression', 'classification'])
def test_a_replica_without_finite_outputs_takes_no_other_down_and_is_not_chosen(kind):
    labels = ('no', 'yes') if kind == 'classification' else ()
    metrics = ('matthews',) if labels else ('pearson', 'spearman')
    texts = [f'p{5 + 7 * i % 40} p{9 + i}' for i in range(8)]
    made = [TextExample(str(i), text, None, labels[i % 2] if labels else i / 2) for i, text in enumerate(texts)]
    task = Task('own', kind, labels, metrics, {'train': made, 'dev': made})
    data = TaskData(task, 'dev', LetterTokenizer(), 16, 8)
    lines = []
    results = tune(plan(case.encoders(), data, [MAD, SOUND]), data, log=lines.append)
    mad, sound = results
    assert mad.failed_at is None and sound.failed_at is None and not lines
    assert mad.scores == {'dev': dict.fromkeys(metrics, 0)} and mad.degenerate == {'dev': True}
    assert mad.selection is None and np.isfinite(sound.selection)
    assert best_points(results) == {'arm': label(SOUND)}
    # So also where they are read back.
    records = json.loads(json.dumps([as_record('0', result) for result in results], allow_nan=False))
    assert best_points(from_records(records)['0']) == {'arm': label(SOUND)}
