"""Rows of whole sentences of one document (Liu et al. 2019, Section 4.2: DOC-SENTENCES)."""

from data.layout import Cut, laid_out
from data.sentence_units import Units
from data.store import Split
from data.vocabulary import Vocabulary


class DocumentRows:
    """A row is [CLS], as many sentences of one document as fit, [SEP], padding; every token is in one row."""

    def __init__(self, split: Split, length: int, vocabulary: Vocabulary):
        """Rows of `length` tokens, L; a sentence of more than L - 2 fills several."""
        self._split, self._length, self._vocabulary = split, length, vocabulary
        units = Units(split, length - 2, vocabulary)
        firsts_N, lasts_N = units.packed(length - 2)
        self._starts_N, self._stops_N = units.starts_U[firsts_N], units.stops_U[lasts_N - 1]

    def __len__(self) -> int:
        return len(self._starts_N)

    def cut(self, seeds, epochs, row_ids) -> Cut:
        """The rows with these numbers; neither seeds nor epochs change them."""
        starts, stops = (each[row_ids][..., None] for each in (self._starts_N, self._stops_N))
        return Cut(*laid_out(self._split, starts, stops, self._length, self._vocabulary))
