"""Questions on passages, from files in SQuAD's form, 1.1 or 2.0."""

import dataclasses
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from data.errors import UserError
from data.tasks.config import TaskConfig
from data.tasks.files import SHOWN, find_all, read_text
from data.tasks.task import Answer, Question, Task

METRICS = ('f1', 'exact_match')
FILES = {
    'train': ('train-v{}.json', 'train.json'),
    'dev': ('dev-v{}.json', 'dev.json'),
    'test': ('test-v{}.json', 'test.json'),
}
_VERSION = {'squad1': '1.1', 'squad2': '2.0'}
TOLERATED = 0.01
"""Share of a file's questions that may have an answer off its place. With more, the places mean something else."""


def load_squad(config: TaskConfig) -> Task:
    """A task of the files train, dev and test, or of one file alone.

    Raises:
      UserError: a file is missing or faulty.
    """
    path, version = Path(config.data_dir), _VERSION[config.task]
    names = {split: tuple(name.format(version) for name in files) for split, files in FILES.items()}
    paths = {'train': path} if path.is_file() else find_all(path, names, config.task)
    splits, notes = {}, []
    for split, file in paths.items():
        questions = read_squad(file, config.encoding)
        splits[split], found = checked(str(file), questions, split, config.task == 'squad2')
        notes += found
    return Task(config.task, 'span', (), METRICS, splits, no_answer=config.task == 'squad2', notes=tuple(notes))


def read_squad(path: Path, encoding: str) -> list[Question]:
    """The questions of a file, a title being a document.

    Raises:
      UserError: it is not JSON, not of this form, or has no question.
    """
    try:
        tree = json.loads(read_text(path, encoding))
    except (ValueError, RecursionError) as error:
        raise UserError(f'{path}: not JSON ({str(error)[:100]})') from None
    try:
        questions = list(_questions(tree))
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise UserError(
            f'{path}: not in the form of SQuAD (data, paragraphs, context, qas, answers): {error!r}'[:300]
        ) from None
    if not questions:
        raise UserError(f'{path}: has no question')
    return questions


def _questions(tree: Any) -> Iterator[Question]:
    for number, article in enumerate(tree['data']):
        document = str(article.get('title', number))
        for paragraph in article['paragraphs']:
            context = _text(paragraph['context'], f'a context of {document}')
            for entry in paragraph['qas']:
                where = f'question {entry["id"]}'
                answers = tuple(
                    Answer(_text(each['text'], f'an answer of {where}'), int(each['answer_start']))
                    for each in entry.get('answers', ())
                )
                # The official script of 2.0 goes by the answers, whatever a question says of itself.
                impossible = bool(entry.get('is_impossible', False)) and not answers
                yield Question(
                    str(entry['id']), _text(entry['question'], where), context, answers, impossible, document
                )


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f'{what} is no text but {str(value)[:40]}')
    return value


def checked(
    source: str, questions: Iterable[Question], split: str, no_answer: bool
) -> tuple[list[Question], list[str]]:
    """Questions as they are trained on or scored, and notes on those with an answer that is not where it says.

    Those are left out of train. Elsewhere they stay: scores go by the answers' texts, as in the official scripts.

    A question without answers is impossible, whatever it says of itself: the official script of 2.0 goes by that. But
    in a test file without any answer they are kept back.

    Raises:
      UserError: a question has no answer and `no_answer` is false, an id comes twice, or more than `TOLERATED` of the
        questions have an answer that is not in its place. `source` names the file.
    """
    questions, kept, faulty = list(questions), [], []
    if split != 'test' or any(question.answers for question in questions):
        questions = [each if each.answers else dataclasses.replace(each, impossible=True) for each in questions]
    for question in questions:
        if question.impossible and not no_answer:
            raise UserError(f'{source}: question {question.id} has no answer: give --task squad2')
        off = [answer for answer in question.answers if not _in_place(answer, question.context)]
        if off:
            faulty.append(f'{question.id} ({off[0].text[:30]!r} is not at {off[0].start})')
        if not off or split != 'train':
            kept.append(question)
    if len({question.id for question in questions}) < len(questions):
        raise UserError(f'{source}: two questions have the same id')
    if not faulty:
        return kept, []
    shown = ', '.join(faulty[:SHOWN]) + (f' and {len(faulty) - SHOWN} more' if len(faulty) > SHOWN else '')
    what = f'{source}: {len(faulty)} of {len(questions)} questions have an answer that is not in its place: {shown}'
    if len(faulty) > TOLERATED * len(questions):
        raise UserError(f'{what}; answer_start counts characters (code points) of the context, from 0')
    return kept, [f'{what}; {"left out" if split == "train" else "scored all the same"}']


def _in_place(answer: Answer, context: str) -> bool:
    return bool(answer.text) and answer.start >= 0 and context.startswith(answer.text, answer.start)
