"""AdvGLUE's attacked examples (Wang et al. 2021, "Adversarial GLUE"): further splits of five of GLUE's tasks."""

import json
from pathlib import Path
from typing import Any

from data.errors import UserError
from data.tasks.files import read_text
from data.tasks.task import TextExample

FILE = 'AdvGLUE/dev_ann.json'
"""In the folder of all of GLUE's tasks."""
_PARTS = {
    'sst2': {'adversarial': 'sst2'},
    'qqp': {'adversarial': 'qqp'},
    'mnli': {'adversarial': 'mnli', 'adversarial_mismatched': 'mnli-mm'},
    'qnli': {'adversarial': 'qnli'},
    'rte': {'adversarial': 'rte'},
}
"""Task -> split -> its name in the file."""
_COLUMNS = {'mnli': ('premise', 'hypothesis')}
"""Where they are not those of GLUE's own files."""


def adversarial_splits(
    path: Path, task: str, columns: tuple[str, str], labels: tuple[str, ...]
) -> dict[str, list[TextExample]]:
    """Split -> examples; nothing for a task that AdvGLUE leaves alone.

    Args:
      columns: those of GLUE's own files, '' for a second sentence that there is not.
      labels: the file's labels are places in it.

    Raises:
      UserError: the file is not AdvGLUE's.
    """
    if task not in _PARTS:
        return {}
    try:
        tree = json.loads(read_text(path, 'utf-8'))
        columns = _COLUMNS.get(task, columns)
        return {
            split: [_example(item, number, columns, labels) for number, item in enumerate(tree[part])]
            for split, part in _PARTS[task].items()
        }
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise UserError(f'{path}: not in the form of AdvGLUE: {error!r}'[:300]) from None


def _example(item: Any, number: int, columns: tuple[str, str], labels: tuple[str, ...]) -> TextExample:
    first, second = (item[column] if column else None for column in columns)
    if not isinstance(first, str) or not isinstance(second, str | None):
        raise TypeError(f'item {number} holds no text')
    if type(item['label']) is not int or item['label'] < 0:
        raise ValueError(f'item {number} has the label {item["label"]!r}')
    return TextExample(str(item.get('idx', number)), first, second, labels[item['label']])
