"""Between the steps: which documents are kept, which are held out, which train the tokenizer."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from data.errors import UserError
from data.files import Files
from data.preparing.cleaning import CleanTask, chunk_name, read_cleaned
from data.tally import Tally, sentence

TOKENIZER_LETTERS = 100_000_000
"""Text that a SentencePiece tokenizer is trained on at most: whole training documents, chosen by their hash."""


class Chunk(NamedTuple):
    """Documents [start, stop) of the cleaned corpus, and the file that holds them."""

    name: str
    start: int
    stop: int
    letters: int


class Selection(NamedTuple):
    """What becomes of each document of the cleaned corpus, in the corpus's order."""

    chunks: list[Chunk]
    digests_Nx32: np.ndarray
    kept_N: np.ndarray
    """bool: the first of its kind."""
    heldout_N: np.ndarray
    """bool, and False where it is not kept."""
    samples_N: np.ndarray
    """bool: trains the tokenizer."""
    labels_N: np.ndarray
    """int32, into `label_names`."""
    label_names: list[str]
    letters: int
    """Of all that is kept."""
    tally: Tally


def select(tasks: list[CleanTask], heldout_percent: float) -> Selection:
    """Reads what the first step has left and decides.

    Raises:
      UserError: there are not two documents.
    """
    found = [read_cleaned(task) for task in tasks]
    tally, chunks, start = Tally(), [], 0
    for task, cleaned in zip(tasks, found, strict=True):
        tally.add(cleaned.tally)
        first = start
        for number, count in enumerate(cleaned.chunks):
            letters = int(cleaned.letters_N[start - first : start - first + count].sum())
            chunks.append(Chunk(chunk_name(task.name, number), start, start + count, letters))
            start += count
    digests_Nx32 = np.concatenate([cleaned.digests_Nx32 for cleaned in found])
    letters_N = np.concatenate([cleaned.letters_N for cleaned in found])
    labels = np.array([label for cleaned in found for label in cleaned.labels], object)
    kept_N = first_of_their_kind(digests_Nx32)
    tally.dropped['duplicates'] += int(len(kept_N) - kept_N.sum())
    heldout_N = heldout(digests_Nx32, kept_N, heldout_percent, tally)
    names = sorted(set(labels[kept_N]))
    number = {name: i for i, name in enumerate(names)}
    letters = int(letters_N[kept_N].sum())
    return Selection(
        chunks=chunks,
        digests_Nx32=digests_Nx32,
        kept_N=kept_N,
        heldout_N=heldout_N,
        samples_N=kept_N & ~heldout_N & (fractions(digests_Nx32, 8) < TOKENIZER_LETTERS / letters),
        labels_N=np.array([number.get(label, -1) for label in labels], np.int32),
        label_names=names,
        letters=letters,
        tally=tally,
    )


def sample(files: Files, selection: Selection) -> list[str]:
    """The paragraphs that train the tokenizer."""
    return list(_sampled(files, selection))


def documents_in(files: Files, chunk: Chunk) -> list[str]:
    """The documents of a chunk, each its paragraphs on lines."""
    return files.read(chunk.name).decode().split('\n\n')


def _sampled(files: Files, selection: Selection) -> Iterator[str]:
    for chunk in selection.chunks:
        chosen = selection.samples_N[chunk.start : chunk.stop]
        if chosen.any():
            for document, wanted in zip(documents_in(files, chunk), chosen, strict=True):
                if wanted:
                    yield from document.split('\n')


def first_of_their_kind(digests_Nx32: np.ndarray) -> np.ndarray:
    """Which documents, bool, have no equal before them."""
    words_Nx4 = np.ascontiguousarray(digests_Nx32).view(np.uint64).reshape(-1, 4)
    order = np.lexsort(words_Nx4.T)  # stable, so that of equal ones the first comes first
    kept_N = np.ones(len(order), bool)
    kept_N[order[1:]] = (words_Nx4[order[1:]] != words_Nx4[order[:-1]]).any(axis=1)
    return kept_N


def fractions(digests_Nx32: np.ndarray, start: int) -> np.ndarray:
    """A number in [0, 1) of each document, from eight bytes of its hash."""
    words = np.ascontiguousarray(digests_Nx32[:, start : start + 8]).view('>u8').reshape(-1)
    return words.astype(np.float64) / 2**64


def heldout(digests_Nx32: np.ndarray, kept_N: np.ndarray, heldout_percent: float, tally: Tally) -> np.ndarray:
    """By hash, and at least one on each side."""
    if kept_N.sum() < 2:
        raise UserError(
            f'the corpus has {"one document" if kept_N.any() else "no document"} with text, and needs one to train on '
            f'and one to hold out ({sentence(tally.as_dict())}); a blank line in a .txt file begins a new document'
        )
    fractions_N = fractions(digests_Nx32, 0)
    heldout_N = kept_N & (fractions_N < heldout_percent / 100)
    heldout_N[np.where(kept_N, fractions_N, 2).argmin()] = True
    heldout_N[np.where(kept_N, fractions_N, -1).argmax()] = False
    return heldout_N
