"""Fixed-length rows, cut from a split by index arithmetic."""

import numpy as np

from data.errors import UserError
from data.layout import Cut
from data.store import Split
from data.vocabulary import Vocabulary


class Rows:
    """Row r is [CLS], tokens r * (L - 2) to (r + 1) * (L - 2) of the split, [SEP]: every length shares one store."""

    def __init__(self, split: Split, length: int, vocabulary: Vocabulary, keep_partial: bool = False):
        """Rows of `length` tokens, L.

        Args:
          keep_partial: the tokens that fill no whole row become one last row, [PAD] after its [SEP] (held-out text, of
            which every token counts). Otherwise they are left out.

        Raises:
          UserError: the split has too few tokens for one row.
        """
        if length < 3:
            raise ValueError(f'length is {length}: a row needs [CLS], a token and [SEP]')
        body = length - 2
        whole = len(split.tokens) // body
        self._length, self._vocabulary = length, vocabulary
        self._bodies_NxL = split.tokens[: whole * body].reshape(whole, body)
        self._joins = split.joins
        self._rest = np.asarray(split.tokens[whole * body :], np.int32) if keep_partial else np.empty(0, np.int32)
        if not len(self):
            raise UserError(
                f'{len(split.tokens):,} tokens are too few for one row of length {length}: use a larger corpus or '
                'shorter rows (--stages.N.length)'
            )

    def __len__(self) -> int:
        return len(self._bodies_NxL) + bool(len(self._rest))

    def gather(self, row_ids) -> np.ndarray:
        """The rows with these numbers.

        Args:
          row_ids: int [...], each in [0, len(self)).

        Returns:
          int32 [..., L].

        Raises:
          IndexError: there is no such row.
        """
        row_ids = np.asarray(row_ids, np.int64)
        if row_ids.size and not 0 <= row_ids.min() <= row_ids.max() < len(self):
            raise IndexError(f'row numbers {row_ids.min()} to {row_ids.max()}: there are {len(self)} rows')
        tokens = np.empty((*row_ids.shape, self._length), np.int32)
        tokens[..., 0] = self._vocabulary.cls
        tokens[..., -1] = self._vocabulary.sep
        whole = len(self._bodies_NxL)
        if whole:
            # Whole rows are copied as such, which is several times as fast as indexing tokens one by one.
            tokens[..., 1:-1] = np.take(self._bodies_NxL, np.minimum(row_ids, whole - 1), axis=0)
        if len(self._rest):
            last = np.full(self._length, self._vocabulary.pad, np.int32)
            last[: len(self._rest) + 2] = [self._vocabulary.cls, *self._rest, self._vocabulary.sep]
            tokens[row_ids == whole] = last
        return tokens

    def cut(self, seeds, epochs, row_ids) -> Cut:
        """The rows with these numbers; neither seeds nor epochs change them."""
        return Cut(self.gather(row_ids), self.joins(row_ids))

    def joins(self, row_ids) -> np.ndarray | None:
        """Which tokens of these rows go on with the collocation before them: bool [..., L]; None if none were mined."""
        if self._joins is None:
            return None
        row_ids = np.asarray(row_ids, np.int64)
        whole, body = self._bodies_NxL.shape
        found = np.zeros((*row_ids.shape, self._length), bool)
        if whole:
            bodies_NxL = self._joins[: whole * body].reshape(whole, body)
            found[..., 1:-1] = np.take(bodies_NxL, np.minimum(row_ids, whole - 1), axis=0)
        last = np.zeros(self._length, bool)
        last[1 : len(self._rest) + 1] = self._joins[whole * body :][: len(self._rest)]
        found[row_ids == whole] = last
        return found
