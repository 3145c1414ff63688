"""A masking rate that falls, or rises, over the run.

Claim: a rate that falls linearly from 30% to 15% beats both constant rates and the same schedule reversed.
Source: Ankner et al. 2023, "Dynamic Masking Rate Schedules for MLM Pretraining"; its figures are
second-hand, from notes on the paper.
Command: python -m experiments.ablate configs/masking_schedule.py --scale cpu --workdir runs/masking_schedule
Cost: 4 arms; at paper scale 36.7 billion tokens a replica, and at v5e's peak 335 chip-hours for all 12 replicas; by the
plan (docs/plan.md) a replica of the baseline takes at least 27. At cpu scale about 5 minutes on 2 cores.

The loss at 15% favours the arms that end at 15%, which were last trained on just that: read it with the likelihood and
the probe. At paper scale: base, length 128 throughout, 70,000 steps of 4,096 rows. Not as published: Wikipedia for C4,
SentencePiece with 32,000 pieces, a learning rate that falls to 0 rather than to 1e-5, no dropout of attention weights
(Splash, the TPU's attention kernel, has none).
"""

from configs import scales
from configs.published import table
from experiments.ablation import Ablation, Arm
from experiments.config_paths import changed
from train.config import Config, Stage


def recipe(scale: str) -> Config:
    """At paper scale the paper's steps and optimizer."""
    base = scales.scale(scale)
    if scale != 'paper':
        return base
    return changed(
        base,
        {
            'optimizer.learning_rate': 5e-4,
            'optimizer.warmup_share': 0.06,
            'optimizer.beta2': 0.98,
            'optimizer.bias_correction': True,
            'optimizer.weight_decay': 1e-5,
            'optimizer.clip_norm': 0.0,
            'stages': (Stage(length=128, batch_size=4096, steps=70_000),),
            'evaluation.curve_every': 2_000,
        },
    )


def _linear(start: float, end: float) -> dict:
    return {'masking.corruption_rate': start, 'masking.rate_points': ((1.0, end),)}


def config(scale: str) -> Ablation:
    return Ablation(
        name='masking_schedule',
        claim='A rate that falls from 30% to 15% beats both constant rates and the reverse (Ankner et al. 2023).',
        base=recipe(scale),
        arms=(
            Arm('constant 15%', {'masking.corruption_rate': 0.15}),
            Arm('constant 30%', {'masking.corruption_rate': 0.30}),
            Arm('linear 30% to 15%', _linear(0.30, 0.15)),
            Arm('linear 15% to 30%', _linear(0.15, 0.30)),
        ),
        baseline='constant 15%',
        seeds=scales.SEEDS[scale],
        published=table(
            'Ankner et al. 2023, base, 3 seeds, 5 fine-tunings each (second-hand)',
            ('GLUE',),
            {
                'constant 15%': (83.83,),
                'constant 30%': (84.12,),
                'linear 30% to 15%': (84.29,),
                'linear 15% to 30%': (83.71,),
            },
        )
        + table(
            'Ankner et al. 2023, base, 3 seeds (second-hand)',
            ('BLiMP', 'loss at 15%'),
            {
                'constant 15%': (82.44, 1.59),
                'constant 30%': (82.13, 1.56),
                'linear 30% to 15%': (82.70, 1.56),
            },
        ),
    )
