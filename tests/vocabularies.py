"""Vocabularies as SentencePiece makes them, without a tokenizer."""

import numpy as np

from data.vocabulary import Vocabulary


def vocabulary_of(size: int, fingerprint: str) -> Vocabulary:
    """Specials first, then ordinary ids, every third of which begins a word."""
    return Vocabulary(
        size=size,
        pad=0,
        unk=1,
        cls=2,
        sep=3,
        mask=4,
        ordinary=np.arange(5, size, dtype=np.int32),
        fingerprint=fingerprint,
        starts_word=np.arange(size) % 3 == 0,
    )
