"""First step: a piece of the corpus into chunks of cleaned documents, with the hash of each."""

import hashlib
import io
import json
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from data.clean import clean, one_line, paragraphs
from data.corpus import documents_of
from data.files import SCRATCH, Files
from data.pieces import Piece
from data.tally import Tally

CHUNK_LETTERS = 1 << 21
"""About how much text a chunk has: what a task of the second step tokenizes."""


@dataclass(frozen=True)
class CleanTask:
    """A piece to clean."""

    files: Files
    number: int
    piece: Piece

    @property
    def name(self) -> str:
        return f'{SCRATCH}/clean/{self.number:06d}'

    @property
    def done(self) -> str:
        """The file that is written last."""
        return f'{self.name}.json'

    @property
    def size(self) -> int:
        """About how many bytes it has to do with."""
        return self.piece.size


class Cleaned(NamedTuple):
    """What a piece was found to hold."""

    digests_Nx32: np.ndarray
    """uint8: sha256 of each document."""
    letters_N: np.ndarray
    """int64."""
    labels: list[str]
    chunks: list[int]
    """Documents in each chunk."""
    tally: Tally


def chunk_name(piece: str, number: int) -> str:
    """Where a chunk of a piece is."""
    return f'{piece}-{number:04d}.txt'


def clean_piece(task: CleanTask) -> None:
    """Reads, cleans and hashes the documents of a piece; those without a letter are left out."""
    tally, digests, letters, labels, chunks = Tally(), [], [], [], []
    chunk: list[bytes] = []

    def close_chunk() -> None:
        task.files.write(chunk_name(task.name, len(chunks)), b'\n\n'.join(chunk))
        chunks.append(len(chunk))
        chunk.clear()

    room = CHUNK_LETTERS
    for document in documents_of(task.piece, tally):
        text, controls, surrogates = clean(document.text)
        tally.mended.update({'control characters removed': controls, 'lone surrogates replaced': surrogates})
        blocks = paragraphs(text)
        if not blocks:
            tally.dropped['empty documents'] += 1
            continue
        content = '\n'.join(blocks)  # no paragraph holds a line's end or is empty
        chunk.append(content.encode())
        digests.append(hashlib.sha256(chunk[-1].replace(b'\n', b' ')).digest())
        labels.append(one_line(document.label))
        letters.append(len(content))
        room -= letters[-1]
        if room <= 0:
            close_chunk()
            room = CHUNK_LETTERS
    if chunk:
        close_chunk()
    arrays = io.BytesIO()
    np.savez(arrays, digests=np.frombuffer(b''.join(digests), np.uint8), letters=np.array(letters, np.int64))
    task.files.write(f'{task.name}.npz', arrays.getvalue())
    found = {'labels': labels, 'chunks': chunks, 'tally': tally.as_dict()}
    task.files.write(task.done, json.dumps(found).encode())


def read_cleaned(task: CleanTask) -> Cleaned:
    """What `clean_piece` has left of a piece."""
    found = json.loads(task.files.read(task.done))
    with task.files.open(f'{task.name}.npz') as file, np.load(file) as arrays:
        digests_Nx32, letters_N = arrays['digests'].reshape(-1, 32), arrays['letters']
    return Cleaned(digests_Nx32, letters_N, found['labels'], found['chunks'], Tally.of(found['tally']))
