"""A task, its files or an encoder that fine-tuning cannot use: one line that names it, exit code 2, nothing written."""

import json
import shutil

import jax
import pytest
from tokenizers import BertWordPieceTokenizer

from model import mlm
from model.config import ModelConfig
from model.huggingface import write_bert

PIECES = [
    *('[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'),
    *('war', 'peace', 'the', 'goes', 'on', 'is', 'here', 'it', 'was', 'in', '1989', 'when'),
]
TABLE = ['--task', 'table', '--data-dir', 'files', '--first', 'text', '--label', 'label']
NEW = ['--workdir', 'new', '--run.compilation-cache', '']
INFERENCE = 'sentence1\tsentence2\tgold_label\nwar\tpeace\tcontradiction\n'
GOOD = 'text\tlabel\nwar\tyes\npeace\tno\n'


@pytest.fixture
def bert(here):
    """A folder as `transformers` saves it."""
    model = ModelConfig(layers=1, width=16, heads=2, feed_forward=32, max_length=16, vocab_size=len(PIECES))
    write_bert(here / 'bert', model, mlm.init(jax.random.key(0), model))
    write_tokenizer(here / 'bert', PIECES)
    return here / 'bert'


def write_tokenizer(folder, pieces) -> None:
    path = folder / 'vocab.txt'
    path.write_text('\n'.join(pieces) + '\n')
    BertWordPieceTokenizer(str(path)).save(str(folder / 'tokenizer.json'))


def question(number: int, start: int) -> dict:
    return {'id': f'q{number}', 'question': 'when', 'answers': [{'text': '1989', 'answer_start': start}]}


def passage(starts: list[int]) -> str:
    paragraph = {'context': 'it was in 1989', 'qas': [question(number, start) for number, start in enumerate(starts)]}
    return json.dumps({'data': [{'title': 'a', 'paragraphs': [paragraph]}]})


@pytest.mark.parametrize(
    ('words', 'files', 'said'),
    [
        (['--task', 'snli', '--data-dir', 'files'], {}, '--task snli: there is no such task; use cola, sst2'),
        (
            TABLE,
            {'train.tsv': GOOD, 'dev.tsv': 'text\tlabel\nwar\tmaybe\n'},
            "task table, dev: example 0 has the label 'maybe', which training has not seen; it has no, yes",
        ),
        (
            ['--task', 'mnli', '--data-dir', 'files'],
            {'train.tsv': INFERENCE, 'dev_matched.tsv': INFERENCE},
            '--data_dir files: has no dev_mismatched.tsv: MNLI is reported on both of its dev files',
        ),
        (TABLE, {'train.tsv': 'text\tmark\nwar\tyes\n'}, 'files/train.tsv: has no column label; its first line has'),
        (TABLE, {'train.tsv': ''}, 'files/train.tsv: empty: put the examples in it'),
        (
            ['--task', 'squad1', '--data-dir', 'files/train.json'],
            {'train.json': passage([10, 9, 11])},
            "files/train.json: 2 of 3 questions have an answer that is not in its place: q1 ('1989' is not at 9), q2 "
            "('1989' is not at 11); answer_start counts characters (code points) of the context, from 0",
        ),
    ],
)
def test_tasks(refused, bert, here, words, files, said):
    (here / 'files').mkdir()
    for name, content in files.items():
        (here / 'files' / name).write_text(content)
    assert said in refused('finetune', '--init', 'hf:bert', *words, *NEW)


@pytest.mark.parametrize('pieces', [[*PIECES, 'more'], PIECES[:-2]])
def test_weights_beside_the_tokenizer_of_another_model(refused, bert, here, pieces):
    (here / 'files').mkdir()
    (here / 'files' / 'train.tsv').write_text(GOOD)
    write_tokenizer(bert, pieces)
    said = refused('finetune', '--init', 'hf:bert', *TABLE, *NEW)
    assert said == f'bert: the tokenizer has {len(pieces)} pieces, the model {len(PIECES)}: it is of another model'


def test_a_workdir_with_another_tokenizer(refused, finished, here, other_tokenizer):
    (here / 'files').mkdir()
    (here / 'files' / 'train.tsv').write_text(GOOD)
    shutil.copytree(finished[0], here / 'finished')
    shutil.copy(other_tokenizer, here / 'finished' / 'tokenizer' / 'tokenizer.model')
    said = refused('finetune', '--init', 'finished', *TABLE, *NEW)
    assert said == 'finished/tokenizer is not the tokenizer that finished was trained with'
