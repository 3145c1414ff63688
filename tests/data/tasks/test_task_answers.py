"""The best valid pair of start and end, over all windows of a question; and when to give no answer."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.tasks.answers import Span, best_pair, best_spans, best_threshold, texts
from data.tasks.features import encode
from data.tasks.scores import scores
from data.tasks.task import Answer, Question, Task
from tests.data.tasks.task_files import CONTEXT
from tests.data.tasks.test_task_features import SPANS, tokenizer

SQUAD2 = Task('squad2', 'span', (), ('f1', 'exact_match'), {}, no_answer=True)


def test_the_best_pair_is_not_two_best_ends():
    start = [0, 0, 2.0, 0, 0, 3.1, 0]
    end = [0, 2.6, 0, 0, 1.9, 0, 0.5]
    assert np.argmax(start) == 5 and np.argmax(end) == 1
    assert best_pair(start, end, 30) == (2, 4, pytest.approx(3.9))
    assert best_pair(start, end, 2) == (5, 6, pytest.approx(3.6))  # (2, 4) is three tokens


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), max_size=12), st.integers(1, 13))
@settings(deadline=None)
def test_the_best_pair_is_the_first_of_the_best(pairs, longest):
    start, end = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    valid = [(i, j) for i in range(len(pairs)) for j in range(i, min(i + longest, len(pairs)))]
    best = max((start[i] + end[j] for i, j in valid), default=-np.inf)
    first = next(((i, j) for i, j in valid if start[i] + end[j] == best), (0, 0))
    assert best_pair(start, end, longest) == (*first, best)


def test_scores_that_are_not_finite_are_not_taken():
    assert best_pair([np.nan, 1, np.inf], [0, 0, -np.inf], 5) == (1, 1, 1)
    assert best_pair([np.nan], [0], 5) == (0, 0, -np.inf) and best_pair([], [], 5) == (0, 0, -np.inf)


def scored(features, wish):
    """Scores of each token; `wish` has (row, token, start, end)."""
    start_T, end_T = np.zeros((2, len(features.tokens_T)))
    for row, token, start, end in wish:
        start_T[features.offsets[row] + token], end_T[features.offsets[row] + token] = start, end
    return start_T, end_T


@pytest.mark.parametrize('kind', ['unigram', 'cased', 'byte-level'])
def test_the_answer_is_the_passages_own_text_and_never_the_questions(kind):
    made = tokenizer(kind)
    question = Question('q', 'Who was it of the States?', CONTEXT, ())
    features = encode(SPANS, [question], made, 128)
    (row,) = np.unique(features.examples_N)
    inside = np.flatnonzero(features.spans_Tx2[:, 0] >= 0)
    first, last = inside[0], inside[-1]
    # [CLS], the question and both [SEP] score highest, and are not to be chosen.
    start_T, end_T = np.full((2, len(features.tokens_T)), 9.0)
    start_T[inside], end_T[inside] = 0, 0
    start_T[inside[3]], end_T[inside[6]] = 2, 2
    (span,) = best_spans(features, [question], start_T, end_T)
    assert CONTEXT[span.begin : span.end] == span.text and span.score == 4 and span.null_score == 18
    assert span.begin == features.spans_Tx2[inside[3], 0] and span.end <= features.spans_Tx2[inside[6], 1]
    start_T[first], end_T[last] = 7, 7
    (span,) = best_spans(features, [question], start_T, end_T, longest=1000)
    assert span.text == CONTEXT and row == 0


def test_an_answer_has_no_white_space_at_its_ends():
    made = tokenizer('unigram')
    context = 'the  日本 the'
    question = Question('q', 'Who?', context, ())
    features = encode(SPANS, [question], made, 64)
    pieces = made.pieces(features.tokens_T)
    space = next(place for place, piece in enumerate(pieces) if piece == '▁' and place > pieces.index('[SEP]') + 1)
    start_T, end_T = np.zeros((2, len(pieces)))
    start_T[space - 1] = end_T[space] = 5  # the word before the space, to the space itself
    (span,) = best_spans(features, [question], start_T, end_T)
    assert span.text == 'the' and context[span.begin : span.end] == 'the' and span.begin == 0
    start_T[:], end_T[:] = 0, 0
    start_T[space] = end_T[-3] = 5
    (span,) = best_spans(features, [question], start_T, end_T)
    assert span.text and span.text == context[span.begin : span.end] == span.text.strip()


def test_the_best_of_all_windows_and_the_least_null_score():
    made = tokenizer('unigram')
    context = 'the States ' * 40
    questions = [Question('q', 'Who?', context, ()), Question('r', 'Who?', context, ())]
    features = encode(SPANS, questions, made, 32, stride=16)
    rows = np.flatnonzero(features.examples_N == 0)
    assert len(rows) > 3
    wish = [(rows[0], 8, 1, 1), (rows[2], 9, 3, 0), (rows[2], 10, 0, 3), (rows[1], 0, -2, -1)]
    start_T, end_T = scored(features, wish)
    span, other = best_spans(features, questions, start_T, end_T)
    places = features.spans_Tx2[features.offsets[rows[2]] :]
    assert (span.begin, span.end) == (places[9, 0], places[10, 1]) and span.score == 6 and span.null_score == -3
    assert other.score == 0 and other.null_score == 0
    # Windows apart share a pair's tokens: no pair spans two rows.
    start_T, end_T = scored(features, [(rows[0], 20, 5, 0), (rows[1], 20, 0, 5)])
    (span, _) = best_spans(features, questions, start_T, end_T)
    assert span.score == 5


def test_a_question_without_a_passage_or_with_broken_scores_has_no_answer():
    made = tokenizer('unigram')
    questions = [Question('q', 'Who?', '', (), True), Question('r', 'Who?', 'the States', ())]
    features = encode(SPANS, questions, made, 32)
    spans = best_spans(features, questions, *np.full((2, len(features.tokens_T)), np.nan))
    assert texts(spans) == ['', ''] and texts(spans, 0.0) == ['', '']
    assert np.isfinite(best_threshold(spans, questions))


def span(text, score, null_score):
    return Span(text, 0, 0, score, null_score)


@given(
    st.lists(
        st.tuples(st.sampled_from(['right', 'right wrong', 'wrong']), st.integers(-4, 4), st.booleans()), max_size=9
    )
)
@settings(deadline=None)
def test_no_threshold_is_better_than_the_tuned_one(cases):
    spans = [span(text, 0.0, float(lead)) for text, lead, _ in cases]
    questions = [
        Question(str(i), '?', 'right wrong', () if impossible else (Answer('right', 0),), impossible)
        for i, (_, _, impossible) in enumerate(cases)
    ]
    if not cases:
        assert np.isfinite(best_threshold([], []))
        return

    def f1(threshold):
        return scores(SQUAD2, texts(spans, threshold), questions)['f1']

    tuned = best_threshold(spans, questions)
    assert f1(tuned) == pytest.approx(max(f1(lead / 2) for lead in range(-10, 11)))
    assert f1(tuned) == f1(np.nextafter(tuned, -9)) == f1(np.nextafter(tuned, 9))  # it stands between two leads


def test_the_threshold_answers_where_an_answer_is_likelier():
    spans = [span('right', 3, 1), span('right', 1, 3), span('right', 2, 2.5)]
    questions = [
        Question('0', '?', 'right', (Answer('right', 0),)),
        Question('1', '?', 'right', (), True),
        Question('2', '?', 'right', (Answer('right', 0),)),
    ]
    threshold = best_threshold(spans, questions)
    assert 0.5 < threshold < 2 and texts(spans, threshold) == ['right', '', 'right']
    assert scores(SQUAD2, texts(spans, threshold), questions) == {'f1': 100, 'exact_match': 100}
    assert texts(spans) == ['right'] * 3
    for order in itertools.permutations(range(3)):
        assert best_threshold([spans[i] for i in order], [questions[i] for i in order]) == threshold
