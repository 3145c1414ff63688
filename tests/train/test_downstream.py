"""A cohort on downstream tasks: which encoders are fine-tuned, and which figures come of it."""

import dataclasses

import jax
import numpy as np
import pytest

from data.tasks.task import Task, TextExample
from tests.train.heldout_case import CONFIG, LetterTokenizer
from train.cohort import Cohort, Replica
from train.downstream import cohort_encoders, reference_figures, split_title, task_figures
from train.finetuning.config import FinetuneConfig
from train.finetuning.task_data import TaskData
from train.finetuning.tune import Result
from train.objectives.config import ObjectiveConfig
from train.objectives.table import objective_of
from train.step import init_state

COHORT = Cohort('0', tuple(Replica(arm, seed, CONFIG) for seed in (3, 5) for arm in ('a', 'b')))


def started(seed: int):
    return jax.device_get(init_state(np.uint32(seed), CONFIG).params)


def test_the_untrained_encoders_are_the_weights_that_the_baseline_started_from():
    trained_R = jax.tree.map(lambda *leaves: np.stack(leaves) + 1, *(started(seed) for seed in (3, 3, 5, 5)))
    encoders = cohort_encoders(COHORT, trained_R, 'a')
    assert encoders.names == (
        ('a', 3), ('b', 3), ('a', 5), ('b', 5), ('random initialisation', 3), ('random initialisation', 5)
    )  # fmt: skip
    assert encoders.longest == CONFIG.stages[-1].length
    for place, seed in ((4, 3), (5, 5)):
        alike(encoders.params_E, started(seed), place)
    for place in range(4):
        alike(encoders.params_E, jax.tree.map(lambda leaf: leaf[place], trained_R), place)  # noqa: B023


def alike(params_E, params, place: int) -> None:
    """All but the type of second segments, which is as that of first ones."""
    for (path, ours), theirs in zip(
        jax.tree_util.tree_leaves_with_path(params_E), jax.tree.leaves(params), strict=True
    ):
        if jax.tree_util.keystr(path, simple=True, separator='.').startswith('embeddings.type.'):
            assert np.abs(theirs[1] - theirs[0]).max() > 1e-3
            theirs = np.stack([theirs[0], theirs[0]])
        np.testing.assert_allclose(np.asarray(ours)[place], theirs, rtol=1e-6, atol=1e-7)


def test_what_was_pretrained_on_pairs_keeps_its_types_and_its_pooler():
    objective = ObjectiveConfig('mlm_nsp', rows='segment_pairs')
    config = dataclasses.replace(CONFIG, objective=objective)
    cohort = Cohort('0', (Replica('a', 3, config),))
    params = jax.device_get(init_state(np.uint32(3), config).params)
    encoder = objective_of(config).encoder(jax.tree.map(lambda leaf: leaf[None], params))
    encoders = cohort_encoders(cohort, encoder, 'elsewhere')
    (ours,), (theirs,) = (jax.tree.leaves(each['embeddings']['type']) for each in (encoders.params_E, params))
    np.testing.assert_array_equal(ours[0], theirs)
    for ours, theirs in zip(
        jax.tree.leaves(encoders.params_E['pooler']), jax.tree.leaves(params['pair']['pooler']), strict=True
    ):
        np.testing.assert_array_equal(ours[0], theirs)


def test_a_cohort_without_the_baseline_has_no_untrained_encoders():
    trained_R = jax.tree.map(lambda *leaves: np.stack(leaves), *(started(seed) for seed in (3, 3, 5, 5)))
    encoders = cohort_encoders(COHORT, trained_R, 'elsewhere')
    assert len(encoders.names) == 4 == len(jax.tree.leaves(encoders.params_E)[0])


def result(arm, point, selection, accuracy, **fields) -> Result:
    default = dict(
        task='cola', seed=0, ft_seed=1, epoch=2, failed_at=None, threshold=None,
        scores={'dev': {'accuracy': accuracy}, 'dev_mismatched': {'accuracy': accuracy - 1}},
        degenerate={'dev': False, 'dev_mismatched': True},
    )  # fmt: skip
    return Result(**{**default, 'arm': arm, 'point': point, 'selection': selection, **fields})


def test_figures_are_those_of_the_point_that_each_arm_chose_on_its_slice():
    """The point that is best on the slice counts, however it does on dev."""
    results = [
        result('a', 'x', 70.0, 50.0), result('a', 'y', 60.0, 99.0),
        result('random initialisation', 'x', 10.0, 1.0), result('random initialisation', 'y', 20.0, 2.0, failed_at=7),
    ]  # fmt: skip
    found = {
        (each['arm'], each['metric'], each['task']): (each['step'], each['value'])
        for each in task_figures(results, 'cola', 1, 600)
    }
    random = 'random initialisation'
    assert found == {
        ('a', 'accuracy', 'cola'): (600, 50.0),
        ('a', 'accuracy', 'cola dev mismatched'): (600, 49.0),
        ('a', 'degenerate', 'cola'): (600, 0.0),
        ('a', 'degenerate', 'cola dev mismatched'): (600, 1.0),
        (random, 'accuracy', 'cola'): (None, 2.0),
        (random, 'accuracy', 'cola dev mismatched'): (None, 1.0),
        (random, 'degenerate', 'cola'): (None, 0.0),
        (random, 'degenerate', 'cola dev mismatched'): (None, 1.0),
        (random, 'finetuning_failed', 'cola'): (None, 7.0),
        (random, 'finetuning_failed', 'cola dev mismatched'): (None, 7.0),
    }
    assert {each['ft_seed'] for each in task_figures(results, 'cola', 1, 600)} == {1}


def test_later_seeds_of_an_arm_are_reported_at_the_point_of_its_first():
    """Otherwise a mean over seeds, and a pair of them, would mix hyperparameters."""
    results = [result(arm, point, 70.0 + (point == 'x'), 50.0 + (point == 'y')) for arm in 'ab' for point in 'xy']
    found = task_figures(results, 'cola', 1, 600, {'a': 'y', 'c': 'x'})
    values = {each['arm']: each['value'] for each in found if (each['metric'], each['task']) == ('accuracy', 'cola')}
    assert values == {'a': 51.0, 'b': 50.0}


def test_splits_other_than_dev_are_named():
    assert [split_title('NER', split) for split in ('dev', 'test', 'dev_mismatched')] == [
        'NER', 'NER test', 'NER dev mismatched'
    ]  # fmt: skip


@pytest.mark.parametrize('kind', ['classification', 'regression'])
def test_references_belong_to_no_seed(kind):
    labels = ('no', 'yes', 'no') if kind == 'classification' else (1.0, 2.0, 0.0)
    texts = [TextExample(str(i), f'p{5 + i} p{9 - i}', None, label) for i, label in enumerate(labels)]
    metrics = ('accuracy',) if kind == 'classification' else ('pearson',)
    task = Task('own', kind, ('no', 'yes') if kind == 'classification' else (), metrics, {'train': texts, 'dev': texts})
    data = TaskData(task, '', LetterTokenizer(), 16, 8)
    found = {each['arm']: each for each in reference_figures(data, 'own')}
    assert found['majority class']['value'] == (pytest.approx(200 / 3) if kind == 'classification' else 0.0)
    assert ('TF-IDF' in found) == (kind == 'classification')
    assert all(each['seed'] is None and each['ft_seed'] is None and each['step'] is None for each in found.values())


def test_a_recipe_is_a_fine_tuning_without_the_way_it_is_carried_out():
    from train.finetuning.recipe import Recipe

    own = {field.name for field in dataclasses.fields(FinetuneConfig)} - {f.name for f in dataclasses.fields(Recipe)}
    assert own == {'run', 'evaluation_batch_size'}
