"""A task's examples as a fine-tuning reads them: what is trained on, chosen by and reported, as rows of tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from data.errors import UserError
from data.tasks.answers import Span, best_spans, best_threshold, texts
from data.tasks.baselines import is_degenerate, majority
from data.tasks.features import Features, encode
from data.tasks.scores import scores
from data.tasks.slices import hold_out, limited
from data.tasks.task import Example, Question, TaggedSentence, Task
from data.tokenizer import Tokenizer
from train.finetuning.config import FinetuneConfig

SLICE = 'slice of train'
"""Name of the split that is held out of train to choose by."""


class Predictions(NamedTuple):
    """Of one replica for one split."""

    values: list[Any]
    """As `data.tasks.scores.scores` takes them."""
    spans: list[Span]
    """span: what the values were made from."""


@dataclass(frozen=True)
class TaskData:
    """A task and its rows."""

    task: Task
    """With a split SLICE where one is needed."""
    chosen_by: str
    """The split that early stopping, grids and the no-answer threshold go by; '' where nothing is chosen."""
    tokenizer: Tokenizer
    max_length: int
    stride: int

    @classmethod
    def of(cls, task: Task, tokenizer: Tokenizer, config: FinetuneConfig, choices: int, longest: int) -> 'TaskData':
        """The task as a config reads it.

        Args:
          choices: points that a grid chooses between.
          longest: tokens that the encoder's rows may have.

        Raises:
          UserError: the task has nothing to train on, or nothing to choose by.
        """
        if not task.examples('train'):
            raise UserError(f'task {task.name}: there is no example to train on')
        task = limited(task, 'train', config.train_rows) if config.train_rows else task
        chosen_by = ''
        if choices > 1 or config.patience or task.no_answer:
            chosen_by = 'dev' if config.select_on == 'dev' else SLICE
            if chosen_by == SLICE:
                task = hold_out(task, config.slice_percent / 100, SLICE)
            task.examples(chosen_by)
        return cls(task, chosen_by, tokenizer, min(config.max_length, longest), config.stride)

    @property
    def outputs(self) -> int:
        """Of a head for this task, C."""
        return {'regression': 1, 'span': 2}.get(self.task.kind) or len(self.task.labels)

    @property
    def reported(self) -> list[str]:
        """The splits other than those trained on and chosen by whose labels are known; dev always is one."""
        others = [split for split in self.task.splits if split not in ('train', SLICE)]
        return [split for split in others if all(map(_is_labelled, self.task.examples(split)))]

    @cached_property
    def _features(self) -> dict[str, Features]:
        return {}

    def features(self, split: str) -> Features:
        """The rows of a split, made when they are first asked for."""
        if split not in self._features:
            examples = self.task.examples(split)
            self._features[split] = encode(self.task, examples, self.tokenizer, self.max_length, self.stride)
        return self._features[split]

    def predictions(self, split: str, outputs: np.ndarray, threshold: float | None) -> Predictions:
        """One replica's predictions.

        Args:
          outputs: as `Program.predict` gives them for one replica.
          threshold: see `data.tasks.answers.texts`.
        """
        features, examples = self.features(split), self.task.examples(split)
        return decode(self.task, features, examples, outputs, threshold)

    def threshold(self, outputs: np.ndarray) -> float | None:
        """Where questions may have no answer, the best threshold, given outputs for the split that is chosen by."""
        if not self.task.no_answer:
            return None
        features, questions = self.features(self.chosen_by), self.task.examples(self.chosen_by)
        return best_threshold(best_spans(features, questions, *outputs.T), questions)

    def scores(self, split: str, predictions: Predictions) -> dict[str, float]:
        """The task's metrics in percent."""
        return scores(self.task, predictions.values, self.task.examples(split))

    def majority(self, split: str) -> dict[str, float]:
        """The metrics of always giving the commonest label of train."""
        return majority(self.task, self.task.examples('train'), self.task.examples(split))

    def is_degenerate(self, split: str, predictions: Predictions, found: dict[str, float]) -> bool:
        """Whether a replica learnt nothing."""
        return is_degenerate(self.task, predictions.values, found, self.majority(split))


def decode(
    task: Task, features: Features, examples: Sequence[Example], outputs: np.ndarray, threshold: float | None
) -> Predictions:
    """Outputs of a head, [N, C] or for tokens [T, C], as predictions, one for each example."""
    if task.kind == 'span':
        spans = best_spans(features, examples, *outputs.T)
        return Predictions(texts(spans, threshold), spans)
    if task.kind == 'regression':
        return Predictions([float(value) for value in outputs[:, 0]], [])
    best = outputs.argmax(axis=-1)
    if task.kind == 'classification':
        return Predictions([task.labels[number] for number in best], [])
    tags = [['O'] * len(example.words) for example in examples]
    example_T = np.repeat(features.examples_N, features.lengths_N)
    for place in np.flatnonzero(features.words_T >= 0):
        tags[example_T[place]][features.words_T[place]] = task.labels[best[place]]
    return Predictions(tags, [])


def _is_labelled(example: Example) -> bool:
    if isinstance(example, Question):
        return bool(example.answers) or example.impossible
    return (example.tags if isinstance(example, TaggedSentence) else example.label) is not None
