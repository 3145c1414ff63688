"""What becomes of a chosen token at 40% masking: [MASK] alone, or a share of it kept or random.

Claim: at 40%, all [MASK] does as well as any other rule, or better.
Source: Wettig et al. 2023, Table 4 (large); its figures are second-hand, from notes on the paper.
Command: python -m experiments.ablate configs/corruption_rule_40.py --scale cpu --workdir runs/corruption_rule_40
Cost: 4 arms; at paper scale 12.1 billion tokens a replica, and at v5e's peak 389 chip-hours for all 12 replicas; by the
plan (docs/plan.md) a replica of the baseline takes at least 32. At cpu scale about 5 minutes on 2 cores.

Losses are measured under [MASK] alone, which favours the baseline: read them with the probe. At paper scale this is
masking_rate's recipe without the further steps at 512, as the table has GLUE alone. Not as published: as in
masking_rate.
"""

from configs import scales
from configs.corruption_rule import MIXED, rule_arm
from configs.masking_rate import glue_recipe
from configs.published import table
from experiments.ablation import Ablation


def config(scale: str) -> Ablation:
    base = glue_recipe(scale)
    return Ablation(
        name='corruption_rule_40',
        claim='At 40%, all [MASK] does as well as any other rule, or better (Wettig et al. 2023, Table 4).',
        base=base,
        arms=(
            rule_arm('all mask', 0.40, (1.0, 0.0, 0.0)),
            # 5% of the tokens are scored as they are, beside the 40%; then 5% of the tokens become random, of the 40%.
            rule_arm('all mask, and 5% keep', 0.45, (40 / 45, 0.0, 5 / 45)),
            rule_arm('35% mask 5% random', 0.40, (35 / 40, 5 / 40, 0.0)),
            rule_arm('80 mask 10 random 10 keep', 0.40, MIXED),
        ),
        baseline='all mask',
        seeds=scales.SEEDS[scale],
        primary='probe' if base.evaluation.probe_paragraphs else 'loss',
        published=table(
            'Wettig et al. 2023, Table 4, large, dev (second-hand)',
            ('MNLI', 'QNLI', 'QQP', 'STS-B', 'SST-2'),
            {
                'all mask': (84.5, 91.6, 88.1, 88.2, 92.8),
                'all mask, and 5% keep': (84.2, 91.0, 87.8, 88.0, 93.3),
                '35% mask 5% random': (84.5, 91.3, 87.9, 87.7, 92.6),
                '80 mask 10 random 10 keep': (84.3, 91.2, 87.9, 87.8, 93.0),
            },
        ),
    )
