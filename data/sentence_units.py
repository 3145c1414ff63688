"""What rows of whole sentences are made of: sentences, in parts where they are too long for a row."""

from array import array

import numpy as np

from data.store import Split
from data.vocabulary import Vocabulary


class Units:
    """The sentences of a split in order, none of more than `longest` tokens; no [SEP] is in one.

    A longer sentence makes several units. Within a document units touch each other.
    """

    def __init__(self, split: Split, longest: int, vocabulary: Vocabulary):
        offsets, documents = np.asarray(split.sentence_offsets), np.asarray(split.document_offsets)
        stops_S, ends = offsets[1:].copy(), documents[1:]
        if len(split.tokens) and split.tokens[-1] != vocabulary.sep:  # a split that was cut inside a document
            ends = ends[:-1]
        stops_S[np.searchsorted(offsets, ends) - 1] -= 1
        parts_S = -(-(stops_S - offsets[:-1]) // longest)
        before_S = np.concatenate([[0], np.cumsum(parts_S)])
        self.starts_U = np.repeat(offsets[:-1], parts_S)
        self.starts_U += longest * (np.arange(len(self.starts_U)) - np.repeat(before_S[:-1], parts_S))
        """int64 [U]: each unit's first token."""
        self.stops_U = np.minimum(self.starts_U + longest, np.repeat(stops_S, parts_S))
        """int64 [U]: past each unit's last token."""
        self.whole_to_U = _run_ends(np.repeat(parts_S == 1, parts_S))
        """int64 [U]: past the last of the whole sentences in a row from each unit on; of a part, itself."""
        self.documents_D = np.unique(before_S[np.searchsorted(offsets, documents)])
        """int64 [documents + 1]: each document's first unit, and the number of all; documents without one are left
        out."""

    def document_of(self, units) -> np.ndarray:
        """The document that each unit is in."""
        return np.searchsorted(self.documents_D, units, side='right') - 1

    def fitting(self, units, room, last) -> np.ndarray:
        """Past the last of the units from each of `units` on that together have at most `room` tokens, up to `last`."""
        return np.minimum(np.searchsorted(self.stops_U, self.starts_U[units] + room, side='right'), last)

    def packed(self, room: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows of at most `room` tokens, each as many units of one document as fit: first and past the last, int64."""
        units = np.arange(len(self.starts_U))
        last_U = np.repeat(self.documents_D[1:], np.diff(self.documents_D))
        next_U = memoryview(self.fitting(units, room, last_U))
        firsts, unit = array('q'), 0
        while unit < len(next_U):
            firsts.append(unit)
            unit = next_U[unit]
        firsts_N = np.array(firsts, np.int64)
        return firsts_N, np.array(next_U, np.int64)[firsts_N]


def _run_ends(true_U: np.ndarray) -> np.ndarray:
    """Where the run of true values ends that each value is in, int64; of a false one, its own place."""
    places = np.arange(len(true_U))
    return np.minimum.accumulate(np.where(true_U, len(true_U), places)[::-1])[::-1]
