"""Files of tasks: found by name, read whole, and cut into lines at line feeds alone."""

import codecs
from collections.abc import Iterable
from pathlib import Path

from data.errors import UserError
from data.reading import chunks

SHOWN = 3
"""How many of the lines or names at fault a message gives."""


def read_text(path: Path, encoding: str) -> str:
    """The text of a file (.gz too), without a byte order mark.

    Raises:
      UserError: it cannot be read, is empty, or is not in this encoding.
    """
    content = b''.join(chunks(path))
    try:
        text = content.decode(encoding).removeprefix('\ufeff')
    except UnicodeDecodeError as error:
        if content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise UserError(f'{path}: begins with a UTF-16 byte order mark: give --encoding utf-16') from None
        line = content[: error.start].count(b'\n') + 1
        raise UserError(
            f'{path}:{line}: byte {content[error.start]:#04x} is not {encoding}: say what the file is with --encoding '
            '(latin-1, cp1252), or convert it'
        ) from None
    except (LookupError, UnicodeError):
        raise UserError(f'--encoding {encoding}: Python knows no such text encoding') from None
    if not text.strip():
        raise UserError(f'{path}: empty: put the examples in it, or leave the file away')
    return text


def read_lines(path: Path, encoding: str) -> list[str]:
    r"""The lines of a file; a line ends at \n or \r\n and nowhere else, so that texts may hold U+2028 and the like."""
    lines = read_text(path, encoding).split('\n')
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix('\r') for line in lines]


def find(folder: Path, names: Iterable[str]) -> Path | None:
    """The first of these files that is there, or there as .gz."""
    for name in names:
        for path in (folder / name, folder / f'{name}.gz'):
            if path.is_file():
                return path
    return None


def find_all(folder: Path, names: dict[str, tuple[str, ...]], task: str) -> dict[str, Path]:
    """Split -> its file, for the splits whose file is there.

    Raises:
      UserError: there is no folder, or none of the files.
    """
    if folder.is_file():
        raise UserError(f'--data_dir {folder}: is a file: for task {task} name the folder with {names["train"][0]}')
    if not folder.is_dir():
        raise UserError(f'--data_dir {folder}: no such folder')
    found = {split: path for split, files in names.items() if (path := find(folder, files))}
    if not found:
        raise UserError(f'--data_dir {folder}: has no file of task {task}: give the folder with {names["train"][0]}')
    return found


def at_lines(lines: list[int]) -> str:
    """'line 7', or 'lines 7, 9, 12 and 4 more'."""
    shown = ', '.join(map(str, lines[:SHOWN]))
    more = f' and {len(lines) - SHOWN} more' if len(lines) > SHOWN else ''
    return f'line{"s" if len(lines) > 1 else ""} {shown}{more}'
