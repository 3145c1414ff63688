"""The input formats of RoBERTa's Table 2 (Liu et al. 2019, Section 4.2), all cut from one store."""

from typing import Literal, Protocol

from data.document_rows import DocumentRows
from data.layout import Cut
from data.pair_rows import PairRows, Second
from data.rows import Rows
from data.store import Split
from data.vocabulary import Vocabulary

Format = Literal['full_sentences', 'doc_sentences', 'segment_pairs', 'sentence_pairs']


class AnyRows(Protocol):
    """Rows of a format, by number."""

    def __len__(self) -> int: ...

    def cut(self, seeds, epochs, row_ids) -> Cut:
        """The rows with these numbers, int [...], in these epochs of these seeds, which broadcast with them."""


def rows_of(
    split: Split, length: int, vocabulary: Vocabulary, form: Format = 'full_sentences', second: Second = 'next'
) -> AnyRows:
    """All rows of a split in a format.

    Args:
      second: what the second segment of a pair is.

    Raises:
      UserError: the split has no row of this length, or lacks what the format needs.
    """
    if form == 'full_sentences':
        return Rows(split, length, vocabulary)
    if form == 'doc_sentences':
        return DocumentRows(split, length, vocabulary)
    return PairRows(split, length, vocabulary, form == 'sentence_pairs', second)
