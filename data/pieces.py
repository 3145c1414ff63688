"""A corpus in pieces that are read apart from each other, in the order of the whole."""

import glob
import os
from dataclasses import dataclass

from data import sotu_corpus, tfds_corpus
from data.errors import UserError
from data.files import beam_files, is_remote

PIECE_BYTES = 32 << 20
"""About how much text a piece has."""
PIECE_DOCUMENTS = 20_000
"""The same, where it is counted in documents."""
# Encodings in which the byte of a line's end is part of no other character.
_LINES_FOUND_IN_BYTES = ('utf-8', 'utf8', 'ascii')


@dataclass(frozen=True)
class Span:
    """A file, or the lines of it that begin in [start, end)."""

    path: str
    start: int = 0
    end: int | None = None


@dataclass(frozen=True)
class Piece:
    """What one task reads."""

    spec: str
    encoding: str
    spans: tuple[Span, ...] = ()
    """Of files:GLOB."""
    rows: range = range(0)
    """Of the other kinds: which of their documents."""
    size: int = 0
    """About how many bytes it has."""


def pieces(spec: str, encoding: str) -> list[Piece]:
    """The pieces of a corpus. They depend on its files' names and sizes, or its number of documents, alone.

    Lines of large .jsonl files (UTF-8, not compressed) are shared out; other files are read whole, each by one task.

    Raises:
      UserError: the corpus is missing.
    """
    if spec.startswith('files:'):
        return _grouped(spec, encoding, _spans(spec, encoding))
    if spec.startswith('tfds:'):
        count = tfds_corpus.count(spec)
    elif spec == 'sotu':
        count = sotu_corpus.count()
    else:
        raise UserError(f'--corpus {spec}: use sotu, files:GLOB or tfds:NAME[:SPLIT]')
    starts = range(0, max(count, 1), PIECE_DOCUMENTS)
    rows = [range(start, min(start + PIECE_DOCUMENTS, count)) for start in starts]
    return [Piece(spec, encoding, rows=each, size=PIECE_BYTES) for each in rows]


def matching(spec: str) -> list[tuple[str, int]]:
    """Path and size of each file of files:GLOB, by path."""
    pattern = os.path.expanduser(spec.removeprefix('files:'))
    if is_remote(pattern):
        return sorted((found.path, found.size_in_bytes) for found in beam_files().match([pattern])[0].metadata_list)
    paths = [name for name in sorted(glob.glob(pattern, recursive=True)) if os.path.isfile(name)]
    return [(path, os.stat(path).st_size) for path in paths]


def _spans(spec: str, encoding: str) -> list[tuple[Span, int]]:
    found = matching(spec)
    if not found:
        pattern = os.path.expanduser(spec.removeprefix('files:'))
        hint = f' (a folder: try files:{pattern.rstrip("/")}/*)' if os.path.isdir(pattern) else ''
        raise UserError(f'--corpus {spec}: no file matches{hint}')
    spans = []
    for path, size in found:
        divisible = path.lower().endswith('.jsonl') and encoding.lower().replace('_', '-') in _LINES_FOUND_IN_BYTES
        if divisible and size > PIECE_BYTES:
            starts = range(0, size, PIECE_BYTES)
            spans += [(Span(path, start, start + PIECE_BYTES), PIECE_BYTES) for start in starts]
        else:
            spans.append((Span(path), size))
    return spans


def _grouped(spec: str, encoding: str, spans: list[tuple[Span, int]]) -> list[Piece]:
    """Neighbours together as long as they fit."""
    groups, room = [], 0
    for span, size in spans:
        if not groups or size > room:
            groups.append([])
            room = PIECE_BYTES
        groups[-1].append((span, size))
        room -= size
    return [
        Piece(spec, encoding, tuple(span for span, _ in group), size=sum(size for _, size in group)) for group in groups
    ]
