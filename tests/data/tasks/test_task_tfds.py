"""tfds: tasks, on real TFDS data sets built here and read without TensorFlow."""

import sys

import numpy as np
import pytest
import tensorflow_datasets as tfds

from data.errors import UserError
from data.tasks.config import TaskConfig
from data.tasks.registry import load_task
from data.tasks.task import Answer
from tests.data.tasks.task_files import CONTEXT, answer

CLASSES = tfds.features.ClassLabel
TEXT = tfds.features.Text
GOLDS = [answer('Łódź'), answer('1966')]
ENTAILED = ['entailment', 'not_entailment']
MNLI = ['entailment', 'neutral', 'contradiction']


class Made(tfds.core.GeneratorBasedBuilder, skip_registration=True):
    """A data set of the examples given in its config."""

    VERSION = tfds.core.Version('1.0.0')

    def _info(self):
        features = tfds.features.FeaturesDict(self.builder_config.features)
        return tfds.core.DatasetInfo(builder=self, features=features)

    def _split_generators(self, dl_manager):
        return {name: iter(list(enumerate(found))) for name, found in self.builder_config.examples.items()}

    def _generate_examples(self):
        """Examples are given above."""


class Config(tfds.core.BuilderConfig):
    def __init__(self, name, features, examples):
        super().__init__(name=name)
        self.features, self.examples = features, examples


def pair(first, second, label, idx=0, names=('premise', 'hypothesis')):
    return {names[0]: first, names[1]: second, 'label': label, 'idx': idx}


SETS = {
    'glue/cola': Config(
        'cola',
        {'sentence': TEXT(), 'label': CLASSES(names=['unacceptable', 'acceptable']), 'idx': np.int32},
        {
            'train': [{'sentence': f'The {i} — “x”', 'label': i % 2, 'idx': 10 + i} for i in range(6)],
            'validation': [{'sentence': 'A dog', 'label': 1, 'idx': 0}],
            'test': [{'sentence': 'A cat', 'label': -1, 'idx': 3}],
        },
    ),
    'glue/mnli': Config(
        'mnli',
        {'premise': TEXT(), 'hypothesis': TEXT(), 'label': CLASSES(names=MNLI), 'idx': np.int32},
        {
            'train': [pair(f'p{i}', 'h', i % 3) for i in range(6)],
            'validation_matched': [pair('m', 'h', 2)],
            'validation_mismatched': [pair('mm', 'h', 0)],
            'test_matched': [pair('t', 'h', -1)],
            'test_mismatched': [pair('tt', 'h', -1)],
        },
    ),
    'glue/stsb': Config(
        'stsb',
        {'sentence1': TEXT(), 'sentence2': TEXT(), 'label': np.float32, 'idx': np.int32},
        {
            'train': [pair('a', 'b', 2.5, names=('sentence1', 'sentence2'))],
            'validation': [pair('c', 'd', 0.0, names=('sentence1', 'sentence2'))],
            'test': [pair('e', 'f', -1.0, names=('sentence1', 'sentence2'))],
        },
    ),
    'glue/qnli': Config(
        'qnli',
        {'question': TEXT(), 'sentence': TEXT(), 'label': CLASSES(names=ENTAILED), 'idx': np.int32},
        {'train': [pair(f'q{i}?', 's', i % 2, i, ('question', 'sentence')) for i in range(4)]},
    ),
    'squad/v2.0': Config(
        'v2.0',
        {
            'id': TEXT(), 'title': TEXT(), 'context': TEXT(), 'question': TEXT(), 'is_impossible': np.bool_,
            'answers': tfds.features.Sequence({'text': TEXT(), 'answer_start': np.int32}),
        },
        {
            name: [
                {'id': f'{name}1', 'title': 'A', 'context': CONTEXT, 'question': 'Who?', 'is_impossible': False,
                 'answers': [{'text': text, 'answer_start': start} for text, start in GOLDS]},
                {'id': f'{name}2', 'title': 'B', 'context': 'None.', 'question': 'Why?', 'is_impossible': True,
                 'answers': []},
            ]
            for name in ('train', 'validation')
        },
    ),
    'conll2003/default': Config(
        'default',
        {
            'tokens': tfds.features.Sequence(TEXT()),
            'ner': tfds.features.Sequence(CLASSES(names=['O', 'B-PER', 'I-PER', 'B-LOC', 'I-LOC'])),
            'pos': tfds.features.Sequence(CLASSES(names=['NN', 'VB'])),
        },
        {
            name: [{'tokens': ['Peter', 'Ó', 'left', 'Rome'], 'ner': [1, 2, 0, 3], 'pos': [0, 0, 1, 0]}]
            for name in ('train', 'dev', 'test')
        },
    ),
    'reviews/plain': Config(
        'plain',
        {'text': TEXT(), 'mood': CLASSES(names=['bad', 'good']), 'stars': np.float32, 'note': TEXT()},
        {
            'train': [{'text': f'review {i}', 'mood': i % 2, 'stars': i / 2, 'note': 'x'} for i in range(20)],
            'unsupervised': [{'text': 'u', 'mood': -1, 'stars': 0, 'note': 'x'}],
        },
    ),
}  # fmt: skip


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp('tfds')
    for name, config in SETS.items():
        builder = type('Builder', (Made,), {'name': name.split('/')[0]}, skip_registration=True)
        builder(data_dir=folder, config=config, file_format='array_record').download_and_prepare()
    return folder


def load(folder, name, **options):
    return load_task(TaskConfig(f'tfds:{folder}/{name}/1.0.0', **options))


def test_glue_is_known_by_its_name(folder):
    cola = load(folder, 'glue/cola')
    assert (
        cola.name == 'tfds:glue/cola'
        and cola.metrics == ('matthews', 'accuracy')
        and cola.labels == ('unacceptable', 'acceptable')
    )
    found = {(example.id, example.first, example.second, example.label) for example in cola.splits['train']}
    assert ('11', 'The 1 — “x”', None, 'acceptable') in found and len(found) == 6
    assert cola.splits['test'][0].label is None and cola.splits['test'][0].id == '3'
    assert cola.written == {'unacceptable': '0', 'acceptable': '1'}
    mnli = load(folder, 'glue/mnli')
    assert {split: examples[0].label for split, examples in mnli.splits.items() if split != 'train'} == {
        'dev': 'contradiction', 'dev_mismatched': 'entailment', 'test': None, 'test_mismatched': None,
    }  # fmt: skip
    assert (mnli.splits['dev'][0].first, mnli.splits['dev'][0].second) == ('m', 'h')
    stsb = load(folder, 'glue/stsb')
    assert stsb.kind == 'regression' and stsb.metrics == ('pearson', 'spearman')
    assert [stsb.splits[split][0].label for split in ('train', 'dev', 'test')] == [2.5, 0.0, None]
    qnli = load(folder, 'glue/qnli')
    assert qnli.splits['train'][0].first[0] == 'q' and qnli.splits['train'][0].second == 's'
    assert 'tensorflow' not in sys.modules


def test_questions_tags_and_any_other_features(folder):
    squad = load(folder, 'squad/v2.0')
    assert squad.no_answer and squad.kind == 'span' and set(squad.splits) == {'train', 'dev'}
    questions = {question.id: question for question in squad.splits['dev']}
    assert questions['validation2'].impossible and questions['validation1'].context == CONTEXT
    assert questions['validation1'].answers == (Answer(*answer('Łódź')), Answer(*answer('1966')))
    tags = load(folder, 'conll2003/default')
    assert tags.labels == ('O', 'B-LOC', 'I-LOC', 'B-PER', 'I-PER')
    assert tags.splits['test'][0].words == ('Peter', 'Ó', 'left', 'Rome')
    assert tags.splits['test'][0].tags == ('B-PER', 'I-PER', 'O', 'B-LOC')
    mood = load(folder, 'reviews/plain', first='text', label='mood')
    assert mood.labels == ('bad', 'good') and len(mood.splits['train']) == 18 and len(mood.splits['dev']) == 2
    stars = load(folder, 'reviews/plain', first='text', second='note', label='stars', target='numbers')
    assert stars.kind == 'regression' and stars.splits['train'][0].second == 'x'


@pytest.mark.parametrize(
    ('name', 'options', 'message'),
    [
        ('reviews/plain', {}, 'name its features with --first and --label, of mood, note, stars, text'),
        ('reviews/plain', {'first': 'text', 'label': 'label'}, 'has no feature label; it has mood'),
        ('conll2003/default', {'label': 'pos'}, 'feature pos holds no tags O, B-TYPE and I-TYPE'),
        ('conll2003/default', {'label': 'chunks'}, 'has no feature chunks; name its tags with --label'),
        ('glue/nothing', {}, 'Error'),
    ],
)
def test_what_cannot_be_read_is_one_line(folder, name, options, message):
    with pytest.raises(UserError, match=message) as error:
        load(folder, name, **options)
    assert '\n' not in str(error.value) and str(error.value).startswith('--task tfds:')


def test_the_folder_of_data_sets_may_be_named(monkeypatch):
    seen = []

    def data_source(name, **options):
        seen.append((name, options))
        raise ValueError('not prepared')

    monkeypatch.setattr(tfds, 'data_source', data_source)
    with pytest.raises(UserError, match='--task tfds:glue/cola: ValueError: not prepared'):
        load_task(TaskConfig('tfds:glue/cola', data_dir='/some/where'))
    assert seen == [('glue/cola', {'split': None, 'data_dir': '/some/where'})]
