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
from train.config import Config, MaskingConfig, Stage
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
    vocab_size: int

    @property
    def config(self) -> Config:
        """A run of one stage, TOKENS a step or what whole rows come closest to it from below."""
        return Config(
            model=ModelConfig(**SIZES[self.size], max_length=max(self.length, 512), vocab_size=self.vocab_size),
            masking=MaskingConfig(corruption_rate=self.rate),
            stages=(Stage(length=self.length, batch_size=max(TOKENS // self.length, 1), steps=1_000_000),),
        )

    @property
    def tokens(self) -> int:
        """A step's."""
        (stage,) = self.config.stages
        return stage.length * stage.batch_size


def measure(case: Case, store: TokenStore, pairs: int, threads: int, seconds: float) -> Sides:
    """Seconds a step, by turns.

    Args:
      threads: those of the other side; 0 leaves it out.
    """
    vocabulary = store.tokenizer.vocabulary
    config = case.config
    program = Program.of(Cohort('bench', (Replica('bench', 0, config),)), vocabulary)
    rows = first_rows(program, store, 0, BATCHES)
    theirs = TorchSteps(config, [masked(config, host, vocabulary) for host in rows], threads) if threads else None
    return alternate(Steps(program, rows), theirs, pairs, seconds)


def masked(config: Config, host: HostBatch, vocabulary: Vocabulary) -> Masked:
    """The masks that our step draws for the rows of the first seed, as numpy arrays."""
    slots = target_slots([config.masking], config.stages[0].length)
    mask = jax.jit(partial(mask_rows, vocabulary=vocabulary, slots=slots, copies=1))
    tokens_BxL, row_ids_B, epochs_B = host.tokens_SxBxL[0], host.row_ids_SxB[0], host.epochs_SxB[0]
    return jax.device_get(
        mask(tokens_BxL, document_ids(tokens_BxL, vocabulary), row_ids_B, epochs_B, settings_at(config, 0, 0))
    )
