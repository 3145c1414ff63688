"""Small cohorts that train on rows of pairs, and the batches for them."""

import dataclasses

import numpy as np

from data.formats import rows_of
from data.loader import HostBatch
from tests.data.sentence_case import split_of_sentences
from tests.train import step_case
from tests.train.step_case import VOCABULARY
from train.cohort import Cohort
from train.config import Config
from train.objectives.config import ObjectiveConfig

SPLIT = split_of_sentences(np.random.default_rng(1).integers(1, 9, (12, 15)).tolist(), joins=True)
LENGTH = 24


def config(name: str = 'mlm_nsp', rows: str = 'segment_pairs', **changes) -> Config:
    made = dataclasses.replace(step_case.config(0.3), objective=ObjectiveConfig(name=name, rows=rows))
    return dataclasses.replace(made, **changes)


def batch(group: Cohort, step: int) -> HostBatch:
    """The batch of a step as the loader would make it, but for the order of rows."""
    objective = group.config.objective
    rows = rows_of(SPLIT, LENGTH, VOCABULARY, objective.rows, objective.second)
    ids = (np.arange(8 * len(group.seeds)) + 8 * step).reshape(-1, 8) % len(rows)
    cut = rows.cut(np.array(group.seeds)[:, None], 0, ids)
    return HostBatch(cut.tokens, ids.astype(np.int32), np.zeros_like(ids, np.int32), cut.joins, cut.pair_labels)
