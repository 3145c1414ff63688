"""How large should ELECTRA's generator be?

Claim: a generator between a quarter and a half of the discriminator's size is best; one as large makes the task too
hard, and costs more.
Source: Clark et al. 2020, Section 3.2 and Figure 3 (a plot: no numbers are taken from it).
Command: python -m experiments.ablate configs/electra_generator.py --scale cpu --workdir runs/electra_generator
Cost: 4 arms; at paper scale 65.5 billion tokens a replica, and at v5e's peak 863 chip-hours for all 12 replicas; by the
plan (docs/plan.md) a replica of the baseline takes at least 59. Arms have equal steps, as in the paper, so a wider
generator takes more FLOPs: the report plots quality against them. At cpu scale about 10 minutes on one core.

Only widths differ, the generator has as many layers as the discriminator. Not as published: as in electra.
"""

from configs import scales
from configs.electra import primary, recipe
from experiments.ablation import Ablation, Arm
from experiments.config_paths import changed
from train.config import Stage


def config(scale: str) -> Ablation:
    base = recipe(scale)
    if scale == 'paper':
        base = changed(base, {'stages': (Stage(length=512, batch_size=256, steps=500_000),)})
    return Ablation(
        name='electra_generator',
        claim='A generator of a quarter to a half of the size is best (Clark et al. 2020, Figure 3).',
        base=base,
        arms=tuple(
            Arm(name, {'objective.generator.width': width})
            for name, width in {'1/8': 0.125, '1/4': 0.25, '1/2': 0.5, 'as wide': 1.0}.items()
        ),
        baseline='1/4',
        seeds=scales.SEEDS[scale],
        **primary(scale),
    )
