"""Second step: a chunk of cleaned documents into tokens, for each side of the split."""

import functools
import io
import json
from dataclasses import dataclass
from itertools import chain

import numpy as np

from data.files import SCRATCH, Files
from data.preparing.selection import Chunk, Selection, documents_in
from data.sentences import encode_sentences
from data.store import PARTS
from data.tokenizer import Tokenizer, tokenizer_of

SPLITS = ('train', 'heldout')


@dataclass(frozen=True)
class TokenizeTask:
    """A chunk to tokenize."""

    files: Files
    number: int
    chunk: Chunk
    tokenizer: str
    """Name of the tokenizer's file."""
    fingerprint: str
    dtype: str
    language: str
    kept_N: np.ndarray
    heldout_N: np.ndarray
    labels_N: np.ndarray

    @property
    def name(self) -> str:
        return f'{SCRATCH}/tokens/{self.number:06d}.npz'

    @property
    def done(self) -> str:
        """The file that is written last."""
        return f'{SCRATCH}/tokens/{self.number:06d}.json'

    @property
    def size(self) -> int:
        """About how many bytes it has to do with."""
        return self.chunk.letters


def tokenize_tasks(
    files: Files, selection: Selection, tokenizer: Tokenizer, dtype: str, language: str
) -> list[TokenizeTask]:
    """A task for each chunk."""
    return [
        TokenizeTask(
            files,
            number,
            chunk,
            tokenizer.FILE,
            tokenizer.vocabulary.fingerprint,
            dtype,
            language,
            *(array[chunk.start : chunk.stop] for array in (selection.kept_N, selection.heldout_N, selection.labels_N)),
        )
        for number, chunk in enumerate(selection.chunks)
    ]


def tokenize_chunk(task: TokenizeTask) -> None:
    """Writes the chunk's tokens and labels and the lengths of its documents, paragraphs and sentences."""
    tokenizer = _tokenizer(task.files, task.tokenizer, task.fingerprint)
    documents = [document.split('\n') for document in documents_in(task.files, task.chunk)]
    chosen = np.flatnonzero(task.kept_N)
    lines = [line for number in chosen for line in documents[number]]
    encoded = encode_sentences(tokenizer, lines, task.language)
    sep = np.array([tokenizer.vocabulary.sep], np.int32)
    held = {split: {part: [] for part in PARTS} for split in SPLITS}
    empty = 0
    for number in chosen:
        paragraphs = [(ids_T, counts) for ids_T, counts in (next(encoded) for _ in documents[number]) if counts]
        if not paragraphs:
            empty += 1
            continue
        paragraphs[-1][1][-1] += 1  # [SEP], which ends a document
        into = held[SPLITS[int(task.heldout_N[number])]]
        into['tokens'] += [*(ids_T for ids_T, _ in paragraphs), sep]
        into['sentences'] += chain.from_iterable(counts for _, counts in paragraphs)
        into['paragraphs'] += (sum(counts) for _, counts in paragraphs)
        into['documents'].append(sum(sum(counts) for _, counts in paragraphs))
        into['labels'].append(task.labels_N[number])
    arrays = {
        f'{split}.{part}': _joined(found, task.dtype) if part == 'tokens' else np.array(found, np.int64)
        for split, parts in held.items()
        for part, found in parts.items()
    }
    content = io.BytesIO()
    np.savez(content, **arrays)
    task.files.write(task.name, content.getvalue())
    counts = {'empty': empty, 'lengths': {name: len(array) for name, array in arrays.items()}}
    task.files.write(task.done, json.dumps(counts).encode())


def _joined(arrays: list[np.ndarray], dtype: str) -> np.ndarray:
    return np.concatenate(arrays, dtype=dtype, casting='unsafe') if arrays else np.empty(0, dtype)


@functools.lru_cache(maxsize=1)
def _tokenizer(files: Files, name: str, fingerprint: str) -> Tokenizer:
    """Read once by each process. (The fingerprint tells it from another that was there before.)"""
    return tokenizer_of(name, files.read(name), files.path(name))
