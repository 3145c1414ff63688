"""Exact match and F1 by the rules of SQuAD's official scripts (Rajpurkar et al. 2016, section 6.1; 2018, section 4).

The two versions differ: 1.1 has questions with answers alone, and counts two texts without a word as no overlap; 2.0
counts them as alike, and an answer without a word as none.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence

from data.tasks.task import Question

_ARTICLES = re.compile(r'\b(a|an|the)\b')
_PUNCTUATION = set(string.punctuation)


def normalize(text: str) -> str:
    """Lower case, without ASCII punctuation and articles, one space between words."""
    text = ''.join(letter for letter in text.lower() if letter not in _PUNCTUATION)
    return ' '.join(_ARTICLES.sub(' ', text).split())


def exact_match(predicted: str, gold: str) -> bool:
    return normalize(predicted) == normalize(gold)


def token_f1(predicted: str, gold: str, no_answer: bool) -> float:
    """F1 of the words of two texts, each word as often as it comes, in [0, 1]."""
    words, gold_words = normalize(predicted).split(), normalize(gold).split()
    if no_answer and not (words and gold_words):
        return float(words == gold_words)
    common = sum((Counter(words) & Counter(gold_words)).values())
    return 2 * common / (len(words) + len(gold_words)) if common else 0.0


def gold_texts(question: Question, no_answer: bool) -> list[str]:
    """What a prediction may be; where there may be no answer, [''] for a question with none that has a word."""
    texts = [answer.text for answer in question.answers]
    if no_answer:
        return [text for text in texts if normalize(text)] or ['']
    return texts


def squad_scores(predicted: Sequence[str], questions: Sequence[Question], no_answer: bool) -> dict[str, float]:
    """'f1' and 'exact_match' in percent, each question counting with its best gold answer.

    Args:
      predicted: a text for each question; '' for no answer.
      no_answer: by the rules of 2.0, not of 1.1.

    Raises:
      ValueError: a question's answers are kept back (1.1).
    """
    exact, f1 = 0.0, 0.0
    for text, question in zip(predicted, questions, strict=True):
        golds = gold_texts(question, no_answer)
        if not golds:
            raise ValueError(f'question {question.id} has no answer to score against')
        exact += max(exact_match(text, gold) for gold in golds)
        f1 += max(token_f1(text, gold, no_answer) for gold in golds)
    return {'f1': 100 * f1 / len(questions), 'exact_match': 100 * exact / len(questions)}
