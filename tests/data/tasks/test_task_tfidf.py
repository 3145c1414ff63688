"""TF-IDF with logistic regression: finds words that tell a label, and nothing where nothing tells."""

import numpy as np
import pytest

from data.tasks.task import Task, TextExample
from data.tasks.tfidf import tfidf_scores

METRICS = ('accuracy', 'macro_f1')


def task(train, dev, kind='classification', labels=('no', 'yes')) -> Task:
    splits = {
        split: [TextExample(str(number), *each) for number, each in enumerate(examples)]
        for split, examples in (('train', train), ('dev', dev), ('dev_mismatched', dev[::-1]))
    }
    return Task('case', kind, labels, METRICS, splits)


def examples(count: int, seed: int, tell: bool, pair: bool = False) -> list[tuple]:
    """Random words; where they `tell`, one word, in the second sentence of a pair, decides the label."""
    random, found = np.random.default_rng(seed), []
    for number in range(count):
        label = ('no', 'yes')[number % 2]
        words = [f'w{word}' for word in random.integers(0, 40, 8)]
        told = [*words, {'no': 'zero', 'yes': 'one'}[label]] if tell else words
        found.append((' '.join(words), ' '.join(told), label) if pair else (' '.join(told), None, label))
    return found


@pytest.mark.parametrize('pair', [False, True])
def test_a_word_that_tells_is_found_in_either_sentence(pair):
    found = tfidf_scores(task(examples(400, 0, True, pair), examples(30, 1, True, pair)), ['dev', 'dev_mismatched'])
    assert found == {split: {'accuracy': 100.0, 'macro_f1': 100.0} for split in ('dev', 'dev_mismatched')}


def test_nothing_is_found_where_nothing_tells():
    found = tfidf_scores(task(examples(80, 0, False), examples(400, 1, False)), ['dev'])
    assert 40 < found['dev']['accuracy'] < 60


def test_the_sentences_of_a_pair_are_told_apart():
    """The same two words in both orders: only a count of each side knows which was first."""
    sides = [('a b', 'c d', 'yes'), ('c d', 'a b', 'no')] * 20
    assert tfidf_scores(task(sides, sides), ['dev'])['dev']['accuracy'] == 100.0


def test_of_one_label_in_train_that_label_is_always_guessed():
    train, dev = [('a b', None, 'no'), ('c d', None, 'no')], [('a', None, 'no'), ('c', None, 'yes')]
    assert tfidf_scores(task(train, dev), ['dev'])['dev']['accuracy'] == 50.0


def test_labels_are_mapped_by_name():
    words = examples(80, 0, True)
    straight = tfidf_scores(task(words, words), ['dev'])
    assert tfidf_scores(task(words, words, labels=('yes', 'no')), ['dev']) == straight


def test_other_kinds_of_tasks_have_none():
    assert tfidf_scores(task([('a', None, 1.0)], [('b', None, 2.0)], 'regression', ()), ['dev']) == {}
