"""How big an ablation runs, defined once for all configs.

smoke      to see that everything works: seconds of training.
cpu        the default: about 5 minutes on 2 cores for masking_rate's 9 replicas, on the embedded corpus.
overnight  a deeper, wider model and many more steps on the same corpus: a night on 2 cores.
paper      BERT-base as published, on a pod; what a paper did otherwise stands in its config.

Every scale keeps BERT's curriculum (Devlin et al. 2019, Appendix A.2): nine tenths of the steps on short rows, then one
tenth on rows several times as long, under one learning-rate schedule.
"""

import dataclasses
from collections.abc import Callable
from typing import Literal

from data.config import DataConfig
from data.tasks.config import TaskConfig
from experiments.config_paths import changed
from model.config import SIZES, ModelConfig
from train.config import Config, EvaluationConfig, OptimizerConfig, RunConfig, Stage, TaskEvaluation
from train.finetuning.recipe import Recipe

Scale = Literal['smoke', 'cpu', 'overnight', 'paper']
SEEDS: dict[Scale, int] = {'smoke': 2, 'cpu': 3, 'overnight': 3, 'paper': 3}
"""Seeds an arm. An ablation's test needs two; three give its intervals a finite width that one can use."""

FINETUNING: dict[Scale, Recipe] = {
    'smoke': Recipe(learning_rate=1e-3, epochs=1, train_rows=64, max_length=32, seeds=2),
    'cpu': Recipe(learning_rate=1e-3, epochs=3, max_length=64, seeds=2),
    'overnight': Recipe(learning_rate=5e-4, epochs=3, seeds=3),
    # One point of BERT's grid (Devlin et al. 2019, Appendix A.3).
    'paper': Recipe(batch_size=32, learning_rate=3e-5, epochs=3, seeds=3),
}
"""How each replica is fine-tuned on a downstream task: small encoders learn at higher rates."""


def task(scale: Scale, name: str, title: str, folder: str = '', **changes) -> TaskEvaluation:
    """A downstream task as a scale fine-tunes it.

    Args:
      title: what the report calls it: that of a published table, where there is one.
      folder: where its files lie in evaluation.data_dir.
      changes: to the scale's recipe.
    """
    recipe = dataclasses.replace(FINETUNING[scale], **changes)
    return TaskEvaluation(TaskConfig(task=name, data_dir=folder), title, recipe)


def scale(name: str) -> Config:
    """The base config of a scale.

    Raises:
      ValueError: there is no such scale.
    """
    if name not in SCALES:
        raise ValueError(f'scale {name!r}: use {", ".join(SCALES)}')
    return SCALES[name]()


def _smoke() -> Config:
    return Config(
        # The cpu scale's tokens, so that both read one store.
        data=_cpu().data,
        model=ModelConfig(
            layers=1,
            width=32,
            heads=2,
            feed_forward=64,
            norm='pre',
            positions='rotary',
            max_length=64,
            dropout=0.0,
            attention_dropout=0.0,
            init_stddev=32**-0.5,
        ),
        optimizer=OptimizerConfig(learning_rate=2e-3),
        stages=(Stage(length=32, batch_size=8, steps=72), Stage(length=64, batch_size=4, steps=8)),
        evaluation=EvaluationConfig(
            rows=16,
            curve_every=40,
            curve_rows=8,
            batch_size=16,
            likelihood_paragraphs=4,
            probe_paragraphs=60,
            examples=2,
        ),
        run=RunConfig(log_every=10, quick_compile=True),  # it compiles far longer than it trains
    )


def _cpu() -> Config:
    # Few pieces, short rows and rotary positions: with more pieces, longer rows or learned positions a model this small
    # stays longer at the unigram loss before it uses its context. Without dropout, since less than one epoch is seen.
    return Config(
        data=DataConfig(vocab_size=1024),
        model=ModelConfig(
            layers=2,
            width=64,
            heads=2,
            feed_forward=256,
            norm='pre',
            positions='rotary',
            max_length=128,
            dropout=0.0,
            attention_dropout=0.0,
            # BERT's 0.02 suits a width of 768. Here it keeps some seeds at the unigram loss for half of the run.
            init_stddev=64**-0.5,
        ),
        optimizer=OptimizerConfig(learning_rate=3e-3),
        stages=(Stage(length=64, batch_size=16, steps=1350), Stage(length=128, batch_size=8, steps=150)),
    )


def _overnight() -> Config:
    # About ten epochs are seen, so dropout is the paper's.
    return Config(
        data=DataConfig(vocab_size=2048),
        model=ModelConfig(
            layers=4,
            width=128,
            heads=4,
            feed_forward=512,
            norm='pre',
            positions='rotary',
            max_length=128,
            init_stddev=128**-0.5,
        ),
        optimizer=OptimizerConfig(learning_rate=1e-3),
        stages=(Stage(length=64, batch_size=32, steps=14_400), Stage(length=128, batch_size=16, steps=1_600)),
        evaluation=EvaluationConfig(rows=0, curve_every=1_000, curve_rows=256, likelihood_paragraphs=256),
        run=RunConfig(checkpoint_seconds=600.0),
    )


def _paper() -> Config:
    # Devlin et al. 2019, Section 3 and Appendix A.2; epsilon, clipping and the missing bias correction from
    # google-research/bert optimization.py. Warmup is 10,000 of the 1,000,000 steps. Splash drops no attention weights.
    # Unrolled layers compile for longer and then need less memory (docs/performance.md).
    return Config(
        data=DataConfig(corpus='tfds:wikipedia/20230601.en', vocab_size=32_000, heldout_percent=0.5),
        model=ModelConfig(
            **SIZES['base'],
            max_length=512,
            attention='splash',
            attention_dropout=0.0,
            scan_layers=False,
            dtype='bfloat16',
        ),
        optimizer=OptimizerConfig(
            learning_rate=1e-4,
            warmup_share=0.01,
            beta1=0.9,
            beta2=0.999,
            epsilon=1e-6,
            bias_correction=False,
            weight_decay=0.01,
            clip_norm=1.0,
        ),
        stages=(Stage(length=128, batch_size=256, steps=900_000), Stage(length=512, batch_size=256, steps=100_000)),
        # The corpus has no labels for the probe.
        evaluation=EvaluationConfig(
            rows=4096,
            curve_every=20_000,
            curve_rows=512,
            batch_size=256,
            likelihood_paragraphs=512,
            probe_paragraphs=0,
        ),
        run=RunConfig(checkpoint_seconds=600.0, log_every=100),
    )


def one_length(base: Config) -> Config:
    """All of a scale's steps at its last length: some papers have no curriculum."""
    return dataclasses.replace(base, stages=(dataclasses.replace(base.stages[-1], steps=base.steps),))


def of_many_programs(base: Config, scale: str) -> Config:
    """Half of cpu's updates and one fine-tuning a replica, for arms that are a program each and so many that they would
    take longer than the scale has."""
    if scale != 'cpu':
        return base
    halves = {f'stages.{number}.steps': stage.steps // 2 for number, stage in enumerate(base.stages)}
    once = {f'evaluation.tasks.{number}.recipe.seeds': 1 for number in range(len(base.evaluation.tasks))}
    return changed(base, halves | once)


SCALES: dict[Scale, Callable[[], Config]] = {'smoke': _smoke, 'cpu': _cpu, 'overnight': _overnight, 'paper': _paper}
