"""What a fine-tuned model says to lines of text."""

import itertools
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import jax
import numpy as np

from data.errors import UserError
from data.tasks.buckets import evaluation_batches, scatter
from data.tasks.features import Features, encode
from data.tasks.task import Example, Question, TaggedSentence, TextExample
from experiments.finetuning.model import Model, load_model
from train.finetuning.task_data import decode


def answers(path: Path, seed: int | None, lines: Iterable[str], batch_size: int) -> Iterator[str]:
    """One line for each line.

    Raises:
      UserError: there is no such model, or a line is not of its task's form.
    """
    model = load_model(path, seed)
    network = jax.jit(partial(model.network, model.params))
    numbered = enumerate((line.rstrip('\n') for line in lines), 1)
    while batch := list(itertools.islice(numbered, batch_size)):
        yield from _answer(model, network, [_example(model, number, line) for number, line in batch], batch_size)


def _answer(model: Model, network, examples: list[Example], batch_size: int) -> Iterator[str]:
    features = encode(model.task, examples, model.tokenizer, model.max_length, model.stride)
    outputs = _outputs(network, features, model.network.labels, batch_size)
    predictions = decode(model.task, features, examples, outputs, model.threshold).values
    if model.task.kind == 'classification':
        probabilities_NxC = np.exp(outputs - np.logaddexp.reduce(outputs, axis=-1, keepdims=True))
        for label, probability_C in zip(predictions, probabilities_NxC, strict=True):
            yield f'{label}\t{probability_C.max():.4f}'
    elif model.task.kind == 'regression':
        yield from (f'{value:.3f}' for value in predictions)
    elif model.task.kind == 'tagging':
        yield from (' '.join(tags) for tags in predictions)
    else:
        yield from (' '.join(text.split()) for text in predictions)


def _outputs(network, features: Features, labels: int, batch_size: int) -> np.ndarray:
    is_pooled = features.kind in ('classification', 'regression')
    outputs = np.zeros((len(features) if is_pooled else len(features.tokens_T), labels), np.float32)
    for batch in evaluation_batches(features, batch_size):
        scatter(features, batch, np.asarray(network(*batch[:3])), outputs)
    return outputs


def _example(model: Model, number: int, line: str) -> Example:
    """The line as an example without a label. What it has too many of belongs to the last part."""
    kind, name = model.task.kind, str(number)
    if kind == 'tagging':
        return TaggedSentence(name, tuple(line.split()), None)
    first, tab, second = line.partition('\t')
    if kind == 'span':
        if not tab:
            raise UserError(f'standard input, line {number}: has no tab: write the question, a tab and the passage')
        return Question(name, first, second, ())
    if model.pairs and not tab:
        raise UserError(f'standard input, line {number}: has no tab: {model.task.name} takes two sentences')
    if not model.pairs:
        return TextExample(name, line, None, None)
    return TextExample(name, first, second, None)
