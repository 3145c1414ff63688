"""Held-out paragraphs as rows of their own: [CLS], the paragraph's first L - 2 tokens, [SEP], padding."""

import numpy as np

from data.store import Split
from data.vocabulary import Vocabulary
from train.evaluate import spread

SHORTEST = 8
"""Tokens below which a paragraph is a heading or a signature, and is left out."""


def paragraphs_of(split: Split, vocabulary: Vocabulary, documents: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Paragraphs of the given documents, without special ids, those that are too short left out.

    Returns:
      Each paragraph's tokens, and the document that each is from, int64.
    """
    starts = np.asarray(split.paragraph_offsets)
    of_document = np.searchsorted(np.asarray(split.document_offsets), starts[:-1], side='right') - 1
    found, owners = [], []
    for index in np.flatnonzero(np.isin(of_document, documents)):
        tokens = np.asarray(split.tokens[starts[index] : starts[index + 1]], np.int32)
        tokens = tokens[tokens != vocabulary.sep]
        if len(tokens) >= SHORTEST:
            found.append(tokens)
            owners.append(of_document[index])
    return found, np.asarray(owners, np.int64)


def chosen_paragraphs(
    split: Split, vocabulary: Vocabulary, documents: np.ndarray, wanted: int
) -> tuple[list[np.ndarray], np.ndarray]:
    """At most `wanted` of `paragraphs_of`, spread evenly over the text: the same for every arm and seed."""
    found, owners = paragraphs_of(split, vocabulary, documents)
    chosen = spread(len(found), wanted)
    return [found[index] for index in chosen], owners[chosen]


def as_rows(texts: list[np.ndarray], vocabulary: Vocabulary, length: int) -> np.ndarray:
    """[CLS] text [SEP] and padding, int32 [N, L]; a text of more than L - 2 tokens is cut."""
    rows_NxL = np.full((len(texts), length), vocabulary.pad, np.int32)
    rows_NxL[:, 0] = vocabulary.cls
    for row_L, text in zip(rows_NxL, texts, strict=True):
        text = text[: length - 2]
        row_L[1 : 1 + len(text)] = text
        row_L[1 + len(text)] = vocabulary.sep
    return rows_NxL
