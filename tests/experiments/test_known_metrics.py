"""The one table of metrics, and which of them an ablation may be decided by."""

import dataclasses
import re

import pytest

from data.tasks.config import TaskConfig
from experiments.ablation import Ablation, Arm
from experiments.known_metrics import METRICS, known, of_kind
from train.config import Config, EvaluationConfig, TaskEvaluation

ARMS = (Arm('15%'), Arm('40%', {'masking.corruption_rate': 0.4}))
TASK = TaskEvaluation(TaskConfig(task='cola'))


def ablation(tasks=(), **fields) -> Ablation:
    return Ablation('n', 'c', Config(evaluation=EvaluationConfig(tasks=tasks)), ARMS, '15%', **fields)


def test_whatever_tasks_are_scored_by_is_known():
    from data.tasks.glue import GLUE
    from data.tasks.tagging import METRICS as TAGGING

    scored = {metric for each in GLUE.values() for metric in each.metrics} | set(TAGGING) | {'exact_match', 'macro_f1'}
    for metric in scored:
        assert metric in METRICS and known(metric).higher_is_better and known(metric).unit == '%'


def test_a_metric_can_be_chosen_by_if_and_only_if_one_direction_is_better():
    for name, metric in METRICS.items():
        assert (metric.higher_is_better is None) == (metric.kind in ('cost', 'counted', 'note')), name
    assert not known('loss').higher_is_better and known('likelihood').higher_is_better
    assert known('never_seen').name == 'never seen'


@pytest.mark.parametrize(
    'primary', [name for name, metric in of_kind('common', 'whole').items() if not metric.needs_pairs]
)
def test_measures_of_a_model_can_decide(primary):
    assert ablation(primary=primary).primary == primary


@pytest.mark.parametrize('primary', ['los', 'own_loss', 'flops', 'unigram_loss', 'degenerate', ''])
def test_others_are_refused(primary):
    with pytest.raises(ValueError, match=f'primary {primary!r}.*use loss, accuracy, likelihood, probe, '):
        ablation(primary=primary)


def test_a_metric_of_a_task_needs_the_task():
    assert ablation((TASK,), primary='matthews', primary_task='cola').primary_task == 'cola'
    with pytest.raises(ValueError, match="primary 'matthews' is measured on a task: name it as primary_task"):
        ablation((TASK,), primary='matthews')
    with pytest.raises(ValueError, match="primary_task 'rte' is not among evaluation.tasks; they are cola"):
        ablation((TASK,), primary='accuracy', primary_task='rte')
    with pytest.raises(ValueError, match='there are none'):
        ablation(primary='accuracy', primary_task='rte')


def test_arms_may_not_be_called_as_a_reference():
    for name in ('majority class', 'TF-IDF', 'random initialisation'):
        with pytest.raises(ValueError, match=re.escape(f'arm {name!r}: use a name')):
            dataclasses.replace(ablation(), arms=(Arm(name), Arm('b')), baseline=name)


def test_evaluations_are_named_apart_and_never_chosen_on_dev():
    with pytest.raises(ValueError, match='evaluation.tasks cola, cola: give each a name of its own'):
        EvaluationConfig(tasks=(TASK, TASK))
    assert EvaluationConfig(tasks=(TASK, dataclasses.replace(TASK, name='cola, frozen'))).tasks[1].title
    with pytest.raises(ValueError, match='an entry names no task'):
        TaskEvaluation()
    on_dev = dataclasses.replace(TASK.recipe, select_on='dev')
    with pytest.raises(ValueError, match='select_on is train, as dev is what is reported'):
        dataclasses.replace(TASK, recipe=on_dev)
