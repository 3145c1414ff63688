"""Small encoders and tasks whose answer is in the tokens, for the tests of fine-tuning."""

import dataclasses

import jax
import numpy as np

from data.tasks.features import Features
from model import mlm
from model.config import ModelConfig
from tests.train.step_case import SIZE, VOCABULARY
from train.config import RunConfig
from train.finetuning.config import FinetuneConfig
from train.finetuning.encoders import Encoders
from train.finetuning.network import Network
from train.finetuning.program import Program, Replica

MODEL = ModelConfig(
    layers=2, width=16, heads=2, feed_forward=32, vocab_size=SIZE, max_length=40, dropout=0.1, attention_dropout=0.1
)
CONFIG = FinetuneConfig(
    batch_size=4, learning_rate=3e-3, epochs=2, max_length=40, evaluation_batch_size=4, run=RunConfig(mesh=(1, 1, 1, 1))
)
LABELS = {'classification': 3, 'regression': 1, 'tagging': 3, 'span': 2}


def encoders(count: int = 1, model: ModelConfig = MODEL) -> Encoders:
    params = [mlm.init(jax.random.key(seed), model) for seed in range(count)]
    return Encoders(
        tuple(('arm', seed) for seed in range(count)), model, jax.tree.map(lambda *a: np.stack(a), *params), 40
    )


def features(kind: str = 'classification', rows: int = 30, seed: int = 0, longest: int = 38) -> Features:
    """Rows of [CLS], ids from 5 to 55, [SEP], in which ids below 10 answer.

    classification, regression: how many of them there are, up to 2; tagging: 1 for such an id, 2 for the id after it;
    span: from the first of them to the last.
    """
    random = np.random.default_rng(seed)
    tokens, targets, offsets = [], [], [0]
    for _ in range(rows):
        ids = random.integers(10, 55, random.integers(3, longest))
        marked = np.sort(random.choice(len(ids), random.integers(0, 3), replace=False))
        ids[marked] = random.integers(5, 10, len(marked))
        row = np.array([VOCABULARY.cls, *ids, VOCABULARY.sep], np.int32)
        tags = np.where((row >= 5) & (row < 10), 1, 0)
        tags[1:][(tags[:-1] == 1) & (tags[1:] == 0)] = 2
        tags[[0, -1]] = -1
        answer = (marked[0] + 1, marked[-1] + 1) if len(marked) else (0, 0)
        targets.append({'tagging': tags, 'span': answer}.get(kind, len(marked)))
        tokens.append(row)
        offsets.append(offsets[-1] + len(row))
    return Features(
        kind, VOCABULARY, 40, np.concatenate(tokens), np.zeros(offsets[-1], np.int32), np.array(offsets),
        examples_N=np.arange(rows, dtype=np.int32),
        targets=np.concatenate(targets).astype(np.int32) if kind == 'tagging'
        else np.array(targets, np.float32 if kind == 'regression' else np.int32),
    )  # fmt: skip


def program(kind: str = 'classification', seeds=(0,), encoders_=None, points=(CONFIG,), frozen: int = 0) -> Program:
    """Every encoder with every seed at every point."""
    encoders_ = encoders_ or encoders()
    points = [dataclasses.replace(point, features=frozen) for point in points]
    network = Network(encoders_.model, kind, LABELS[kind], frozen)
    return Program.of(
        network,
        encoders_,
        tuple(Replica(e, s, p) for e in range(len(encoders_.names)) for s in seeds for p in points),
    )
