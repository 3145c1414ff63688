"""Our train step, with the host's work that the training loop does for each."""

import itertools
from collections.abc import Sequence

import jax

from data.loader import HostBatch, batches
from data.store import TokenStore
from train.program import Program


def first_rows(program: Program, store: TokenStore, stage: int, count: int) -> list[HostBatch]:
    """The first batches of a stage."""
    shape = program.cohort.config.stages[stage]
    return list(
        batches(
            store.train,
            store.tokenizer.vocabulary,
            seeds=program.cohort.seeds,
            length=shape.length,
            batch_size=shape.batch_size,
            start=0,
            steps=count,
            local=program.local_rows(stage),
        )
    )


class Steps:
    """A program's steps in a stage, one after another, over the same few batches again and again."""

    def __init__(self, program: Program, rows: Sequence[HostBatch], stage: int = 0):
        self._program, self._rows, self._stage = program, itertools.cycle(rows), stage
        self._update = program.compile_step(stage)
        self._state, self._step = program.init(), 0

    def __call__(self, steps: int) -> None:
        """Runs steps; each one's metrics are fetched while the next runs, as in training."""
        before = None
        for host in itertools.islice(self._rows, steps):
            settings, batch = self._program.settings(self._step), self._program.batch(host, self._stage, self._step)
            self._state, metrics = self._update(self._state, settings, batch)
            jax.device_get(before)
            before = metrics
            self._step += 1
        jax.block_until_ready(self._state)
