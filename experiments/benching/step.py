"""Tokens a second of our step and of the same step in PyTorch, on the same rows with the same masks."""

from dataclasses import dataclass
from functools import partial

import jax

from data.loader import HostBatch
from data.store import TokenStore
from data.vocabulary import Vocabulary
from experiments.benching.clock import Sides, alternate
from experiments.benching.ours import Steps, first_rows
from experiments.benching.torch_peer import TorchSteps
from model.config import SIZES, ModelConfig
from train.cohort import Cohort, Replica
from train.config import Config, MaskingConfig, RunConfig, Stage
from train.masking import Masked, document_ids, mask_rows
from train.program import Program
from train.rates import target_slots
from train.settings import settings_at

TOKENS = 4096
"""Tokens a step, at every length."""
BATCHES = 8
"""Different batches that the steps go through."""


@dataclass(frozen=True)
class Case:
    """What is timed: BERT of a size, all as published but for the vocabulary."""

    size: str
    length: int
    rate: float

    def config(self, vocab_size: int, mesh: tuple[int, int]) -> Config:
        """A run of one stage."""
        return Config(
            model=ModelConfig(**SIZES[self.size], max_length=max(self.length, 8), vocab_size=vocab_size),
            masking=MaskingConfig(corruption_rate=self.rate),
            stages=(Stage(length=self.length, batch_size=max(TOKENS // self.length, 1), steps=1_000_000),),
            run=RunConfig(mesh=mesh),
        )


def measure(case: Case, store: TokenStore, pairs: int, peer: bool, threads: int, mesh=(1, -1), seconds=1.0) -> Sides:
    """Seconds a step, by turns; the other side is left out where `peer` is false."""
    vocabulary = store.tokenizer.vocabulary
    config = case.config(vocabulary.size, mesh)
    program = Program.of(Cohort('bench', (Replica('bench', 0, config),)), vocabulary)
    rows = first_rows(program, store, 0, BATCHES)
    theirs = TorchSteps(config, [masked(config, host, vocabulary) for host in rows], threads) if peer else None
    return alternate(Steps(program, rows), theirs, pairs, seconds)


def masked(config: Config, host: HostBatch, vocabulary: Vocabulary) -> Masked:
    """The masks that our step draws for the rows of the first seed, as numpy arrays."""
    slots = target_slots([config.masking], config.stages[0].length)
    mask = jax.jit(partial(mask_rows, vocabulary=vocabulary, slots=slots, copies=1))
    tokens_BxL, row_ids_B, epochs_B = (leaf[0] for leaf in host)
    return jax.device_get(
        mask(tokens_BxL, document_ids(tokens_BxL, vocabulary), row_ids_B, epochs_B, settings_at(config, 0, 0))
    )
