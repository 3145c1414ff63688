"""Data of one's own: any TSV or JSONL whose columns are named."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from data.errors import UserError
from data.tasks.config import TaskConfig
from data.tasks.files import find_all
from data.tasks.table import Table, read_table
from data.tasks.task import Task, TextExample
from data.tasks.texts import examples

_STEMS = {'train': ('train',), 'dev': ('dev', 'valid', 'validation'), 'test': ('test',)}
FILES = {
    split: tuple(f'{stem}{suffix}' for stem in stems for suffix in ('.tsv', '.jsonl', '.txt'))
    for split, stems in _STEMS.items()
}
MOST_CLASSES = 1000


def load_table(config: TaskConfig) -> Task:
    """A task of the files train, dev and test, or of one file alone.

    Raises:
      UserError: a file or a column is missing, or the files are faulty.
    """
    path = Path(config.data_dir)
    paths = {'train': path} if path.is_file() else find_all(path, FILES, config.task)
    kind = 'regression' if config.target == 'numbers' else 'classification'
    splits, notes = {}, []
    for split, file in paths.items():
        table, label = _read(config, split, file)
        splits[split], found = examples(table, config.first, config.second, label, kind, None)
        notes += found
    return text_task(config.task, kind, splits, notes)


def _read(config: TaskConfig, split: str, file: Path) -> tuple[Table, str]:
    """A file, and the column of its labels; '' for a test file that does not hold one for each row."""
    columns = [config.first, *([config.second] if config.second else [])]
    if split != 'test':
        return read_table(file, [*columns, config.label], config.encoding), config.label
    bare = read_table(file, columns, config.encoding)
    with contextlib.suppress(UserError):  # such as that there is no such column
        whole = read_table(file, [*columns, config.label], config.encoding)
        if len(whole.rows) == len(bare.rows) and any(row.fields[config.label] is not None for row in whole.rows):
            return whole, config.label
    return bare, ''


def text_task(name: str, kind: str, splits: dict[str, list[TextExample]], notes: Sequence[str]) -> Task:
    """A task of sentences or pairs whose classes are those of its training examples, by name.

    Raises:
      UserError: training holds one class alone, or too many.
    """
    if kind == 'regression':
        return Task(name, 'regression', (), ('pearson', 'spearman'), splits, notes=tuple(notes))
    known = splits.get('train') or [example for each in splits.values() for example in each]
    labels = tuple(sorted({example.label for example in known} - {None}))
    if not 1 < len(labels) <= MOST_CLASSES:
        mend = 'is it the column? For numbers give --target numbers' if len(labels) > 1 else 'two are needed'
        said = f'task {name}: training has {len(labels):,} different label{"s" * (len(labels) != 1)}: {mend}'
        raise UserError('; '.join([said, *notes]))
    return Task(name, 'classification', labels, ('accuracy', 'macro_f1'), splits, notes=tuple(notes))
