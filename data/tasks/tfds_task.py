"""Tasks from TensorFlow Datasets, read without TensorFlow: glue/NAME, squad, conll2003, and any with named features."""

import dataclasses
from collections.abc import Iterable
from typing import Any

from data.errors import UserError
from data.tasks import squad
from data.tasks.config import TaskConfig
from data.tasks.files import at_lines
from data.tasks.glue import GLUE, Glue
from data.tasks.own import text_task
from data.tasks.squad import checked
from data.tasks.tagging import tagging_task
from data.tasks.task import Answer, Question, TaggedSentence, Task, TextExample
from data.tfds_corpus import data_source, records

_SPLITS = {
    'train': 'train',
    'validation': 'dev',
    'valid': 'dev',
    'dev': 'dev',
    'validation_matched': 'dev',
    'validation_mismatched': 'dev_mismatched',
    'test': 'test',
    'test_matched': 'test',
    'test_mismatched': 'test_mismatched',
}
_PAIRS = (('sentence', ''), ('sentence1', 'sentence2'), ('question1', 'question2'), ('premise', 'hypothesis'))
"""Features of GLUE's tasks but QNLI's, first and second."""


def load_tfds(config: TaskConfig) -> Task:
    """A data set whose splits are training, validation and test, by its features.

    Passage, question and answers make a span task; tokens with a sequence of classes (`ner`, or the one that `label`
    names) a tagging task; else `first`, `second` and `label` name the features, which of GLUE's are known.

    Raises:
      UserError: there is no such data set, or it lacks a feature.
    """
    what, name = f'--task {config.task}', config.task.removeprefix('tfds:')
    sources = data_source(what, name, split=None, data_dir=config.data_dir)
    sources = {_SPLITS[split]: source for split, source in sources.items() if split in _SPLITS}
    if not sources:
        raise UserError(f'{what}: has none of the splits {", ".join(_SPLITS)}')
    info = next(iter(sources.values())).dataset_info
    features, glue = info.features, GLUE.get(info.config_name) if info.name == 'glue' else None
    # The data set's name, also where its folder was given.
    named = '/'.join(['tfds:' + info.name, *([info.config_name] if info.config_name else [])])
    if {'context', 'question', 'answers'} <= set(features):
        task = _span(named, sources, 'is_impossible' in features)
    elif 'tokens' in features and not config.first:
        task = _tagging(config, sources, features)
    else:
        task = _texts(config, sources, features, glue)
    return dataclasses.replace(task, name=named)


def _texts(config: TaskConfig, sources: dict[str, Any], features: Any, glue: Glue | None) -> Task:
    first, second, label = config.first, config.second, config.label or 'label'
    if not first and glue:
        # QNLI's passage is called sentence, as the only text of other tasks is.
        pairs = [('question', 'sentence')] if 'question' in features else _PAIRS
        first, second = next(pair for pair in pairs if pair[0] in features)
    if not first:
        raise UserError(
            f'--task {config.task}: name its features with --first and --label, of {", ".join(sorted(features))}'
        )
    for column in (first, second, label):
        if column and column not in features:
            raise UserError(f'--task {config.task}: has no feature {column}; it has {", ".join(sorted(features))}')
    names = getattr(features[label], 'names', None)
    kind = 'regression' if glue and glue.kind == 'regression' or config.target == 'numbers' else 'classification'
    splits, notes = {}, []
    for split, source in sources.items():
        found, hidden = [], []
        for place, record in enumerate(records(source)):
            value: Any = record[label]
            if kind == 'regression':
                value = float(value)
                value = None if value < 0 and glue else value  # GLUE's test file says -1
            elif names:
                value = names[value] if value >= 0 else None
            else:
                value = _text(value)
            if value is None and not split.startswith('test'):
                hidden.append(place)
                continue
            pair = _text(record[second]) if second else None
            found.append(TextExample(str(record.get('idx', place)), _text(record[first]), pair, value))
        splits[split] = found
        if hidden:
            notes.append(f'{config.task}, {split}: left out {len(hidden)} without a label, {at_lines(hidden)}')
    if not glue:
        return text_task(config.task, kind, splits, notes)
    written = {name: text for name, text in glue.written.items() if name != text}
    return Task(config.task, kind, tuple(glue.written), glue.metrics, splits, written=written, notes=tuple(notes))


def _tagging(config: TaskConfig, sources: dict[str, Any], features: Any) -> Task:
    column = config.label or 'ner'
    if column not in features:
        raise UserError(f'--task {config.task}: has no feature {column}; name its tags with --label')
    names = getattr(getattr(features[column], 'feature', None), 'names', None)
    if not names or not all(name == 'O' or name.startswith(('B-', 'I-')) for name in names):
        raise UserError(f'--task {config.task}: feature {column} holds no tags O, B-TYPE and I-TYPE')
    splits = {
        split: [
            TaggedSentence(str(place), tuple(map(_text, record['tokens'])), tuple(names[i] for i in record[column]))
            for place, record in enumerate(records(source))
        ]
        for split, source in sources.items()
    }
    return tagging_task(config.task, splits, ())


def _span(name: str, sources: dict[str, Any], no_answer: bool) -> Task:
    splits, notes = {}, []
    for split, source in sources.items():
        splits[split], found = checked(f'{name}, {split}', map(_question, records(source)), split, no_answer)
        notes += found
    return Task(name, 'span', (), squad.METRICS, splits, no_answer=no_answer, notes=tuple(notes))


def _question(record: dict[str, Any]) -> Question:
    answers: Iterable = zip(record['answers']['text'], record['answers']['answer_start'], strict=True)
    impossible = bool(record.get('is_impossible', False))
    return Question(
        _text(record['id']), _text(record['question']), _text(record['context']),
        () if impossible else tuple(Answer(_text(text), int(start)) for text, start in answers),
        impossible, _text(record.get('title', '')),
    )  # fmt: skip


def _text(value: Any) -> str:
    return value.decode('utf-8', 'replace') if isinstance(value, bytes) else str(value)
