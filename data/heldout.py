"""The documents that a store holds out, read anew from its corpus."""

import hashlib
from collections.abc import Iterator

import numpy as np

from data.clean import clean, paragraphs
from data.config import DataConfig
from data.corpus import Document, documents
from data.preparing.selection import first_of_their_kind, fractions, heldout
from data.tally import Tally


def heldout_documents(config: DataConfig) -> Iterator[tuple[Document, list[str]]]:
    """The documents that a store of `config` holds out, in order, with their paragraphs.

    Raises:
      UserError: the corpus cannot be read or is too small.
    """
    digests, candidates, lowest = [], {}, 1.0
    for document in documents(config.corpus, config.encoding):
        blocks = paragraphs(clean(document.text).text)
        if not blocks:
            continue
        digests.append(np.frombuffer(hashlib.sha256(' '.join(blocks).encode()).digest(), np.uint8))
        (fraction,) = fractions(digests[-1][None], 0)
        if fraction < config.heldout_percent / 100 or fraction < lowest:  # the lowest is held out in any case
            candidates[len(digests) - 1] = document, blocks
            lowest = min(lowest, fraction)
    digests_Nx32 = np.array(digests, np.uint8).reshape(-1, 32)
    heldout_N = heldout(digests_Nx32, first_of_their_kind(digests_Nx32), config.heldout_percent, Tally())
    for number in np.flatnonzero(heldout_N).tolist():
        yield candidates[number]
