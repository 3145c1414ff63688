"""Rows of two segments, A and B, for next-sentence prediction and sentence order.

Which sentences a row has is fixed by the length; where it is cut in two, whether B is exchanged and for what is drawn
from (seed, length, epoch, row). Thus no row is seen twice in an epoch, and an epoch has every sentence as a first or a
true second segment but those that random ones displace, which differ from epoch to epoch, and a document's last where
it would be alone in a row.
"""

from typing import Literal

import numpy as np

from data.errors import UserError
from data.layout import Cut, laid_out
from data.permutation import draws
from data.sentence_units import Units
from data.store import Split
from data.vocabulary import Vocabulary

Second = Literal['next', 'random', 'swapped']
"""What the second segment is: what follows the first; in half of the rows of another document instead (Devlin et al.
2019, Section 3.1); in half of the rows A and B change places (Lan et al. 2020, Section 3.1)."""
_TRIED, _TRIED_FOR_WHOLE = 8, 64
"""Sentences drawn for a random second segment, of which the first that fits is taken: one cut short would tell. In many
rows few are whole and fit."""


class PairRows:
    """A row is [CLS] A [SEP] B [SEP], padding; both are whole sentences, or parts of those longer than half a row."""

    def __init__(
        self,
        split: Split,
        length: int,
        vocabulary: Vocabulary,
        sentences: bool,
        second: Second,
        whole: bool = False,
    ):
        """Rows of `length` tokens, L.

        Args:
          sentences: A and B are a sentence each (Liu et al. 2019, Section 4.2: SENTENCE-PAIR); otherwise as many
            sentences of one document as fit are cut in two between sentences (SEGMENT-PAIR).
          whole: only rows without a part of a sentence, whose end would tell what follows it.

        Raises:
          UserError: no row has two sentences; or there is no other document for random segments.
        """
        self._split, self._length, self._vocabulary = split, length, vocabulary
        self._sentences, self._second, self._whole = sentences, second, whole
        self._tries = _TRIED_FOR_WHOLE if whole else _TRIED
        # Half of a row at most, so that any two fit.
        self._units = units = Units(split, (length - 3) // 2, vocabulary)
        if second == 'random' and len(units.documents_D) < 3:
            raise UserError(
                'next-sentence prediction takes second segments from other documents, and there is one document alone: '
                'use --objective.name mlm_sop or a corpus of more documents (a blank line in a .txt file begins one)'
            )
        if sentences:
            pairs_D = np.diff(units.documents_D) // 2
            first_of_D = np.cumsum(pairs_D) - pairs_D
            firsts_N = np.repeat(units.documents_D[:-1] - 2 * first_of_D, pairs_D) + 2 * np.arange(pairs_D.sum())
            lasts_N = firsts_N + 2
        else:
            firsts_N, lasts_N = units.packed(length - 3)
        paired_N = lasts_N - firsts_N > 1
        if whole:
            paired_N &= units.whole_to_U[firsts_N] >= lasts_N
        self._firsts_N, self._lasts_N = firsts_N[paired_N], lasts_N[paired_N]
        if whole and not len(self):
            raise UserError(f'no row of {length} tokens has two whole sentences')
        if not len(self):
            raise UserError(
                'no document has two sentences for a row of pairs: use a larger corpus, or --objective.rows '
                'full_sentences'
            )

    def __len__(self) -> int:
        return len(self._firsts_N)

    def cut(self, seeds, epochs, row_ids, exchanged: bool | None = None) -> Cut:
        """The rows with these numbers, as they are in these epochs of these seeds; all three broadcast.

        Args:
          exchanged: whether the second segment is not what follows, for all rows alike; None: drawn for each.
        """
        units, row_ids = self._units, np.asarray(row_ids, np.int64)
        drawn = draws(seeds, self._length, epochs, row_ids, 2 + self._tries * 2)
        firsts, lasts = (np.broadcast_to(each[row_ids], drawn.shape[:-1]) for each in (self._firsts_N, self._lasts_N))
        middles = firsts + 1 + _below(drawn[..., 0], lasts - firsts - 1)
        starts = np.stack([units.starts_U[firsts], units.starts_U[middles]], axis=-1)
        stops = np.stack([units.stops_U[middles - 1], units.stops_U[lasts - 1]], axis=-1)
        labels = None
        if self._second != 'next':
            labels = (drawn[..., 1] >> np.uint64(63)).astype(np.int32)
            if exchanged is not None:
                labels = np.full_like(labels, exchanged)
            other = labels[..., None] == 1
            if self._second == 'swapped':
                starts, stops = (np.where(other, each[..., ::-1], each) for each in (starts, stops))
            else:
                room = self._length - 3 - (stops - starts)[..., 0]
                begin, end = self._random(drawn[..., 2:], units.document_of(firsts), room)
                starts[..., 1], stops[..., 1] = (
                    np.where(other[..., 0], new, old) for new, old in ((begin, starts[..., 1]), (end, stops[..., 1]))
                )
        return Cut(*laid_out(self._split, starts, stops, self._length, self._vocabulary), labels)

    def _random(self, drawn, documents, room) -> tuple[np.ndarray, np.ndarray]:
        """A segment of any other document, each as likely, from any sentence of it on: its first token and past it."""
        units = self._units
        others = _below(drawn[..., : self._tries], np.int64(len(units.documents_D) - 2))
        others += others >= documents[..., None]
        low, high = units.documents_D[others], units.documents_D[others + 1]
        tried = low + _below(drawn[..., self._tries :], high - low)
        fits = units.stops_U[tried] - units.starts_U[tried] <= room[..., None]
        if self._whole:
            high = np.minimum(high, units.whole_to_U[tried])
            fits &= high > tried
        best = np.argmax(fits, axis=-1)[..., None]
        unit, last = (np.take_along_axis(each, best, axis=-1)[..., 0] for each in (tried, high))
        past = unit + 1 if self._sentences else np.maximum(units.fitting(unit, room, last), unit + 1)
        begin = units.starts_U[unit]
        return begin, np.minimum(units.stops_U[past - 1], begin + room)


def _below(drawn: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Numbers in [0, end), int64, of 64 random bits each."""
    return (drawn % ends.astype(np.uint64)).astype(np.int64)
