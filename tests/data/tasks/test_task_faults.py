"""What is wrong with a task, its files or its flags, in one line each."""

import pytest

from data.errors import UserError
from data.tasks.config import TaskConfig
from data.tasks.registry import load_task
from tests.data.tasks.task_files import CONTEXT, PARAGRAPHS, answer, write_squad

MNLI = 'sentence1\tsentence2\tgold_label\na\tb\tneutral\nc\td\tentailment'
FAULTS = {
    'unknown task': (TaskConfig('colla', '{d}'), {}, 'there is no such task; use cola, sst2'),
    'no task': (TaskConfig('', '{d}'), {}, 'there is no such task'),
    'no folder given': (TaskConfig('cola', ''), {}, 'give --data_dir'),
    'no such folder': (TaskConfig('cola', '{d}/x'), {}, 'no such file or folder'),
    'no file of the task': (
        TaskConfig('cola', '{d}'),
        {'x': 'y'},
        'has no file of task cola: give the folder with train.tsv',
    ),
    'empty file': (TaskConfig('sst2', '{d}'), {'train.tsv': ''}, 'train.tsv: empty'),
    'blank file': (TaskConfig('sst2', '{d}'), {'train.tsv': '\ufeff\n \n'}, 'train.tsv: empty'),
    'header alone': (TaskConfig('sst2', '{d}'), {'train.tsv': 'sentence\tlabel\n'}, 'train.tsv: has no whole row'),
    'ragged alone': (
        TaskConfig('sst2', '{d}'),
        {'train.tsv': 'sentence\tlabel\na\n'},
        'left out 1 of other than 2 fields, line 2',
    ),
    'missing column': (
        TaskConfig('sst2', '{d}'),
        {'train.tsv': 'text\tlabel\na\t1'},
        'has no column sentence; its first line has text, label',
    ),
    'missing label': (
        TaskConfig('rte', '{d}'),
        {'dev.tsv': 'sentence1\tsentence2\na\tb'},
        'has no column label; it has sentence1',
    ),
    'unknown label': (
        TaskConfig('sst2', '{d}'),
        {'train.tsv': 'sentence\tlabel\na\t1\nb\t2'},
        "train.tsv:3: label '2' is none of",
    ),
    'MNLI without mismatched': (
        TaskConfig('mnli', '{d}'),
        {'train.tsv': MNLI, 'dev_matched.tsv': MNLI},
        '{d}: has no dev_mismatched.tsv: MNLI is reported on both of its dev files',
    ),
    'MNLI without matched': (
        TaskConfig('mnli', '{d}'),
        {'train.tsv': MNLI, 'dev_mismatched.tsv': MNLI},
        '{d}: has no dev_matched.tsv: MNLI is reported on both of its dev files',
    ),
    'no number': (
        TaskConfig('stsb', '{d}'),
        {'train.tsv': 'sentence1\tsentence2\tscore\na\tb\tnan'},
        "train.tsv:2: score is 'nan'",
    ),
    'Latin-1': (
        TaskConfig('sst2', '{d}'),
        {'train.tsv': b'sentence\tlabel\na\t1\ncaf\xe9\t1'},
        'train.tsv:3: byte 0xe9 is not utf-8: say what the file is with --encoding',
    ),
    'UTF-16': (TaskConfig('sst2', '{d}'), {'train.tsv': 'sentence\tlabel'.encode('utf-16')}, 'give --encoding utf-16'),
    'no such encoding': (
        TaskConfig('sst2', '{d}', encoding='utf-99'),
        {'train.tsv': 'a'},
        '--encoding utf-99: Python knows no such',
    ),
    'table without the column': (
        TaskConfig('table', '{d}', 'text', '', 'kind'),
        {'train.jsonl': '{"text": "a"}'},
        'has no column kind; its first line has text',
    ),
    'table with too few fields': (
        TaskConfig('table', '{d}', '1', '', '3'),
        {'train.tsv': 'a\tb'},
        'has no column 3: its first line has 2 fields',
    ),
    'label not seen in training': (
        TaskConfig('table', '{d}', 't', '', 'l'),
        {'train.tsv': 't\tl\na\tx\nb\ty', 'dev.tsv': 't\tl\nc\tz'},
        "dev: example 0 has the label 'z', which training has not seen; it has x, y",
    ),
    'one label': (
        TaskConfig('table', '{d}', 't', '', 'l'),
        {'train.tsv': 't\tl\na\tx\nb\tx'},
        'training has 1 different label: two are needed',
    ),
    'as many labels as rows': (
        TaskConfig('table', '{d}', 't', '', 'l'),
        {'train.tsv': 't\tl\n' + '\n'.join(f'a\t{i}' for i in range(1500))},
        'For numbers give --target numbers',
    ),
    'label that is no class': (
        TaskConfig('table', '{d}', 't', '', 'l'),
        {'train.jsonl': '{"t": "a", "l": 0.5}'},
        'train.jsonl:1: l is 0.5: use text or whole numbers',
    ),
    'text that is none': (
        TaskConfig('table', '{d}', 't', '', 'l'),
        {'train.jsonl': '{"t": 3, "l": "x"}'},
        'train.jsonl:1: t is no text but 3',
    ),
    'comma-separated': (TaskConfig('table', '{d}/a.csv', 't', '', 'l'), {'a.csv': 't,l'}, 'convert it to TSV'),
    'two columns of a name': (
        TaskConfig('table', '{d}', 't', '', 'l'),
        {'train.tsv': 't\tl\tl\na\tx\ty'},
        'two columns have the same name',
    ),
    'tag not seen in training': (
        TaskConfig('tagging', '{d}'),
        {'train.txt': 'a B-X', 'dev.txt': 'a B-Y'},
        "has the label 'B-Y', which training has not seen",
    ),
    'tag that is none': (
        TaskConfig('tagging', '{d}'),
        {'train.txt': 'a B-X\nb NN'},
        "train.txt:2: tag 'NN' is not O, B-TYPE or I-TYPE",
    ),
    'no such column of tags': (
        TaskConfig('tagging', '{d}', label='4'),
        {'train.txt': 'a B-X'},
        'train.txt:1: has no column 4, only 2 fields',
    ),
    'column that is no number': (
        TaskConfig('tagging', '{d}', label='ner'),
        {'train.txt': 'a B-X'},
        '--label ner: tags go by the number',
    ),
    'no sentence': (TaskConfig('tagging', '{d}'), {'train.txt': '-DOCSTART- O\n'}, 'train.txt: has no sentence'),
    'not JSON': (TaskConfig('squad1', '{d}'), {'train.json': '{"data": '}, 'train.json: not JSON'),
    'another form': (
        TaskConfig('squad1', '{d}'),
        {'train.json': '{"data": [{"title": "x"}]}'},
        "not in the form of SQuAD (data, paragraphs, context, qas, answers): KeyError('paragraphs')",
    ),
    'a list': (TaskConfig('squad1', '{d}'), {'train.json': '[1]'}, 'not in the form of SQuAD'),
    'a place in words': (
        TaskConfig('squad1', '{d}'),
        {
            'train.json': '{"data": [{"paragraphs": [{"context": "a b", "qas": [{"id": "q", "question": "?", '
            '"answers": [{"text": "b", "answer_start": "two"}]}]}]}]}'
        },
        'not in the form of SQuAD',
    ),
    'a context that is no text': (
        TaskConfig('squad1', '{d}'),
        {'train.json': '{"data": [{"title": "t", "paragraphs": [{"context": null, "qas": []}]}]}'},
        'a context of t is no text but None',
    ),
    'an answer that is no text': (
        TaskConfig('squad1', '{d}'),
        {
            'train.json': '{"data": [{"paragraphs": [{"context": "a b", "qas": [{"id": "q", "question": "?", '
            '"answers": [{"text": ["x"], "answer_start": 2}]}]}]}]}'
        },
        "an answer of question q is no text but ['x']",
    ),
    'a place without end': (
        TaskConfig('squad1', '{d}'),
        {
            'train.json': '{"data": [{"paragraphs": [{"context": "a b", "qas": [{"id": "q", "question": "?", '
            '"answers": [{"text": "b", "answer_start": 1e999}]}]}]}]}'
        },
        'not in the form of SQuAD',
    ),
    'a question that is no text': (
        TaskConfig('squad1', '{d}'),
        {
            'train.json': '{"data": [{"paragraphs": [{"context": "a b", "qas": [{"id": "q", "question": null, '
            '"answers": [{"text": "b", "answer_start": 2}]}]}]}]}'
        },
        'question q is no text but None',
    ),
    'tags that are missing': (TaskConfig('tagging', '{d}'), {'train.txt': 'a\nb\n'}, 'train.txt: has words alone'),
    'no entity': (TaskConfig('tagging', '{d}'), {'train.txt': 'a O\nb O\n'}, 'training has no tag but O'),
    'column 0': (
        TaskConfig('table', '{d}', first='0', label='1'),
        {'train.tsv': 'a\tx\nb\ty'},
        'train.tsv: there is no column 0: columns without a header count from 1',
    ),
    'a column in other digits': (
        TaskConfig('table', '{d}', first='\u00b2', label='1'),
        {'train.tsv': 'a\tx\nb\ty'},
        'has no column \u00b2',
    ),
    'a file for a folder': (
        TaskConfig('rte', '{d}/train.tsv'),
        {'train.tsv': 'sentence1\tsentence2\tlabel\na\tb\tentailment'},
        'train.tsv: is a file: for task rte name the folder with train.tsv',
    ),
    'a class named like no gold label': (
        TaskConfig('table', '{d}', first='t', label='l'),
        {'train.tsv': 't\tl\na\t+\nb\t-\nc\t+'},
        "two are needed; {d}/train.tsv: left out 1 without a gold label (none, or '-'), line 3",
    ),
    'no question': (TaskConfig('squad1', '{d}'), {'train.json': '{"data": []}'}, 'train.json: has no question'),
}


@pytest.mark.parametrize('fault', FAULTS)
def test_a_fault_is_one_line_that_names_it(fault, tmp_path):
    config, files, message = FAULTS[fault]
    for name, content in files.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    given = TaskConfig(**{**vars(config), 'data_dir': config.data_dir.replace('{d}', str(tmp_path))})
    with pytest.raises(UserError) as error:
        load_task(given)
    assert message.replace('{d}', str(tmp_path)) in str(error.value) and '\n' not in str(error.value)


def test_faults_of_questions(tmp_path):
    def fault(task, paragraphs):
        with pytest.raises(UserError) as error:
            load_task(TaskConfig(task, str(write_squad(tmp_path / 'train.json', paragraphs))))
        assert '\n' not in str(error.value)
        return str(error.value)

    off = [('A', CONTEXT, [(f'q{i}', '?', [('1966', answer('1966')[1] + 1)]) for i in range(5)])]
    assert fault('squad1', off) == (
        f"{tmp_path}/train.json: 5 of 5 questions have an answer that is not in its place: q0 ('1966' is not at "
        f"{off[0][2][0][2][0][1]}), q1 ('1966' is not at {off[0][2][0][2][0][1]}), q2 ('1966' is not at "
        f'{off[0][2][0][2][0][1]}) and 2 more; answer_start counts characters (code points) of the context, from 0'
    )
    bytes_counted = [('A', CONTEXT, [('b', '?', [('1966', CONTEXT.encode().index(b'1966'))])])]
    assert 'is not in its place: b' in fault('squad1', bytes_counted)
    assert 'question i has no answer: give --task squad2' in fault('squad1', [('A', 'x', [('i', '?', None)])])
    # Whether it says that it is impossible or not.
    assert 'question b2 has no answer: give --task squad2' in fault(
        'squad1', [('B', 'Nobody won.', [('b1', 'Who?', [('Nobody', 0)]), ('b2', 'Where?', [])])]
    )
    assert 'two questions have the same id' in fault('squad1', [PARAGRAPHS[1], PARAGRAPHS[1]])


def test_the_flags_of_a_task_are_checked():
    for config, message in (
        ({'task': 'table', 'first': 'a'}, 'needs --first and --label'),
        ({'task': 'cola', 'first': 'a'}, 'first, second, target are for table'),
        ({'task': 'squad1', 'label': 'a'}, 'label is for table'),
    ):
        with pytest.raises(ValueError, match=message):
            TaskConfig(**config)
