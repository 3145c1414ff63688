"""What stands in train and in another split, too: told in one line, and of MRPC not trained on."""

import dataclasses

import pytest

from data.tasks.config import TaskConfig
from data.tasks.registry import load_task
from tests.data.tasks.task_files import PARAGRAPHS, write, write_squad

COLUMNS = '#1 String\t#2 String\tQuality'


def loaded(folder, config, files):
    for name, content in files.items():
        write(folder / name, content)
    return load_task(dataclasses.replace(config, data_dir=str(folder)))


@pytest.mark.parametrize(
    ('config', 'files'),
    [
        (
            TaskConfig('table', first='t', label='l'),
            {'train.tsv': 't\tl\na\tx\nb\ty\nc\tx', 'dev.tsv': 't\tl\nd\tx\na\tx\nb\tx\nb\ty', 'test.tsv': 't\na'},
        ),
        (
            TaskConfig('table', first='t', second='u', label='l', target='numbers'),
            {'train.tsv': 't\tu\tl\na\tx\t1\nb\ty\t2', 'dev.tsv': 't\tu\tl\nb\ty\t2.0\na\ty\t1\na\tx\t1\na\tx\t2'},
        ),
        (
            TaskConfig('tagging'),
            {'train.txt': 'a B-X\nb O\n\na O\n', 'dev.txt': 'b O\n\na O\n\na B-X\n\na B-X\nb O\n'},
        ),
    ],
    ids=['classes', 'numbers', 'tags'],
)
def test_equal_texts_with_an_equal_label_are_told(tmp_path, config, files):
    task = loaded(tmp_path, config, files)
    assert task.notes == (
        f'{config.task}: 2 of 4 examples of dev stand among the {len(task.splits["train"])} of train, too',
    )
    assert len(task.splits['dev']) == 4


def test_questions_and_further_splits_are_told_too(tmp_path):
    write_squad(tmp_path / 'train.json')
    write_squad(tmp_path / 'dev.json', [('Z', *PARAGRAPHS[1][1:]), ('Y', 'Who?', [('y', 'Who?', [('Who', 0)])])])
    write_squad(tmp_path / 'test.json', PARAGRAPHS[2:])
    task = load_task(TaskConfig('squad1', str(tmp_path)))
    assert task.notes == ('squad1: 2 of 3 examples of dev, 2 of 2 examples of test stand among the 6 of train, too',)


def test_nothing_is_told_where_the_splits_are_apart(tmp_path):
    rows = {'train.tsv': 't\tl\na\tx\nb\ty', 'dev.tsv': 't\tl\na\ty\nc\tx'}
    assert loaded(tmp_path, TaskConfig('table', first='t', label='l'), rows).notes == ()


def test_of_mrpc_what_stands_in_dev_is_not_trained_on(tmp_path):
    """Its authors' training file holds GLUE's dev."""
    rows = [f'A {i}\tB "{i}\t{i % 2}' for i in range(20)]
    files = {
        'msr_paraphrase_train.txt': rows,
        'dev.tsv': [*rows[3:7], 'A 9\tB "9\t0'],
        'msr_paraphrase_test.txt': rows[:1],
    }
    task = loaded(tmp_path, TaskConfig('mrpc'), {name: '\n'.join([COLUMNS, *each]) for name, each in files.items()})
    assert [example.first for example in task.splits['train']] == [f'A {i}' for i in (*range(3), *range(7, 20))]
    assert len(task.splits['dev']) == 5
    assert task.notes == (
        'mrpc: left out 4 of 20 training examples, which stand in dev',
        'mrpc: 1 of 1 examples of test stand among the 16 of train, too',
    )
