"""Short rows first: 128 then 512, against 512 throughout.

Claim: nine tenths of the steps on short rows and the last tenth on long ones save compute without loss, since attention
costs more per token on long rows.
Source: Devlin et al. 2019, Appendix A.2, which reports no comparison; Liu et al. 2019, Section 3.1, who do without.
Command: python -m experiments.ablate configs/curriculum.py --scale cpu --workdir runs/curriculum
Cost: 3 arms; at paper scale 42.6 billion tokens a replica, fewer where FLOPs are equal, and at v5e's peak 292
chip-hours for all 9 replicas; by the plan (docs/plan.md) a replica of the baseline takes at least 46. At cpu scale
about 5 minutes on 2 cores.

The long arms take the curriculum's last length and batch, and as many steps as give its tokens, or its FLOPs. The arms
differ in structure, so they train one after another. At small scales the lengths are the scale's. Not as published: as
in bert_base.
"""

import dataclasses

from configs import scales
from experiments.ablation import Ablation, Arm
from train.position import tokens_after


def config(scale: str) -> Ablation:
    base = scales.scale(scale)
    long = base.stages[-1]
    token_steps = round(tokens_after(base, 0) / (long.batch_size * long.length))
    return Ablation(
        name='curriculum',
        claim='Nine tenths of the steps on short rows save compute without loss (Devlin et al. 2019, Appendix A.2).',
        base=base,
        arms=(
            Arm('short, then long'),
            Arm('long, equal tokens', {'stages': (dataclasses.replace(long, steps=token_steps),)}),
            Arm('long, equal FLOPs', {'stages': (long,)}, at_flops_of={}),
        ),
        baseline='short, then long',
        seeds=scales.SEEDS[scale],
    )
