"""Passages as rows: overlapping windows of a passage, each behind the question, with places in characters."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from data.offsets import Located
from data.tasks.task import Answer, Question
from data.tokenizer import Tokenizer

QUESTION_TOKENS = 64
"""Tokens of a question that are kept (Devlin et al. 2018's code)."""


class WindowRow(NamedTuple):
    """[CLS] question [SEP] a part of the passage [SEP], L tokens with the specials."""

    question: np.ndarray
    """int32, without specials."""
    passage: np.ndarray
    """int32, without specials."""
    answer: tuple[int, int]
    """First and last token of an answer that lies in this part, counted in the row; (0, 0), [CLS], if none does."""
    spans_Lx2: np.ndarray
    """int32: each token's [begin, end) in the passage's characters; -1 for what is not of the passage."""


def question_rows(
    questions: Sequence[Question], tokenizer: Tokenizer, max_length: int, stride: int
) -> Iterator[list[WindowRow]]:
    """The rows of each question; those after the first begin `stride` tokens after the one before.

    Raises:
      ValueError: a stride that is not positive.
    """
    if stride < 1:
        raise ValueError(f'stride is {stride}: use 1 or more')
    passages: dict[str, Located] = {}
    ids = tokenizer.encode([question.question for question in questions])
    # The question leaves the passage half of a short row.
    longest = min(QUESTION_TOKENS, (max_length - 3) // 2)
    for question, tokens in zip(questions, ids, strict=True):
        if question.context not in passages:
            passages[question.context] = tokenizer.locate([question.context])[0]
        yield _windows(question, tokens[:longest], passages[question.context], max_length, stride)


def _windows(question: Question, tokens: np.ndarray, passage: Located, max_length: int, stride: int) -> list[WindowRow]:
    before, room = len(tokens) + 2, max_length - len(tokens) - 3
    answers = [_answer_tokens(answer, passage.spans_Tx2) for answer in question.answers]
    rows, start = [], 0
    while True:
        end = min(start + room, len(passage.ids))
        inside = [(first, last) for first, last in answers if start <= first <= last < end]
        spans_Lx2 = np.full((before + end - start + 1, 2), -1, np.int32)
        spans_Lx2[before:-1] = passage.spans_Tx2[start:end]
        answer = (inside[0][0] - start + before, inside[0][1] - start + before) if inside else (0, 0)
        rows.append(WindowRow(tokens, passage.ids[start:end], answer, spans_Lx2))
        if end == len(passage.ids):
            return rows
        start += min(stride, room)


def _answer_tokens(answer: Answer, spans_Tx2: np.ndarray) -> tuple[int, int]:
    """The first and the last token that share a character with an answer; (0, -1) if none does."""
    end = answer.start + len(answer.text)
    begins_T, ends_T = spans_Tx2.T
    touched = np.flatnonzero((ends_T > answer.start) & (begins_T < end) & (ends_T > begins_T))
    return (int(touched[0]), int(touched[-1])) if len(touched) else (0, -1)
