"""Predictions in the form that each task's own scorer takes."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from data.tasks.answers import Span
from data.tasks.glue import GLUE
from data.tasks.task import Example, TaggedSentence, Task, TextExample

STSB_RANGE = (0.0, 5.0)


def write_predictions(
    task: Task, split: str, predictions: Sequence[Any], folder: str | Path, spans: Sequence[Span] = ()
) -> list[Path]:
    """Writes the predictions for a split, as `data.tasks.scores` takes them, into a folder, over what is there.

    GLUE's and other texts: a TSV of index and prediction, under the name that GLUE's site asks for (CoLA.tsv,
    MNLI-m.tsv, AX.tsv), labels as the task's own files write them. Tagging: CoNLL's columns, word, tag if it is known,
    predicted tag, which conlleval reads. Span: SQuAD's predictions.json, and where there may be no answer
    null_odds.json (of `spans`): how much likelier no answer is than the answer.

    Returns:
      The files.

    Raises:
      ValueError: predictions are fewer or more than examples.
    """
    examples, folder = task.examples(split), Path(folder)
    if len(predictions) != len(examples):
        raise ValueError(f'{len(predictions)} predictions for {len(examples)} examples')
    if task.kind == 'tagging':
        files = {f'{split}.conll': _conll(predictions, examples)}
    elif task.kind == 'span':
        files = {'predictions.json': _json({e.id: text for e, text in zip(examples, predictions, strict=True)})}
        if task.no_answer and spans:
            odds = {e.id: span.null_score - span.score for e, span in zip(examples, spans, strict=True)}
            files['null_odds.json'] = _json(odds)
    else:
        files = {f'{_name(task.name, split)}.tsv': _tsv(task, predictions, examples)}
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        part = folder / f'.{name}.part'
        part.write_text(content, encoding='utf-8', newline='\n')
        os.replace(part, folder / name)
    return [folder / name for name in files]


def _name(task: str, split: str) -> str:
    """As GLUE's site has it; for other tasks the split's."""
    glue = GLUE.get(task.removeprefix('tfds:glue/'))
    if glue is None:
        return split
    if split == 'test_diagnostic':
        return 'AX'
    if glue.folder == 'MNLI':
        return 'MNLI-mm' if split.endswith('_mismatched') else 'MNLI-m'
    return glue.folder


def _tsv(task: Task, predictions: Sequence[Any], examples: Sequence[Example]) -> str:
    lines = ['index\tprediction']
    for example, predicted in zip(examples, predictions, strict=True):
        assert isinstance(example, TextExample)
        if task.kind == 'regression':
            low, high = STSB_RANGE if _name(task.name, '') == 'STS-B' else (-float('inf'), float('inf'))
            written = f'{min(max(float(predicted), low), high):.3f}'
        else:
            written = task.written.get(predicted, predicted)
        lines.append(f'{example.id}\t{written}')
    return '\n'.join(lines) + '\n'


def _conll(predictions: Sequence[Sequence[str]], examples: Sequence[Example]) -> str:
    lines = []
    for example, predicted in zip(examples, predictions, strict=True):
        assert isinstance(example, TaggedSentence)
        columns = [example.words, *([example.tags] if example.tags is not None else []), predicted]
        lines += [' '.join(fields) for fields in zip(*columns, strict=True)]
        lines.append('')
    return '\n'.join(lines) + '\n'


def _json(tree: dict[str, Any]) -> str:
    return json.dumps(tree, ensure_ascii=False, indent=1) + '\n'
