"""Small cohorts and rows for the tests of the step."""

import numpy as np

from data.loader import HostBatch
from model.config import ModelConfig
from tests.vocabularies import vocabulary_of
from train.cohort import Cohort, Replica, cohorts
from train.config import Config, MaskingConfig, OptimizerConfig, Stage
from train.program import Program

SIZE = 60
VOCABULARY = vocabulary_of(SIZE, 'case')


def config(rate: float = 0.15, micro_batches: int = 1, dropout: float = 0.0, steps: int = 30, **optimizer) -> Config:
    """A run of one layer on rows of 24 tokens, 8 a step."""
    return Config(
        model=ModelConfig(
            layers=2, width=16, heads=2, feed_forward=32, vocab_size=SIZE, max_length=24,
            dropout=dropout, attention_dropout=dropout,
        ),
        masking=MaskingConfig(corruption_rate=rate),
        optimizer=OptimizerConfig(micro_batches=micro_batches, warmup_share=0.2, **optimizer),
        stages=(Stage(length=24, batch_size=8, steps=steps),),
    )  # fmt: skip


def cohort(configs: dict[str, Config], seeds=(0,)) -> Cohort:
    """All arms with all seeds in one cohort."""
    (found,) = cohorts([Replica(arm, seed, each) for seed in seeds for arm, each in configs.items()], '')
    return found


def rows(seeds, step: int, batch_size: int = 8, length: int = 24) -> HostBatch:
    """Rows that depend on seed and step, with document ends in them and padding in some: uneven target counts."""
    slices = []
    for seed in seeds:
        rng = np.random.default_rng((seed, step))
        tokens = rng.integers(5, SIZE, (batch_size, length))
        tokens[rng.random(tokens.shape) < 0.1] = VOCABULARY.sep
        tokens[:, 0] = VOCABULARY.cls
        tokens[:, -1] = VOCABULARY.sep
        tokens[1, 4:] = VOCABULARY.pad
        tokens[batch_size - 1, 9:] = VOCABULARY.pad
        slices.append(tokens)
    row_ids = np.tile(np.arange(batch_size) + step * batch_size, (len(seeds), 1))
    return HostBatch(np.array(slices, np.int32), row_ids.astype(np.int32), np.zeros_like(row_ids, np.int32))


def trained(group: Cohort, steps: int, change=lambda host, step: host):
    """The state after some steps, and the metrics of each."""
    program = Program.of(group, VOCABULARY)
    update, state, metrics = program.compile_step(0), program.init(), []
    for step in range(steps):
        host = change(rows(group.seeds, step), step)
        state, each = update(state, program.settings(step), program.batch(host, 0, step))
        metrics.append(each)
    return state, metrics
