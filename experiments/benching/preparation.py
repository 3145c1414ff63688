"""Tokens a second of a preparation on one core, beside a plain loop over SentencePiece."""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass

from data.build import build
from data.clean import clean, paragraphs
from data.config import DataConfig
from data.corpus import documents
from data.files import Files
from data.preparing.runners import one_by_one
from data.store import TokenStore
from experiments.benching.clock import Sides


@dataclass(frozen=True)
class Preparation:
    """What both sides took, and how much they tokenized."""

    tokens: int
    sides: Sides


def measure(store: TokenStore, pairs: int) -> Preparation:
    """CPU seconds a pass over the embedded corpus, by turns, with the store's tokenizer; each side is one process.

    Ours reads the corpus, cleans, hashes, deduplicates, tokenizes and writes a store with its hashes. The other side
    has the paragraphs in memory, calls `encode` for each and keeps the ids as they come.
    """
    processor = store.tokenizer.processor
    texts = [text for document in documents('sotu') for text in paragraphs(clean(document.text).text)]

    def ours() -> None:
        with tempfile.TemporaryDirectory() as folder:
            build(DataConfig(), Files(folder), one_by_one, lambda line: None, store.tokenizer)

    def theirs() -> list[list[int]]:
        return [processor.encode(text) for text in texts]

    ours(), theirs()  # the first pass of all touches new memory
    turns = [[_cpu_seconds(side) for side in (ours, theirs)] for _ in range(pairs)]
    sides = Sides(*(tuple(side) for side in zip(*turns, strict=True)))
    return Preparation(sum(map(len, theirs())), sides)


def _cpu_seconds(run: Callable[[], object]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began
