"""Sentences and pairs out of tables: GLUE's files and any others."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from data.errors import UserError
from data.tasks.files import at_lines
from data.tasks.table import Row, Table
from data.tasks.task import TextExample

NO_GOLD = '-'
"""A label that says that the annotators did not agree (SNLI, MNLI); a class of one's own cannot be named so."""


def examples(
    table: Table, first: str, second: str, label: str, kind: str, names: Mapping[str, str] | None
) -> tuple[list[TextExample], tuple[str, ...]]:
    """The examples of a table, and notes on what was left out: rows without a label.

    Args:
      label: the column; '' where labels are kept back.
      names: label as written -> its name; None: labels are as they are written.

    Raises:
      UserError: a field holds no text, a label is none of `names`, or is no number where it should be.
    """
    found, without, ids = [], [], set()
    for row in table.rows:
        value = _label(table.path, row, label, kind, names) if label else None
        if label and value in (None, NO_GOLD):
            without.append(row.line)
            continue
        name = str(row.fields.get('index', row.fields.get('id', row.number)))
        # A file put together from blocks may count each anew.
        ids.add(name if name not in ids else (name := f'{name}:{row.number}'))
        texts = [_text(table.path, row, column) for column in (first, second) if column]
        found.append(TextExample(name, texts[0], texts[1] if second else None, value))
    if not found:
        raise UserError(f'{table.path}: none of its rows has a label in {label}')
    notes = [*table.notes]
    if without:
        notes.append(
            f'{table.path}: left out {len(without)} without a gold label (none, or {NO_GOLD!r}), {at_lines(without)}'
        )
    return found, tuple(notes)


def _text(path: Path, row: Row, column: str) -> str:
    value = row.fields[column]
    if not isinstance(value, str):
        raise UserError(f'{path}:{row.line}: {column} is no text but {str(value)[:40]}')
    return value


def _label(path: Path, row: Row, column: str, kind: str, names: Mapping[str, str] | None) -> str | float | None:
    value: Any = row.fields[column]
    if value is None:  # JSON's null
        return None
    if kind == 'regression':
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise UserError(f'{path}:{row.line}: {column} is {str(value)[:40]!r}, which is no number')
        return number
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise UserError(f'{path}:{row.line}: {column} is {str(value)[:40]}: use text or whole numbers for classes')
    written = str(value).strip()
    if written == NO_GOLD or names is None:
        return written
    if written not in names:
        raise UserError(f'{path}:{row.line}: label {written[:40]!r} is none of {", ".join(names)}')
    return names[written]
