"""What a downstream task is: labelled examples of one of four kinds, in splits, and how it is scored."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from data.errors import UserError

Kind = Literal['classification', 'regression', 'tagging', 'span']


@dataclass(frozen=True, slots=True)
class TextExample:
    """A sentence, or a pair of them."""

    id: str
    first: str
    second: str | None
    label: str | float | None
    """A class by name, or a number; None where it is kept back (GLUE's test files)."""
    document: str = ''
    """What it is a part of: examples of one document are held out together. '' where that is not known."""


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """Words, and a tag of each in IOB2: B- begins an entity, always."""

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...] | None
    document: str = ''


@dataclass(frozen=True, slots=True)
class Answer:
    """A stretch of the passage: context[start : start + len(text)] is text; outside train a few may be misplaced."""

    text: str
    start: int
    """In characters (code points) of the passage as it was given."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question on a passage. Where `impossible`, the passage holds no answer."""

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...]
    impossible: bool = False
    document: str = ''


Example = TextExample | TaggedSentence | Question


@dataclass(frozen=True)
class Task:
    """A task's examples, all of one kind."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    """Classes, or IOB2 tags with 'O' first; their numbers are places in this list. Empty for other kinds."""
    metrics: tuple[str, ...]
    """As `data.tasks.scores` knows them; the first is the one to choose by."""
    splits: Mapping[str, Sequence[Example]]
    """'train', 'dev' and 'test', where there are such; of MNLI 'dev' is matched, 'dev_mismatched' is not."""
    no_answer: bool = False
    """Span tasks: questions may have no answer, and SQuAD 2.0's rules hold."""
    written: Mapping[str, str] = field(default_factory=dict)
    """Label -> how the task's own files write it, where that differs: {'acceptable': '1'}."""
    notes: tuple[str, ...] = ()
    """What was left out, changed or made up in reading, each one line that names file and line."""

    @property
    def primary(self) -> str:
        """The metric to choose by."""
        return self.metrics[0]

    @property
    def fingerprint(self) -> str:
        """sha256 of all examples, with their labels, by split."""
        digest = hashlib.sha256()
        for split in sorted(self.splits):
            digest.update(split.encode())
            for example in self.splits[split]:
                digest.update(repr(example).encode())
        return digest.hexdigest()

    def examples(self, split: str) -> Sequence[Example]:
        """The examples of a split.

        Raises:
          UserError: the task's data has no such split.
        """
        if split not in self.splits:
            raise UserError(f'task {self.name}: its data has no {split} split, only {", ".join(self.splits)}')
        return self.splits[split]
