"""The same masks again and again, or new ones.

Claim: ten masks a row, used in turn for 40 epochs, do about as well as a new mask each epoch.
Source: Liu et al. 2019 (RoBERTa), Section 4.1 and Table 1.
Command: python -m experiments.ablate configs/static_masking.py --scale cpu --workdir runs/static_masking
Cost: 2 arms; at paper scale 131.1 billion tokens a replica, and at v5e's peak 617 chip-hours for all 6 replicas; by the
plan (docs/plan.md) a replica of the baseline takes at least 103. At cpu scale about 2 minutes on 2 cores.

With no more epochs than masks the arms would be the same, so the training text is cut until each mask is used 4 times,
as in the paper: 40 epochs. One length throughout (Section 3.1): 512 at paper scale; in smaller runs the scale's first,
where so small a model learns more. Not as published: as in bert_base, but for the masks.
"""

import dataclasses

from configs import scales
from configs.published import table
from experiments.ablation import Ablation, Arm
from experiments.config_paths import changed
from train.config import Config

DUPLICATES = 10
EPOCHS = 40


def recipe(scale: str) -> Config:
    """All the scale's steps at one length, over as many rows as fit EPOCHS times."""
    base = scales.scale(scale)
    stage = dataclasses.replace(base.stages[-1 if scale == 'paper' else 0], steps=base.steps)
    rows = stage.batch_size * stage.steps // EPOCHS
    return changed(base, {'stages': (stage,), 'data.max_train_tokens': rows * (stage.length - 2)})


def config(scale: str) -> Ablation:
    return Ablation(
        name='static_masking',
        claim='A new mask each epoch does as well as ten masks used in turn, or slightly better (Liu et al. 2019).',
        base=recipe(scale),
        arms=(Arm('static', {'masking.duplicates': DUPLICATES}), Arm('dynamic')),
        baseline='static',
        seeds=scales.SEEDS[scale],
        published=table(
            'Liu et al. 2019, Table 1, base, median of 5 seeds',
            ('SQuAD 2.0 F1', 'MNLI-m', 'SST-2'),
            {'static': (78.3, 84.3, 92.5), 'dynamic': (78.7, 84.0, 92.9)},
        ),
    )
