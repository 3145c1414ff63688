"""Answers out of scores: the best valid pair of start and end, and when to give none."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from data.tasks.features import Features
from data.tasks.squad_rules import gold_texts, token_f1
from data.tasks.task import Question

LONGEST = 30
"""Tokens of an answer at most (Devlin et al. 2018's code)."""


class Span(NamedTuple):
    """The best answer to a question."""

    text: str
    """context[begin:end], as it stands there."""
    begin: int
    end: int
    score: float
    """Of its start plus of its end; -inf where no pair is valid, and the text then ''."""
    null_score: float
    """Of [CLS] as start and end, the least over the question's rows: how sure the model is that there is no answer."""


def best_spans(
    features: Features, questions: Sequence[Question], start_T: np.ndarray, end_T: np.ndarray, longest: int = LONGEST
) -> list[Span]:
    """For each question its best pair over all its rows: end not before start, both in the passage.

    Of pairs that score alike, the first row's, then the one that begins and then ends first.

    Args:
      features: of these questions.
      start_T, end_T: a score for each token as the features have them; no other than finite ones are taken.
      longest: tokens from start to end, both counted.
    """
    spans = [Span('', 0, 0, -np.inf, np.inf)] * len(questions)
    for row, place in enumerate(features.examples_N.tolist()):
        inside = slice(features.offsets[row], features.offsets[row + 1])
        question, best = questions[place], spans[place]
        null_score = float(start_T[inside][0] + end_T[inside][0])
        best = best._replace(
            null_score=min(best.null_score, null_score) if np.isfinite(null_score) else best.null_score
        )
        spans_Lx2 = features.spans_Tx2[inside]
        passage_P = np.flatnonzero(spans_Lx2[:, 0] >= 0)
        first, last, score = best_pair(start_T[inside][passage_P], end_T[inside][passage_P], longest)
        if score > best.score:
            begin, end = int(spans_Lx2[passage_P[first], 0]), int(spans_Lx2[passage_P[last], 1])
            begin, end = _trimmed(question.context, begin, end)
            best = best._replace(text=question.context[begin:end], begin=begin, end=end, score=score)
        spans[place] = best
    return spans


def best_pair(start_P: np.ndarray, end_P: np.ndarray, longest: int) -> tuple[int, int, float]:
    """(i, j, start[i] + end[j]) with the highest sum of those with i <= j < i + longest; (0, 0, -inf) without any."""
    start_P, end_P = np.asarray(start_P, np.float64), np.asarray(end_P, np.float64)
    best_P, last_P = np.full(len(start_P), -np.inf), np.arange(len(start_P))
    for more in range(min(longest, len(start_P))):
        with np.errstate(invalid='ignore'):  # infinities of unlike sign
            sums = start_P[: len(start_P) - more] + end_P[more:]
        sums = np.where(np.isfinite(sums), sums, -np.inf)
        better = np.flatnonzero(sums > best_P[: len(sums)])
        best_P[better], last_P[better] = sums[better], better + more
    if not len(best_P) or not np.isfinite(best_P.max()):
        return 0, 0, -np.inf
    first = int(best_P.argmax())
    return first, int(last_P[first]), float(best_P[first])


def _trimmed(context: str, begin: int, end: int) -> tuple[int, int]:
    """Without white space at the ends: a token may be a space alone."""
    while begin < end and context[end - 1].isspace():
        end -= 1
    while begin < end and context[begin].isspace():
        begin += 1
    return begin, end


def texts(spans: Sequence[Span], threshold: float | None = None) -> list[str]:
    """The answers' texts; '' where no answer is more likely by more than `threshold` (None: an answer always)."""
    return [span.text if threshold is None or _lead(span) <= threshold else '' for span in spans]


def best_threshold(spans: Sequence[Span], questions: Sequence[Question]) -> float:
    """The threshold of `texts` with the highest F1 by SQuAD 2.0's rules on these questions.

    It lies between the leads of two questions, so that it holds for scores that differ in their last digits; of
    thresholds alike, the highest.
    """
    # Where no pair is valid there is nothing to decide.
    held = [(_lead(span), span.text, question) for span, question in zip(spans, questions, strict=True)]
    held = sorted((each for each in held if np.isfinite(each[0])), key=lambda each: each[0])
    if not held:
        return 0.0
    leads = [lead for lead, _, _ in held]
    gains = [_f1(text, question) - _f1('', question) for _, text, question in held]
    # totals[k]: what is gained where the k with the lowest leads are answered. Equal leads are answered together.
    totals = np.round(np.cumsum([0.0, *gains]), 9)
    apart = np.array([True, *(low < high for low, high in itertools.pairwise(leads)), True])
    answered = int(np.flatnonzero(apart & (totals == totals[apart].max()))[-1])
    low, high = [leads[0] - 1, *leads, leads[-1] + 1][answered : answered + 2]
    middle = (low + high) / 2
    return middle if low <= middle < high else low


def _f1(text: str, question: Question) -> float:
    return max(token_f1(text, gold, True) for gold in gold_texts(question, True))


def _lead(span: Span) -> float:
    """By how much no answer is more likely than this one."""
    return float(span.null_score - span.score)
