"""A cohort on downstream tasks: its replicas as encoders to fine-tune, and what came of them as figures."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from data.tasks.tfidf import tfidf_scores
from train.cohort import MAJORITY, RANDOM, TFIDF, Cohort
from train.finetuning.encoders import Encoders, ready_for_pairs
from train.finetuning.task_data import TaskData
from train.finetuning.tune import Result, chosen
from train.objectives.table import objective_of
from train.randomness import WEIGHTS, purpose_key
from train.step import init_params


def cohort_encoders(cohort: Cohort, params_R: Any, baseline: str) -> Encoders:
    """All replicas, and of each replica of the baseline the weights that it started from.

    Those stand for the same encoder without pretraining. They are alike for all arms of one structure, so the
    baseline's serve for all.

    Args:
      params_R: the tree of `model.mlm`; None: the encoders have none yet.
    """
    config = cohort.config
    names = [(replica.arm, replica.seed) for replica in cohort.replicas]
    started = [replica.seed for replica in cohort.replicas if replica.arm == baseline]
    if started and params_R is not None:
        encoder = objective_of(config).encoder
        init = jax.vmap(lambda seed: encoder(init_params(purpose_key(seed, WEIGHTS), config)))

        def extended(params_R: Any, seeds_N: jax.Array) -> Any:
            return jax.tree.map(lambda a, b: jnp.concatenate([a, b]), params_R, init(seeds_N))

        seeds_N = np.asarray(started, np.uint32)
        # It runs once: see `train.program.Program.init`.
        compiled = jax.jit(extended).lower(params_R, seeds_N).compile({'xla_backend_optimization_level': 0})
        params_R = compiled(params_R, seeds_N)
    names += [(RANDOM, seed) for seed in started]
    if params_R is not None:
        params_R = ready_for_pairs(params_R, config)
    return Encoders(tuple(names), config.model, params_R, max(stage.length for stage in config.stages))


def task_figures(
    results: Sequence[Result], title: str, stage: int, step: int, held: Mapping[str, str] | None = None
) -> list[dict]:
    """Every fine-tuning at its arm's best point, as rows of results.csv: its scores and whether it learnt nothing.

    Args:
      held: arm -> the point at which its other seeds are reported already.
    """
    found = []
    for result in chosen(results, held):
        at = (None, None) if result.arm == RANDOM else (stage, step)
        for split, scores in result.scores.items():
            figures = {**scores, 'degenerate': float(result.degenerate[split])}
            if result.failed_at is not None:
                figures['finetuning_failed'] = result.failed_at
            found += [
                _figure(result.arm, result.seed, *at, metric, split_title(title, split), result.ft_seed, value)
                for metric, value in figures.items()
            ]
    return found


def reference_figures(data: TaskData, title: str) -> list[dict]:
    """What the commonest label and word counts reach."""
    by_name = {
        MAJORITY: {split: data.majority(split) for split in data.reported},
        TFIDF: tfidf_scores(data.task, data.reported),
    }
    return [
        _figure(name, None, None, None, metric, split_title(title, split), None, value)
        for name, splits in by_name.items()
        for split, scores in splits.items()
        for metric, value in scores.items()
    ]


def split_title(title: str, split: str) -> str:
    """What stands in column task: the split is named where it is not dev."""
    return title if split == 'dev' else f'{title} {split.replace("_", " ")}'


def _figure(arm, seed, stage, step, metric, task, ft_seed, value) -> dict:
    return {
        'kind': 'figure', 'arm': arm, 'seed': seed, 'stage': stage, 'step': step, 'metric': metric, 'eval_rate': None,
        'task': task, 'ft_seed': ft_seed, 'value': float(value),
    }  # fmt: skip
