"""Predictions in the forms of GLUE's site, conlleval and SQuAD's script."""

import json

import pytest

from data.tasks.answers import Span
from data.tasks.config import TaskConfig
from data.tasks.registry import load_task
from data.tasks.submission import write_predictions
from data.tasks.task import Question, TaggedSentence, Task, TextExample
from tests.data.tasks.task_files import write, write_glue


def test_glues_files(tmp_path):
    write_glue(tmp_path / 'glue')

    def written(name, predictions, split='test'):
        task = load_task(TaskConfig(name, str(tmp_path / 'glue')))
        (path,) = write_predictions(task, split, predictions, tmp_path / 'out')
        return path.name, path.read_bytes().decode()

    assert written('cola', ['acceptable', 'unacceptable']) == ('CoLA.tsv', 'index\tprediction\n0\t1\n1\t0\n')
    assert written('sst2', ['negative']) == ('SST-2.tsv', 'index\tprediction\n0\t0\n')
    assert written('mrpc', ['equivalent']) == ('MRPC.tsv', 'index\tprediction\n0\t1\n')
    assert written('qqp', ['duplicate']) == ('QQP.tsv', 'index\tprediction\n0\t1\n')
    assert written('mnli', ['neutral']) == ('MNLI-m.tsv', 'index\tprediction\n0\tneutral\n')
    assert written('mnli', ['entailment'], 'test_mismatched') == ('MNLI-mm.tsv', 'index\tprediction\n0\tentailment\n')
    assert written('qnli', ['not_entailment']) == ('QNLI.tsv', 'index\tprediction\n0\tnot_entailment\n')
    assert written('rte', ['entailment']) == ('RTE.tsv', 'index\tprediction\n0\tentailment\n')
    assert written('wnli', ['entailment']) == ('WNLI.tsv', 'index\tprediction\n0\t1\n')
    write(tmp_path / 'glue' / 'diagnostic' / 'diagnostic.tsv', 'index\tsentence1\tsentence2\n0\tA\tB\n')
    assert written('mnli', ['neutral'], 'test_diagnostic') == ('AX.tsv', 'index\tprediction\n0\tneutral\n')
    # Scores lie in 0 to 5.
    assert written('stsb', [5.3]) == ('STS-B.tsv', 'index\tprediction\n0\t5.000\n')
    assert written('stsb', [-0.2], 'test')[1].endswith('0\t0.000\n') and written('stsb', [2.34567])[1].endswith(
        '2.346\n'
    )
    assert sorted(path.name for path in (tmp_path / 'out').iterdir() if path.name.startswith('.')) == []
    with pytest.raises(ValueError, match='1 predictions for 2 examples'):
        written('cola', ['acceptable'])


def test_other_files(tmp_path):
    glue = Task('tfds:glue/rte', 'classification', (), (), {'test': [TextExample('5', 'a', 'b', None)]})
    assert write_predictions(glue, 'test', ['entailment'], tmp_path)[0].name == 'RTE.tsv'
    own = Task('table', 'classification', ('x', 'y'), ('accuracy',), {'dev': [TextExample('a7', 't', None, 'x')]})
    (path,) = write_predictions(own, 'dev', ['y'], tmp_path)
    assert path.name == 'dev.tsv' and path.read_text() == 'index\tprediction\na7\ty\n'
    sentences = [TaggedSentence('0', ('EU', 'in'), ('B-X', 'O')), TaggedSentence('1', ('Rome',), ('B-X',))]
    tags = Task('tagging', 'tagging', ('O', 'B-X', 'I-X'), ('entity_f1',), {'dev': sentences})
    (path,) = write_predictions(tags, 'dev', [['B-X', 'O'], ['O']], tmp_path)
    assert path.read_text() == 'EU B-X B-X\nin O O\n\nRome B-X O\n\n'
    hidden = Task('tagging', 'tagging', (), (), {'test': [TaggedSentence('0', ('EU',), None)]})
    assert write_predictions(hidden, 'test', [['O']], tmp_path)[0].read_text() == 'EU O\n\n'


def test_squads_files(tmp_path):
    questions = [Question('q1', '?', 'x', ()), Question('q2', '?', 'x', (), True)]
    task = Task('squad2', 'span', (), ('f1',), {'dev': questions}, no_answer=True)
    spans = [Span('Łódź', 0, 4, 3.0, 1.0), Span('x', 0, 1, 1.0, 2.5)]
    answers, odds = write_predictions(task, 'dev', ['Łódź', ''], tmp_path, spans)
    assert answers.name == 'predictions.json' and json.loads(answers.read_text()) == {'q1': 'Łódź', 'q2': ''}
    assert odds.name == 'null_odds.json' and json.loads(odds.read_text()) == {'q1': -2.0, 'q2': 1.5}
    (again,) = write_predictions(task, 'dev', ['a', 'b'], tmp_path)
    assert json.loads(again.read_text()) == {'q1': 'a', 'q2': 'b'}
