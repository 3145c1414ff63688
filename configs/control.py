"""What chance looks like: arms that differ in nothing but the noise that draws their masks.

Claim: identical arms differ by chance alone, so their p values are spread evenly over 0 to 1.
Source: none; a control of the other ablations, at their size and with their seeds.
Command: python -m experiments.ablate configs/control.py --scale cpu --workdir runs/control
Cost: 8 arms; at paper scale 42.6 billion tokens a replica, and at v5e's peak 768 chip-hours for all 24 replicas; by the
plan (docs/plan.md) a replica of the baseline takes at least 46. At cpu scale about 7 minutes on 2 cores.

Every pair is compared, 28 in all. They share arms, so they are not 28 independent draws.
"""

from configs import scales
from experiments.ablation import Ablation, Arm

ARMS = 8


def config(scale: str) -> Ablation:
    return Ablation(
        name='control',
        claim='Identical arms differ by chance alone.',
        base=scales.scale(scale),
        arms=tuple(Arm(f'noise {noise}', {'masking.noise': noise}) for noise in range(ARMS)),
        baseline='noise 0',
        seeds=scales.SEEDS[scale],
        all_pairs=True,
    )
