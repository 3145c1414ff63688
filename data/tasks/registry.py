"""Tasks by name."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from data.config import DataConfig
from data.errors import UserError
from data.tasks.config import TaskConfig
from data.tasks.corpus_task import load_corpus_task
from data.tasks.glue import GLUE, load_glue
from data.tasks.overlap import with_note
from data.tasks.own import load_table
from data.tasks.slices import hold_out
from data.tasks.squad import load_squad
from data.tasks.tagging import load_tagging
from data.tasks.task import Example, TaggedSentence, Task, TextExample
from data.tasks.tfds_task import load_tfds

_FOLDERS = {
    **dict.fromkeys(GLUE, load_glue),
    'tagging': load_tagging,
    'squad1': load_squad,
    'squad2': load_squad,
    'table': load_table,
}
NAMES = (*_FOLDERS, 'tfds:NAME', 'corpus:LABEL')
DEV_SHARE, DEV_SHARE_OF_DOCUMENTS = 0.1, 0.2
"""What becomes the dev split where the data has none. Documents are few, and of unlike size."""


def load_task(config: TaskConfig, corpus: DataConfig | None = None) -> Task:
    """Reads a task. Where its data has training examples and no dev split, some are held out as one.

    A note says how many examples of other splits stand in train, too. Of a corpus none do: it takes a paragraph once.

    Args:
      corpus: what the model was pretrained on, for corpus:LABEL.

    Raises:
      UserError: there is no such task, or its data is missing or faulty.
    """
    name = config.task
    if name.startswith('corpus:'):
        if corpus is None:
            raise UserError(f'--task {name}: is made of the corpus of a pretrained run, and there is none here')
        return load_corpus_task(name, corpus)
    if name.startswith('tfds:'):
        task = load_tfds(config)
    elif name not in _FOLDERS:
        raise UserError(f'--task {name or "(none)"}: there is no such task; use {", ".join(NAMES)}')
    elif not config.data_dir:
        raise UserError(f'--task {name}: give --data_dir, the folder with its files')
    elif not Path(config.data_dir).exists():
        raise UserError(f'--data_dir {config.data_dir}: no such file or folder')
    else:
        task = _FOLDERS[name](config)
    if task.kind in ('classification', 'tagging'):
        _check_labels(task)
    return with_note(_with_dev(task))


def _with_dev(task: Task) -> Task:
    if 'dev' in task.splits or 'train' not in task.splits:
        return task
    share = DEV_SHARE_OF_DOCUMENTS if task.examples('train')[0].document or task.kind == 'span' else DEV_SHARE
    split = hold_out(task, share, 'dev')
    count, all_count = len(split.examples('dev')), len(task.examples('train'))
    note = f'{task.name}: no dev file, so {count:,} of the {all_count:,} training examples are held out as dev'
    return dataclasses.replace(split, notes=(*task.notes, note))


def _check_labels(task: Task) -> None:
    for split, examples in task.splits.items():
        for example in examples:
            for label in _labels(example):
                if label not in task.labels:
                    raise UserError(
                        f'task {task.name}, {split}: example {example.id} has the label {label!r}, which training has '
                        f'not seen; it has {", ".join(task.labels[:20])}'
                    )


def _labels(example: Example) -> Iterator[str]:
    if isinstance(example, TaggedSentence):
        yield from example.tags or ()
    elif isinstance(example, TextExample) and example.label is not None:
        yield example.label
