"""Does the best masking rate depend on the objective?

Claim: none of one paper. Masked language modelling at 40% is as good as at 15% or better, for large models (Wettig et
al. 2023); ELECTRA uses 15%, and 25% at large size (Clark et al. 2020, Table 6).
Source: Wettig et al. 2023, Figure 1; Clark et al. 2020, Table 6. We know of no table that crosses the two.
Command: python -m experiments.ablate configs/electra_masking.py --scale cpu --workdir runs/electra_masking
Cost: 6 arms; at paper scale 100.4 billion tokens a replica, and at v5e's peak 1,695 chip-hours for all 18 replicas; by
the plan (docs/plan.md) a replica of the baseline takes at least 101. Every arm takes the training FLOPs of ELECTRA at
15%. At cpu scale, with half the updates of other configs and one fine-tuning a replica, about 6 minutes on 2 cores.

At one rate both objectives choose the same tokens. Not as published: as in electra.
"""

from configs import scales
from configs.electra import BERT, primary, recipe
from experiments.ablation import Ablation, Arm

RATES = (0.15, 0.25, 0.40)


def config(scale: str) -> Ablation:
    base, at_15 = scales.of_many_programs(recipe(scale), scale), {'masking.corruption_rate': RATES[0]}
    return Ablation(
        name='electra_masking',
        claim='The best masking rate depends on the objective.',
        base=base,
        arms=tuple(
            Arm(f'{name}, {rate:.0%}', {**changes, 'masking.corruption_rate': rate}, at_flops_of=at_15)
            for name, changes in {'ELECTRA': {}, 'MLM': BERT}.items()
            for rate in RATES
        ),
        baseline='ELECTRA, 15%',
        seeds=scales.SEEDS[scale],
        **primary(scale),
    )
