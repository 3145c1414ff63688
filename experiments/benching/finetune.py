"""Examples a second of fine-tuning, and of the same in PyTorch, on the same rows of SST-2."""

import jax

from data.build import read_tokenizer
from data.store import TokenStore
from data.tasks.buckets import steps_per_epoch, training_batches
from data.tasks.config import TaskConfig
from data.tasks.features import Features, encode
from data.tasks.registry import load_task
from data.tasks.slices import limited
from experiments.benching.clock import Sides, alternate
from experiments.benching.torch_finetune import TorchPasses
from model import mlm
from model.config import SIZES, ModelConfig
from train.finetuning.config import FinetuneConfig
from train.finetuning.encoders import Encoders
from train.finetuning.network import Network
from train.finetuning.program import Program, Replica

BATCH_SIZE, MAX_LENGTH = 32, 128
ROWS = 16 * BATCH_SIZE
"""Rows of a pass: one pass is timed as one step, so that every turn has rows of all lengths."""
CONFIG = FinetuneConfig(batch_size=BATCH_SIZE, max_length=MAX_LENGTH)


def sst2_rows(data_dir: str, tokenizer: str, store: TokenStore) -> Features:
    """Rows of SST-2's training examples.

    Raises:
      UserError: the data or the tokenizer is not there.
    """
    task = limited(load_task(TaskConfig(task='sst2', data_dir=data_dir)), 'train', ROWS)
    chosen = read_tokenizer(tokenizer) if tokenizer else store.tokenizer
    return encode(task, task.examples('train'), chosen, MAX_LENGTH)


def measure(size: str, rows: Features, pairs: int, threads: int, seconds: float) -> Sides:
    """Seconds a pass over the rows, by turns.

    Args:
      threads: those of the other side; 0 leaves it out.
    """
    model = ModelConfig(**SIZES[size], max_length=512, vocab_size=rows.vocabulary.size)
    theirs = TorchPasses(model, CONFIG, rows, threads) if threads else None
    return alternate(Passes(model, rows), theirs, pairs, seconds)


class Passes:
    """Passes over the rows, with the host's work that the loop does for each step."""

    def __init__(self, model: ModelConfig, rows: Features):
        encoders = Encoders.one(('bench', 0), model, mlm.init(jax.random.key(0), model), MAX_LENGTH)
        self._program = Program.of(Network(model, rows.kind, 2), encoders, (Replica(0, 0, CONFIG),))
        self._rows, self._step = rows, 0
        self._state, self._frozen = self._program.init()
        self(1)  # compiles a step for each length

    def __call__(self, passes: int) -> None:
        """Runs passes, each with a learning rate that rises and falls."""
        before, in_pass = None, steps_per_epoch(self._rows, BATCH_SIZE)
        batches = training_batches(
            self._rows,
            seeds=self._program.seeds,
            batch_size=BATCH_SIZE,
            epochs=self._step // in_pass + passes,
            start=self._step,
        )
        for host in batches:
            settings = self._program.settings(self._step % in_pass, in_pass)
            batch = self._program.batch(host, self._step)
            self._state, metrics = self._program.step(self._state, self._frozen, settings, batch)
            jax.device_get(before)
            before = metrics
            self._step += 1
        jax.block_until_ready(self._state)
