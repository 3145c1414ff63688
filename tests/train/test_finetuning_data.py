"""What is trained on, chosen by and reported; and that outputs which name the gold answers score 100."""

import dataclasses
import functools

import numpy as np
import pytest

from data.clean import one_line
from data.errors import UserError
from data.sentencepiece_tokenizer import SentencePieceTokenizer, train_sentencepiece
from data.tasks.config import TaskConfig
from data.tasks.registry import load_task
from data.tasks.task import Answer, Question, TaggedSentence, Task, TextExample
from tests.data.corpora import speeches
from tests.data.tasks.task_files import PARAGRAPHS, write_squad
from train.finetuning.config import FinetuneConfig
from train.finetuning.task_data import SLICE, TaskData
from train.finetuning.tune import Result, best_points, chosen

TAGS = ('O', 'B-X', 'I-X')


@functools.cache
def tokenizer() -> SentencePieceTokenizer:
    return SentencePieceTokenizer(train_sentencepiece([one_line(text) for text in speeches(4)], 'unigram', 400), 'case')


def question(number: int, words: list[str], place: int | None) -> Question:
    context = ' '.join(words)
    if place is None:
        return Question(str(number), 'What is it?', context, (), True, str(number))
    answer = Answer(words[place], len(' '.join(words[:place])) + (place > 0))
    return Question(str(number), 'What is it?', context, (answer,), False, str(number))


def task(kind: str, no_answer: bool = False) -> Task:
    """Twenty examples of real words, the first long enough to go into several rows where a kind has such."""
    words = ' '.join(speeches(6)).split()
    stretches = [words[40 * i : 40 * i + (90 if i == 0 else 8)] for i in range(20)]
    made = []
    for i, stretch in enumerate(stretches):
        if kind == 'tagging':
            made.append(TaggedSentence(str(i), tuple(stretch), tuple(TAGS[(j % 4) % 3] for j in range(len(stretch)))))
        elif kind == 'span':
            # The rules of 1.1 give no credit for an article alone.
            place = next(j for j, word in enumerate(stretch) if j >= (70 if i == 0 else 0) and len(word) > 3)
            made.append(question(i, stretch, None if no_answer and i % 3 == 0 else place))
        else:
            label = (i % 7) / 2 if kind == 'regression' else ('no', 'yes')[i % 2]
            made.append(TextExample(str(i), ' '.join(stretch), None, label))
    labels = {'tagging': TAGS, 'classification': ('no', 'yes')}.get(kind, ())
    metrics = {'tagging': ('entity_f1',), 'classification': ('matthews', 'accuracy'), 'span': ('f1', 'exact_match')}
    return Task(
        'case', kind, labels, metrics.get(kind, ('pearson', 'spearman')), {'train': made, 'dev': made[:12]}, no_answer
    )


def data(each: Task, choices: int = 1, longest: int = 24, **fields) -> TaskData:
    return TaskData.of(each, tokenizer(), FinetuneConfig(stride=8, **fields), choices, longest)


def gold_outputs(found: TaskData, split: str) -> np.ndarray:
    """What a head that knows the answers puts out."""
    features = found.features(split)
    if found.task.kind == 'regression':
        return features.targets[:, None]
    if found.task.kind != 'span':
        return np.eye(found.outputs)[np.maximum(features.targets, 0)] * 9
    outputs = np.zeros((len(features.tokens_T), 2))
    for row, (first, last) in enumerate(features.targets):
        outputs[features.offsets[row] + first, 0] = outputs[features.offsets[row] + last, 1] = 9
    return outputs


@pytest.mark.parametrize(
    ('kind', 'no_answer'),
    [('classification', False), ('regression', False), ('tagging', False), ('span', False), ('span', True)],
)
def test_outputs_that_name_the_gold_answers_score_100(kind, no_answer):
    found = data(task(kind, no_answer), select_on='dev')
    outputs = gold_outputs(found, 'dev')
    threshold = found.threshold(outputs)
    assert (threshold is None) == (not no_answer)
    predictions = found.predictions('dev', outputs, threshold)
    scores = found.scores('dev', predictions)
    assert scores == pytest.approx(dict.fromkeys(found.task.metrics, 100))
    assert not found.is_degenerate('dev', predictions, scores)
    rows = len(found.features('dev'))
    assert rows > 12 if kind in ('tagging', 'span') else rows == 12
    wrong = found.predictions('dev', -outputs, threshold)
    assert found.scores('dev', wrong)[found.task.primary] < 60


@pytest.mark.parametrize('filler', [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ('kind', 'no_answer'),
    [('classification', False), ('regression', False), ('tagging', False), ('span', False), ('span', True)],
)
def test_outputs_that_are_not_finite_are_scored_and_learnt_nothing(kind, no_answer, filler):
    found = data(task(kind, no_answer))
    gold = gold_outputs(found, 'dev')
    predictions = found.predictions('dev', np.full_like(gold, filler), None)
    scores = found.scores('dev', predictions)
    assert set(scores) == set(found.task.metrics) and np.isfinite(list(scores.values())).all()
    assert found.is_degenerate('dev', predictions, scores)
    gold[: len(gold) // 2] = filler  # a part of them alone
    scores = found.scores('dev', found.predictions('dev', gold, None))
    assert all(0 <= value < 100 for value in scores.values())


def test_one_answer_always_is_degenerate():
    found = data(task('classification'))
    predictions = found.predictions('dev', np.tile([1.0, 0.0], (12, 1)), None)
    assert found.is_degenerate('dev', predictions, found.scores('dev', predictions))


@pytest.mark.parametrize(
    ('fields', 'choices', 'no_answer', 'chosen_by'),
    [
        ({}, 1, False, ''),
        ({}, 6, False, SLICE),
        ({'patience': 2}, 1, False, SLICE),
        ({'patience': 2, 'select_on': 'dev'}, 1, False, 'dev'),
        ({}, 1, True, SLICE),
    ],
)
def test_a_slice_of_train_is_held_out_where_something_is_chosen(fields, choices, no_answer, chosen_by):
    whole = task('span' if no_answer else 'classification', no_answer)
    found = data(whole, choices, slice_percent=25.0, **fields)
    assert found.chosen_by == chosen_by and found.reported == ['dev']
    train = found.task.examples('train')
    assert len(train) == (15 if chosen_by == SLICE else 20)
    if chosen_by == SLICE:
        held = found.task.examples(SLICE)
        assert len(held) == 5 and not {e.id for e in held} & {e.id for e in train}


def test_rows_are_no_longer_than_the_encoder_has_seen_and_examples_no_more_than_asked():
    found = data(task('classification'), longest=12, max_length=64, train_rows=7)
    assert found.max_length == 12 and found.features('train').lengths_N.max() == 12
    assert len(found.features('train')) == 7 and len(found.features('dev')) == 12


def test_every_split_whose_labels_are_known_is_reported():
    whole = task('classification')
    hidden = [dataclasses.replace(example, label=None) for example in whole.examples('dev')]
    splits = {**whole.splits, 'dev_mismatched': whole.examples('dev'), 'test': hidden}
    found = data(dataclasses.replace(whole, splits=splits))
    assert found.reported == ['dev', 'dev_mismatched']
    assert len(found.predictions('test', gold_outputs(data(whole), 'dev'), None).values) == 12


def test_a_question_without_answers_does_not_keep_dev_from_being_reported(tmp_path):
    for split in ('train', 'dev'):
        write_squad(tmp_path / f'{split}.json', [*PARAGRAPHS, ('D', 'None.', [('d1', 'Why?', [])])])
    found = data(load_task(TaskConfig('squad2', str(tmp_path))), select_on='dev')
    assert found.reported == ['dev'] and found.majority('dev')['exact_match'] == pytest.approx(100 / 7)


def test_nothing_to_train_on_or_to_choose_by_is_a_mistake():
    whole = task('classification')
    with pytest.raises(UserError, match='no example to train on'):
        data(dataclasses.replace(whole, splits={'train': [], 'dev': whole.examples('dev')}))
    with pytest.raises(UserError, match='has no dev split'):
        data(dataclasses.replace(whole, splits={'train': whole.examples('train')}), patience=1, select_on='dev')


def result(arm: str, point: str, seed: int, selection: float | None) -> Result:
    return Result('case', arm, 0, seed, point, 1, None, selection, None, {}, {})


def test_each_arm_is_reported_at_the_point_that_is_best_on_the_mean_of_its_runs():
    scores = {('a', 'slow'): (60, 70), ('a', 'fast'): (90, None), ('b', 'slow'): (50, 50), ('b', 'fast'): (50, 50)}
    results = [result(*name, seed, s) for name, each in scores.items() for seed, s in enumerate(each)]
    assert best_points(results) == {'a': 'slow', 'b': 'slow'}
    assert [(r.arm, r.point, r.ft_seed) for r in chosen(results)] == [
        ('a', 'slow', 0), ('a', 'slow', 1), ('b', 'slow', 0), ('b', 'slow', 1)
    ]  # fmt: skip
    assert best_points([result('a', 'only', 0, None)]) == {'a': 'only'}


def test_a_run_without_a_score_loses_against_the_worst_correlation():
    for scores in ({'failed': None, 'worse than chance': -7.0}, {'worse than chance': -7.0, 'failed': None}):
        assert best_points(result('a', *each) for each in zip(scores, (0, 0), scores.values(), strict=True)) == {
            'a': 'worse than chance'
        }
