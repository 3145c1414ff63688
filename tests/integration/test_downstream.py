"""An ablation with downstream tasks, whole: its rows, what is left out, and what a second command repeats."""

import json
import re
import shutil
from itertools import product

import pytest

from experiments.reporting.records import read_csv
from tests.integration.commands import LEAN, STEPS, SWITCH
from train.metrics import read

TASKS = """
from data.tasks.config import TaskConfig
from train.config import TaskEvaluation
from train.finetuning.recipe import Recipe

def config(scale):
    ablation = __import__('tiny').config(scale)
    short = Recipe(learning_rate=1e-3, epochs=1, batch_size=8, train_rows=24, max_length=16, seeds=2)
    tasks = (
        TaskEvaluation(TaskConfig(task='corpus:label'), 'label', short),
        TaskEvaluation(TaskConfig(task='table', data_dir='own.tsv', first='text', label='mark'), 'own', short),
    )
    base = dataclasses.replace(ablation.base, evaluation=dataclasses.replace(ablation.base.evaluation, tasks=tasks))
    return dataclasses.replace(ablation, base=base)"""
ARMS = ('15%', '40%', 'random initialisation')


@pytest.fixture(scope='session')
def evaluated(place):
    """A finished ablation that was given no folder of files, and what it printed."""
    place.write('tasks.py', TASKS)
    folder = place.folder / 'files'
    folder.mkdir()
    lines = [f'{word} {number}\t{mark}' for number in range(20) for word, mark in (('peace', 'yes'), ('war', 'no'))]
    (folder / 'own.tsv').write_text('\n'.join(['text\tmark', *lines, '']))
    return place.folder / 'evaluated', place.ablate('tasks.py', 'evaluated', *LEAN).stdout


def figures(workdir, task: str, metric: str = 'accuracy') -> dict:
    rows = read_csv(workdir / 'results.csv')
    return {(r.arm, r.seed, r.ft_seed): r.value for r in rows if (r.task, r.metric) == (task, metric)}


def test_every_replica_has_a_row_for_each_fine_tuning_seed_beside_the_references(evaluated):
    workdir, output = evaluated
    found = figures(workdir, 'label')
    assert found.keys() == {*product(ARMS, [0], [0, 1]), ('majority class', None, None), ('TF-IDF', None, None)}
    assert all(0 <= value <= 100 for value in found.values())
    assert figures(workdir, 'label', 'degenerate').keys() == {*product(ARMS, [0], [0, 1])}
    table = (workdir / 'table.md').read_text()
    rows = re.findall(r'\| (majority class|TF-IDF|random initialisation|15% \(baseline\)|40%) +\| +1? \|', table)
    assert {'majority class', 'TF-IDF', 'random initialisation', '15% (baseline)', '40%'} <= set(rows)
    assert 'Downstream tasks: arm less 15%, points, uncorrected' in output
    assert not list((workdir / 'checkpoints').glob('0-*'))


def test_a_task_without_files_is_left_out_in_so_many_words(evaluated):
    workdir, output = evaluated
    assert 'task own is left out: no --evaluation.data_dir was given' in output
    assert not figures(workdir, 'own')
    assert 'Not evaluated: own (its files need --evaluation.data_dir).' in (workdir / 'table.md').read_text()


def test_the_same_command_does_what_is_missing_and_no_more(place, evaluated):
    """Killed in its evaluation and given the files: it trains nothing, does that task again and adds the other."""
    workdir = shutil.copytree(evaluated[0], place.folder / 'cut')
    records = read(workdir)
    dropped = [r for r in records if r['kind'] == 'evaluated' or r.get('task') == 'label']
    kept = [record for record in records if record not in dropped]
    (workdir / 'metrics.jsonl').write_text(''.join(json.dumps(record) + '\n' for record in kept))
    command = ('tasks.py', 'cut', *LEAN, '--evaluation.data-dir', 'files')
    output = place.ablate(*command).stdout
    assert 'compiled' not in output and 'evaluated in' not in output
    assert {'cohort 0: label', 'cohort 0: own'} == set(re.findall(r'cohort 0: \w+(?= in \d+ s)', output))
    for metric in ('accuracy', 'macro_f1', 'degenerate'):
        assert figures(workdir, 'label', metric) == figures(evaluated[0], 'label', metric)
    assert figures(workdir, 'own').keys() == {
        *product(ARMS, [0], [0, 1]),
        ('majority class', None, None),
        ('TF-IDF', None, None),
    }
    assert figures(workdir, 'own')['TF-IDF', None, None] == 100.0
    tuned = [(r['task'], r['arm'], r['ft_seed']) for r in read(workdir) if r['kind'] == 'finetuned']
    assert sorted(tuned) == sorted(product(('label', 'own'), ARMS, [0, 1]))  # no task takes the results of another

    lines = (workdir / 'metrics.jsonl').read_bytes()
    assert 'cohort' not in place.ablate(*command).stdout
    assert (workdir / 'metrics.jsonl').read_bytes() == lines

    more = place.ablate(*command, '--seeds', '2').stdout
    assert re.findall(r'cohort \d+: (?:compiled|\w+(?= in \d+ s))', more) == [
        'cohort 1: compiled', 'cohort 1: evaluated', 'cohort 1: label', 'cohort 1: own'
    ]  # fmt: skip
    assert {seed for _, seed, _ in figures(workdir, 'label')} == {None, 0, 1}
    assert {key: value for key, value in figures(workdir, 'label').items() if key[1] != 1} == figures(
        evaluated[0], 'label'
    )

    (place.folder / 'files' / 'own.tsv').write_text('text\tmark\n' + 'a few\tyes\nother words\tno\n' * 10)
    said = place.ablate(*command, '--seeds', '3', code=2).stderr
    assert 'task own: other replicas in cut were evaluated on other data: name another --workdir' in said


def test_a_cohort_that_has_to_be_trained_again_is_evaluated_again_on_all_its_tasks(place, evaluated):
    """Its last checkpoint is damaged, and a task is to be added, for which its weights are needed."""
    workdir = shutil.copytree(evaluated[0], place.folder / 'damaged')
    (last,) = (workdir / 'checkpoints' / '0').glob(str(STEPS))
    max(last.rglob('*'), key=lambda path: path.stat().st_size * path.is_file()).unlink()
    (place.folder / 'files-again').mkdir()
    (place.folder / 'files-again' / 'own.tsv').write_text('text\tmark\n' + 'a few\tyes\nother words\tno\n' * 20)
    output = place.ablate('tasks.py', 'damaged', *LEAN, '--evaluation.data-dir', 'files-again').stdout
    assert f'cohort 0: goes on from step {SWITCH} of {STEPS}' in output
    for metric in ('accuracy', 'degenerate'):
        assert figures(workdir, 'label', metric) == figures(evaluated[0], 'label', metric)
    assert figures(workdir, 'own').keys() >= {*product(ARMS, [0], [0, 1])}
    done = [(r['kind'], r.get('task')) for r in read(workdir) if r['kind'] in ('finished', 'evaluated')]
    assert done == [('finished', None), ('evaluated', 'label'), ('evaluated', 'own')]


def test_faults_are_found_before_anything_is_trained(refused, here, monkeypatch):
    monkeypatch.syspath_prepend(here)
    (here / 'tasks.py').write_text('from tiny import *\n' + TASKS)
    said = refused('ablate', 'tasks.py', '--workdir', 'bad', '--evaluation.data-dir', 'nowhere')
    assert said == '--evaluation.data_dir nowhere: no such folder'
    (here / 'empty').mkdir()
    said = refused('ablate', 'tasks.py', '--workdir', 'bad', '--evaluation.data-dir', 'empty')
    assert said == '--evaluation.data_dir empty: none of empty/own.tsv is there'
    (here / 'empty' / 'own.tsv').write_text('text\tmarks\n')
    said = refused('ablate', 'tasks.py', '--workdir', 'bad', '--evaluation.data-dir', 'empty')
    assert 'own.tsv' in said and 'mark' in said
    flag = '--evaluation.tasks.0.task.task'
    said = refused('ablate', 'tasks.py', '--workdir', 'bad', flag, 'corpus:age')
    assert said.startswith(f'{flag} corpus:age: ')
