"""How segments of text lie in a row."""

from typing import NamedTuple

import numpy as np

from data.store import Split
from data.vocabulary import Vocabulary


class Cut(NamedTuple):
    """Rows with all that is known of them."""

    tokens: np.ndarray
    """int32 [..., L]."""
    joins: np.ndarray | None = None
    """bool [..., L]: tokens that go on with the collocation before them; None if none were mined."""
    pair_labels: np.ndarray | None = None
    """int32 [...]: 1 where the second segment is not what follows the first; None where that is not asked."""


def laid_out(
    split: Split, starts: np.ndarray, stops: np.ndarray, length: int, vocabulary: Vocabulary
) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows [CLS] segment [SEP], and for each further segment that and one more [SEP]; then [PAD].

    Args:
      starts, stops: int [..., K]: segment k is the tokens [start, stop) of the split. They fit a row of `length`.

    Returns:
      `Cut.tokens` and `Cut.joins`.
    """
    shape, segments = starts.shape[:-1], starts.shape[-1]
    starts_NxK, stops_NxK = starts.reshape(-1, segments), stops.reshape(-1, segments)
    tokens_NxL = np.full((len(starts_NxK), length), vocabulary.pad, np.int32)
    joins_NxL = None if split.joins is None else np.zeros(tokens_NxL.shape, bool)
    tokens_NxL[:, 0] = vocabulary.cls
    rows_N, places_1xL = np.arange(len(tokens_NxL)), np.arange(length)[None]
    begin_Nx1 = np.ones((len(tokens_NxL), 1), np.int64)
    for k in range(segments):
        start_Nx1, end_Nx1 = starts_NxK[:, k : k + 1], begin_Nx1 + stops_NxK[:, k : k + 1] - starts_NxK[:, k : k + 1]
        inside_NxL = (places_1xL >= begin_Nx1) & (places_1xL < end_Nx1)
        found = (start_Nx1 - begin_Nx1 + places_1xL)[inside_NxL]
        tokens_NxL[inside_NxL] = split.tokens[found]
        if joins_NxL is not None:
            joins_NxL[inside_NxL] = split.joins[found]
        tokens_NxL[rows_N, end_Nx1[:, 0]] = vocabulary.sep
        begin_Nx1 = end_Nx1 + 1
    return tokens_NxL.reshape(*shape, length), None if joins_NxL is None else joins_NxL.reshape(*shape, length)
