"""Questions against the rules of SQuAD's official scripts, written out plainly here."""

import collections
import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.tasks.scores import scores
from data.tasks.task import Answer, Question
from tests.data.tasks.test_task_answers import SQUAD2
from tests.data.tasks.test_task_features import SPANS as SQUAD1


# The official scripts' rules (evaluate-v1.1.py, evaluate-v2.0.py), restated: what they do step by step.
def official_normal(text):
    text = text.lower()
    text = ''.join(letter for letter in text if letter not in set(string.punctuation))
    text = re.sub(r'\b(a|an|the)\b', ' ', text)
    return ' '.join(text.split())


def official(version, predictions, questions):
    exact, f1 = [], []
    for predicted, question in zip(predictions, questions, strict=True):
        golds = [each.text for each in question.answers]
        if version == 2:
            golds = [gold for gold in golds if official_normal(gold) != ''] or ['']
        exacts, f1s = [], []
        for gold in golds:
            p, g = official_normal(predicted), official_normal(gold)
            exacts.append(1.0 if p == g else 0.0)
            common = collections.Counter(p.split()) & collections.Counter(g.split())
            same = sum(common.values())
            if version == 2 and (len(p.split()) == 0 or len(g.split()) == 0):
                f1s.append(1.0 if p.split() == g.split() else 0.0)
            elif same == 0:
                f1s.append(0.0)
            else:
                precision, recall = same / len(p.split()), same / len(g.split())
                f1s.append(2 * precision * recall / (precision + recall))
        exact.append(max(exacts))
        f1.append(max(f1s))
    return {'exact_match': 100 * sum(exact) / len(exact), 'f1': 100 * sum(f1) / len(f1)}


WORDS = st.lists(
    st.sampled_from(
        ['the', 'a', 'An', 'The', 'cat', 'Cat', 'cats.', "dog's", '—', '.', '!', 'U.S.', 'theme', '\u00a0', '3', '٣']
    ),
    max_size=5,
).map(' '.join)


@given(st.lists(st.tuples(WORDS, st.lists(WORDS, min_size=1, max_size=3), st.booleans()), min_size=1, max_size=4))
@settings(deadline=None)
def test_questions_against_the_official_rules(cases):
    predictions = [case[0] for case in cases]
    questions = [
        Question(str(i), '?', '', tuple(Answer(gold, 0) for gold in golds)) for i, (_, golds, _) in enumerate(cases)
    ]
    found = scores(SQUAD1, predictions, questions)
    assert found == pytest.approx(official(1, predictions, questions))
    questions = [
        Question(str(i), '?', '', () if none else tuple(Answer(gold, 0) for gold in golds), none)
        for i, (_, golds, none) in enumerate(cases)
    ]
    assert scores(SQUAD2, predictions, questions) == pytest.approx(official(2, predictions, questions))


@pytest.mark.parametrize(
    ('predicted', 'golds', 'v1', 'v2'),
    [
        ('The U.S. Senate', ['us senate'], (100, 100), (100, 100)),  # articles, case, punctuation
        ('a theme', ['theme'], (100, 100), (100, 100)),  # 'the' inside a word stays
        ('cat cat', ['cat'], (0, 200 / 3), (0, 200 / 3)),  # a word counts as often as it comes
        ('blue cat', ['cat', 'the blue cat!'], (100, 100), (100, 100)),  # the best gold answer counts
        ('', ['the'], (100, 0), (100, 100)),  # no word on either side
        ('the', [], None, (100, 100)),  # no answer, and a prediction without a word
        ('cat', [], None, (0, 0)),
        ('', ['cat'], (0, 0), (0, 0)),
        ('“cat”', ['cat'], (0, 0), (0, 0)),  # only ASCII punctuation goes
    ],
)
def test_adversarial_answers(predicted, golds, v1, v2):
    question = Question('q', '?', '', tuple(Answer(gold, 0) for gold in golds))
    for task, expected in ((SQUAD1, v1), (SQUAD2, v2)):
        if expected:
            found = scores(task, [predicted], [question])
            assert (found['exact_match'], found['f1']) == pytest.approx(expected)
