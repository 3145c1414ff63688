"""Examples as rows of tokens with their targets: [CLS] first [SEP], or [CLS] first [SEP] second [SEP]."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from data.tasks.task import Example, Kind, Question, TaggedSentence, Task, TextExample
from data.tasks.windows import question_rows
from data.tokenizer import Tokenizer
from data.vocabulary import Vocabulary


@dataclass(frozen=True)
class Features:
    """N rows of ragged length, T tokens in all; row n is [offsets[n], offsets[n + 1]) of every array [T].

    A row is one example, but of a long sentence to be tagged, or a long passage, each row holds a part.
    """

    kind: Kind
    vocabulary: Vocabulary
    max_length: int
    """Tokens that no row exceeds."""
    tokens_T: np.ndarray
    """int32."""
    type_ids_T: np.ndarray
    """int32: 0 up to the first [SEP], then 1."""
    offsets: np.ndarray
    """int64 [N + 1]."""
    examples_N: np.ndarray
    """int32, rising: the place among the examples of the one that a row is from."""
    targets: np.ndarray
    """What is to be predicted.

    classification: int32 [N], a label's number; -1 if kept back
    regression: float32 [N]; NaN if kept back
    tagging: int32 [T], the tag's number at the first token of each word; -1 elsewhere, or if kept back
    span: int32 [N, 2], first and last token of an answer, counted in the row; 0, 0 ([CLS]) where the row holds none
    """
    words_T: np.ndarray | None = None
    """tagging: int32, the number of the word whose first token this is; -1 elsewhere."""
    spans_Tx2: np.ndarray | None = None
    """span: int32, the [begin, end) of a token in the passage, in characters; -1 outside the passage."""
    cut: int = 0
    """Examples of which something was cut off to fit."""

    def __len__(self) -> int:
        return len(self.examples_N)

    @property
    def lengths_N(self) -> np.ndarray:
        return np.diff(self.offsets)


def encode(
    task: Task, examples: Sequence[Example], tokenizer: Tokenizer, max_length: int, stride: int = 128
) -> Features:
    """Examples of a task's kind as rows of at most `max_length` tokens.

    Pairs are cut from the end of the longer side. Long sentences to be tagged are cut between words into rows, so that
    every word is tagged in one row. Long passages go into rows that begin `stride` tokens apart (Devlin et al. 2018's
    code), each with the question, of which 64 tokens are kept.

    Raises:
      ValueError: `max_length` leaves no room, or an example is of another kind.
    """
    if max_length < 8:
        raise ValueError(f'max_length is {max_length}: use 8 or more')
    kind = {'tagging': TaggedSentence, 'span': Question}.get(task.kind, TextExample)
    if not all(isinstance(example, kind) for example in examples):
        raise ValueError(f'{task.name} is a {task.kind} task, and its examples must be of {kind.__name__}')
    if task.kind == 'tagging':
        return _tagged(task, examples, tokenizer, max_length)
    if task.kind == 'span':
        return _spans(examples, tokenizer, max_length, stride)
    return _texts(task, examples, tokenizer, max_length)


def _texts(task: Task, examples: Sequence[TextExample], tokenizer: Tokenizer, max_length: int) -> Features:
    firsts = tokenizer.encode([example.first for example in examples])
    seconds = iter(tokenizer.encode([example.second for example in examples if example.second is not None]))
    rows, cut = [], 0
    for example, first in zip(examples, firsts, strict=True):
        sides = [first] if example.second is None else [first, next(seconds)]
        kept = _longest_first([len(side) for side in sides], max_length - 1 - len(sides))
        cut += sum(kept) < sum(map(len, sides))
        rows.append([side[:length] for side, length in zip(sides, kept, strict=True)])
    if task.kind == 'regression':
        values = [np.nan if example.label is None else example.label for example in examples]
        targets = np.array(values, np.float32)
    else:
        number = {None: -1, **{label: number for number, label in enumerate(task.labels)}}
        targets = np.array([number[example.label] for example in examples], np.int32)
    return Features(
        task.kind, tokenizer.vocabulary, max_length, *_joined(rows, tokenizer.vocabulary),
        examples_N=np.arange(len(rows), dtype=np.int32), targets=targets, cut=cut,
    )  # fmt: skip


def _longest_first(lengths: list[int], room: int) -> list[int]:
    """How much is kept of each side, as if tokens were taken one by one off the longer, off the second if alike."""
    if sum(lengths) <= room:
        return lengths
    if len(lengths) == 1:
        return [room]
    first, second = lengths
    half = room // 2
    if second < half:
        return [room - second, second]
    return [min(first, room - half), room - min(first, room - half)]


def _tagged(task: Task, examples: Sequence[TaggedSentence], tokenizer: Tokenizer, max_length: int) -> Features:
    vocabulary, number = tokenizer.vocabulary, {tag: number for number, tag in enumerate(task.labels)}
    pieces = iter(tokenizer.encode([word for example in examples for word in example.words]))
    rows, examples_N, words, tags, cut = [], [], [], [], 0
    for place, example in enumerate(examples):
        parts: list[list[np.ndarray]] = [[]]
        first_words = [0]
        for index in range(len(example.words)):
            word = next(pieces)
            if not len(word):  # white space or control characters alone
                word = np.array([vocabulary.unk], np.int32)
            if sum(map(len, parts[-1])) + len(word) > max_length - 2 and parts[-1]:
                parts.append([])
                first_words.append(index)
            cut += len(word) > max_length - 2
            parts[-1].append(word[: max_length - 2])
        for first_word, part in zip(first_words, parts, strict=True):
            rows.append([np.concatenate([*part, np.empty(0, np.int32)])])
            examples_N.append(place)
            words_L, tags_L = np.full((2, len(rows[-1][0]) + 2), -1, np.int32)
            starts = 1 + np.cumsum([0, *map(len, part)])[:-1]
            words_L[starts] = first_word + np.arange(len(part))
            if example.tags is not None:
                tags_L[starts] = [number[tag] for tag in example.tags[first_word : first_word + len(part)]]
            words.append(words_L)
            tags.append(tags_L)
    return Features(
        'tagging', vocabulary, max_length, *_joined(rows, vocabulary), examples_N=np.array(examples_N, np.int32),
        targets=_flat(tags), words_T=_flat(words), cut=cut,
    )  # fmt: skip


def _spans(examples: Sequence[Question], tokenizer: Tokenizer, max_length: int, stride: int) -> Features:
    rows, examples_N, targets, spans = [], [], [], []
    for place, found in enumerate(question_rows(examples, tokenizer, max_length, stride)):
        for row in found:
            rows.append([row.question, row.passage])
            examples_N.append(place)
            targets.append(row.answer)
            spans.append(row.spans_Lx2)
    return Features(
        'span', tokenizer.vocabulary, max_length, *_joined(rows, tokenizer.vocabulary),
        examples_N=np.array(examples_N, np.int32), targets=np.array(targets, np.int32).reshape(-1, 2),
        spans_Tx2=np.concatenate([np.empty((0, 2), np.int32), *spans]),
    )  # fmt: skip


def _joined(rows: list[list[np.ndarray]], vocabulary: Vocabulary) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tokens, type ids and offsets of rows whose sides are given without specials."""
    cls, sep = np.array([vocabulary.cls], np.int32), np.array([vocabulary.sep], np.int32)
    tokens, types, offsets = [], [], [0]
    for sides in rows:
        parts = [cls, *(part for side in sides for part in (side, sep))]
        tokens += parts
        second = len(sides[1]) + 1 if len(sides) > 1 else 0
        length = sum(map(len, parts))
        types.append(np.repeat(np.array([0, 1], np.int32), [length - second, second]))
        offsets.append(offsets[-1] + length)
    return _flat(tokens), _flat(types), np.array(offsets, np.int64)


def _flat(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.empty(0, np.int32), *parts])
