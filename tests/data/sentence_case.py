"""Splits of sentences, and what rows of sentences are by plain loops."""

import numpy as np
from hypothesis import strategies as st

from data.store import Split
from tests.data.corpora import VOCABULARY

SEP = VOCABULARY.sep


def split_of_sentences(documents: list[list[int]], joins: bool = False) -> Split:
    """Documents given by the lengths of their sentences. The tokens count up from 5 and come round at 59."""
    tokens, document_offsets, sentence_offsets, number = [], [0], [0], 0
    for lengths in documents:
        for length in lengths:
            tokens += [5 + (number + i) % 55 for i in range(length)]
            number += length
            sentence_offsets.append(len(tokens))
        tokens.append(SEP)
        sentence_offsets[-1] = len(tokens)
        document_offsets.append(len(tokens))
    tokens = np.array(tokens, np.uint16)
    sentences = np.array(sentence_offsets, np.int64)
    return Split(
        tokens=tokens,
        document_offsets=np.array(document_offsets, np.int64),
        paragraph_offsets=sentences,
        sentence_offsets=sentences,
        labels=[''] * len(documents),
        joins=tokens % 3 == 0 if joins else None,
    )


def plain_units(documents: list[list[int]], longest: int) -> list[list[tuple[int, int]]]:
    """Of each document its units as (first token, past the last), sentence by sentence."""
    found, start = [], 0
    for lengths in documents:
        units = []
        for length in lengths:
            units += [(begin, min(begin + longest, start + length)) for begin in range(start, start + length, longest)]
            start += length
        found.append(units)
        start += 1  # [SEP]
    return found


def plain_packed(units: list[tuple[int, int]], room: int) -> list[list[tuple[int, int]]]:
    """The units of one document in rows of at most `room` tokens."""
    rows: list[list[tuple[int, int]]] = []
    for unit in units:
        if rows and unit[1] - rows[-1][0][0] <= room:
            rows[-1].append(unit)
        else:
            rows.append([unit])
    return rows


documents = st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=12), min_size=1, max_size=6)
