"""Held-out text as rows: cut as training text is, or paragraphs as rows of their own."""

import numpy as np

from data.rows import Rows
from data.store import Split
from data.vocabulary import Vocabulary

SHORTEST = 8
"""Tokens below which a paragraph is a heading or a signature, and is left out."""


def spread(total: int, wanted: int) -> np.ndarray:
    """Numbers of `wanted` of `total` items (0: of all), spread evenly over them: int64 [min(total, wanted)]."""
    wanted = min(wanted, total) or total
    return np.arange(wanted, dtype=np.int64) * total // max(wanted, 1)


def heldout_rows(split: Split, vocabulary: Vocabulary, length: int, wanted: int) -> tuple[np.ndarray, np.ndarray]:
    """Held-out rows, the last one padded so that no token is lost, and their numbers.

    Returns:
      tokens_NxL int32 and row_ids_N int32, N at most `wanted` (0: all), spread evenly over the text.
    """
    rows = Rows(split, length, vocabulary, keep_partial=True)
    row_ids_N = spread(len(rows), wanted)
    return rows.gather(row_ids_N), row_ids_N.astype(np.int32)


def chosen_paragraphs(split: Split, documents: np.ndarray, wanted: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Up to `wanted` paragraphs of the given documents, spread evenly over the text: the same for every arm and seed.

    Returns:
      Each paragraph's tokens, int32, without its document's [SEP], and the number of the document, int64.
    """
    starts, ends = np.asarray(split.paragraph_offsets[:-1]), np.asarray(split.paragraph_offsets[1:])
    owners = np.searchsorted(split.document_offsets, starts, side='right') - 1
    ends = ends - np.isin(ends, split.document_offsets)
    eligible = np.flatnonzero((ends - starts >= SHORTEST) & np.isin(owners, documents))
    chosen = eligible[spread(len(eligible), wanted)]
    return [np.asarray(split.tokens[starts[i] : ends[i]], np.int32) for i in chosen], owners[chosen]


def as_rows(texts: list[np.ndarray], vocabulary: Vocabulary, length: int) -> np.ndarray:
    """[CLS] text [SEP] and padding, int32 [N, L]; a text of more than L - 2 tokens is cut."""
    rows_NxL = np.full((len(texts), length), vocabulary.pad, np.int32)
    rows_NxL[:, 0] = vocabulary.cls
    for row_L, text in zip(rows_NxL, texts, strict=True):
        text = text[: length - 2]
        row_L[1 : 1 + len(text)] = text
        row_L[1 + len(text)] = vocabulary.sep
    return rows_NxL
