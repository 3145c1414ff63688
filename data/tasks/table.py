"""Rows of TSV and JSONL files by named columns; rows that do not fit are left out and counted by line."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from data.errors import UserError
from data.tasks.files import at_lines, read_lines


class Row(NamedTuple):
    """A row's fields by column."""

    line: int
    """From 1."""
    number: int
    """Among the file's rows, from 0, those left out counted too."""
    fields: dict[str, Any]


@dataclass(frozen=True)
class Table:
    """The whole rows of a file."""

    path: Path
    columns: tuple[str, ...]
    rows: list[Row]
    notes: tuple[str, ...]


def read_table(path: Path, wanted: Sequence[str], encoding: str, bare: Sequence[str] = ()) -> Table:
    """The rows of a .jsonl file, or of a TSV: fields between tabs, in which quotes are letters like others.

    Args:
      wanted: columns to find by name. Numbers, from 1, are columns of a TSV without a header.
      bare: the columns of a file whose first line does not name those wanted.

    Raises:
      UserError: a column is missing, or the file cannot be read or has no row.
    """
    kind = next((suffix for suffix in reversed(path.suffixes) if suffix != '.gz'), '').lower()
    if kind in ('.csv', '.json', '.parquet', '.xlsx'):
        raise UserError(f'{path}: files of this kind are not read: convert it to TSV, or to .jsonl (an object a line)')
    lines = read_lines(path, encoding)
    table = (_objects if kind in ('.jsonl', '.ndjson') else _fields)(path, lines, wanted, bare)
    if not table.rows:
        raise UserError(f'{path}: has no whole row{"; " if table.notes else ""}{"; ".join(table.notes)}')
    return table


def _fields(path: Path, lines: list[str], wanted: Sequence[str], bare: Sequence[str]) -> Table:
    first = lines[0].split('\t')
    if all(name in first for name in wanted):
        columns, start = tuple(first), 1
    elif all(name.isascii() and name.isdigit() for name in wanted):
        if min(map(int, wanted)) < 1:
            raise UserError(f'{path}: there is no column 0: columns without a header count from 1')
        columns, start = tuple(str(number + 1) for number in range(max(map(int, wanted)))), 0
        if len(columns) > max(len(line.split('\t')) for line in lines):
            raise UserError(f'{path}: has no column {columns[-1]}: its first line has {len(first)} fields between tabs')
    elif bare and statistics.mode(len(line.split('\t')) for line in lines) == len(bare):
        columns, start = tuple(bare), 0
    else:
        raise UserError(_missing(path, [name for name in wanted if name not in first][0], first))
    if len(set(columns)) < len(columns):
        raise UserError(f'{path}: two columns have the same name, in {", ".join(columns)}')
    rows, ragged, blank = [], [], []
    for number, line in enumerate(lines[start:]):
        fields = line.split('\t')
        if not line.strip():
            blank.append(number + start + 1)
        elif len(fields) < len(columns) or (len(fields) > len(columns) and not columns[0].isdigit()):
            ragged.append(number + start + 1)
        else:
            rows.append(Row(number + start + 1, number, dict(zip(columns, fields, strict=False))))
    notes = []
    if ragged:
        notes.append(f'{path}: left out {len(ragged)} of other than {len(columns)} fields, {at_lines(ragged)}')
    if blank:
        notes.append(f'{path}: left out {len(blank)} blank, {at_lines(blank)}')
    return Table(path, columns, rows, tuple(notes))


def _objects(path: Path, lines: list[str], wanted: Sequence[str], bare: Sequence[str]) -> Table:
    rows, faulty, lacking, columns = [], [], [], {}
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            faulty.append(number + 1)
            continue
        columns.update(dict.fromkeys(record))
        if all(name in record for name in wanted):
            rows.append(Row(number + 1, number, record))
        else:
            lacking.append(number + 1)
    for name in wanted:
        if columns and name not in columns:
            raise UserError(_missing(path, name, columns))
    notes = []
    if faulty:
        notes.append(f'{path}: left out {len(faulty)} that hold no JSON object, {at_lines(faulty)}')
    if lacking:
        notes.append(f'{path}: left out {len(lacking)} without {" or ".join(wanted)}, {at_lines(lacking)}')
    return Table(path, tuple(columns), rows, tuple(notes))


def _missing(path: Path, name: str, columns: Any) -> str:
    held = ', '.join(str(column)[:40] for column in list(columns)[:12])
    return f'{path}: has no column {name}; its first line has {held} (columns without a header go by number, from 1)'
