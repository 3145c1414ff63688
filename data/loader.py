"""Batches for all seeds of a run: a pure function of (seed, length, rows seen)."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import grain
import numpy as np

from data.formats import AnyRows, Format, rows_of
from data.pair_rows import Second
from data.permutation import permute
from data.store import Split
from data.vocabulary import Vocabulary

_CHUNK_TOKENS = 1 << 21
"""Tokens gathered at once: enough that the permutation's cost vanishes, 8 MiB as int32."""


class HostBatch(NamedTuple):
    """One step's rows, a slice for each seed; of a run on several hosts, this host's share."""

    tokens_SxBxL: np.ndarray
    """int32."""
    row_ids_SxB: np.ndarray
    """int32: each row's number in the split."""
    epochs_SxB: np.ndarray
    """int32: how often its seed had seen the whole split before."""
    joins_SxBxL: np.ndarray | None = None
    """bool: tokens that go on with the collocation before them, where those were mined."""
    pair_labels_SxB: np.ndarray | None = None
    """int32: 1 where the second segment is not what follows the first, in rows of pairs where that is asked."""


def batches(
    split: Split,
    vocabulary: Vocabulary,
    *,
    seeds: Sequence[int],
    length: int,
    batch_size: int,
    start: int,
    steps: int,
    local: slice | np.ndarray = slice(None),
    form: Format = 'full_sentences',
    second: Second = 'next',
) -> Iterator[HostBatch]:
    """The batches of `steps` steps of a stage, prefetched on a thread of Grain's.

    The row at position p is `permute(seed, length, p // rows, p % rows, rows)`.

    Args:
      length: tokens a row, L.
      batch_size: rows a step over all hosts, B.
      start: rows seen before at this length, which is the whole state of the data.
      local: this host's part of B, as a slice or as rows' numbers. Only its rows are read.
      form, second: what rows are (`data.formats`).

    Raises:
      UserError: the split is too small for one row, or lacks what the format needs.
    """
    chunks = _Chunks(rows_of(split, length, vocabulary, form, second), seeds, length, batch_size, start, steps, local)
    options = grain.ReadOptions(num_threads=1, prefetch_buffer_size=2)
    return _unstacked(grain.MapDataset.source(chunks).to_iter_dataset(options))


def _unstacked(chunks) -> Iterator[HostBatch]:
    for chunk in chunks:
        for index in range(len(chunk.tokens_SxBxL)):
            yield HostBatch(*(None if array is None else array[index] for array in chunk))


class _Chunks:
    """Grain's random-access source. A record is a chunk's batches, on a leading axis."""

    def __init__(self, rows: AnyRows, seeds, length: int, batch_size: int, start: int, steps: int, local):
        self._rows, self._seeds, self._length, self._batch_size = rows, seeds, length, batch_size
        self._start, self._steps = start, steps
        self._local_B = np.arange(batch_size)[local]
        self._batches = max(1, _CHUNK_TOKENS // max(len(seeds) * len(self._local_B) * length, 1))

    def __len__(self) -> int:
        return -(-self._steps // self._batches)

    def __getitem__(self, index) -> HostBatch:
        first = int(index) * self._batches
        steps_N = np.arange(first, min(first + self._batches, self._steps))
        positions_NxB = self._start + steps_N[:, None] * self._batch_size + self._local_B
        epochs_NxB, positions_NxB = np.divmod(positions_NxB, len(self._rows))
        row_ids_NxSxB = np.stack(
            [permute(seed, self._length, epochs_NxB, positions_NxB, len(self._rows)) for seed in self._seeds], axis=1
        )
        epochs_NxSxB = np.broadcast_to(epochs_NxB[:, None], row_ids_NxSxB.shape)
        cut = self._rows.cut(np.array(self._seeds)[:, None], epochs_NxSxB, row_ids_NxSxB)
        numbers = (row_ids_NxSxB.astype(np.int32), epochs_NxSxB.astype(np.int32))
        return HostBatch(cut.tokens, *numbers, cut.joins, cut.pair_labels)
