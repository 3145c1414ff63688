"""What becomes of a chosen token: [MASK], a random token, or itself.

Claim: at 15% fine-tuning is robust to the rule, but a model that saw only [MASK] is worse as frozen features. At 40%
all [MASK] does as well as any other rule, or better.
Source: Devlin et al. 2019, Table 8 (base, 15%); Wettig et al. 2023, Table 4 (large, 40%).
Command: python -m experiments.ablate configs/corruption_rule.py --scale cpu --workdir runs/corruption_rule
Cost: 10 arms; at paper scale 42.6 billion tokens a replica.

What counts is the probe of frozen features, where the corpus has labels for it. Losses are measured under [MASK] alone,
which the two arms without it never saw: theirs say nothing about what these arms learned. All arms are compared with
BERT's rule at 15%; a difference of an arm at 40% holds the rate's effect too, so read those four beside one another.
Not as published: Wettig's four rules run on the scale's model and recipe (BERT-base's at paper scale), so that both
tables share one; else as in bert_base.
"""

from configs import scales
from configs.published import table
from experiments.ablation import Ablation, Arm

MIXED = (0.8, 0.1, 0.1)


def _arm(name: str, rate: float, rule: tuple[float, float, float]) -> Arm:
    """`rule` is what becomes of the chosen: shares that turn into [MASK], into a random token, and stay."""
    return Arm(name, {'masking.corruption_rate': rate, 'masking.rule': rule})


def config(scale: str) -> Ablation:
    base = scales.scale(scale)
    return Ablation(
        name='corruption_rule',
        claim='Fine-tuning is robust to the corruption rule, frozen features less so (Devlin et al. 2019, Table 8).',
        base=base,
        arms=(
            _arm('15%: 80 mask 10 random 10 keep', 0.15, MIXED),
            _arm('15%: all mask', 0.15, (1.0, 0.0, 0.0)),
            _arm('15%: 80 mask 20 random', 0.15, (0.8, 0.2, 0.0)),
            _arm('15%: 80 mask 20 keep', 0.15, (0.8, 0.0, 0.2)),
            _arm('15%: 80 random 20 keep', 0.15, (0.0, 0.8, 0.2)),
            _arm('15%: all random', 0.15, (0.0, 1.0, 0.0)),
            _arm('40%: all mask', 0.40, (1.0, 0.0, 0.0)),
            # 5% of the tokens are scored as they are, beside the 40%; then 5% of the tokens become random, of the 40%.
            _arm('40%: all mask, and 5% keep', 0.45, (40 / 45, 0.0, 5 / 45)),
            _arm('40%: 35% mask 5% random', 0.40, (35 / 40, 5 / 40, 0.0)),
            _arm('40%: 80 mask 10 random 10 keep', 0.40, MIXED),
        ),
        baseline='15%: 80 mask 10 random 10 keep',
        seeds=scales.SEEDS[scale],
        primary='probe' if base.evaluation.probe_paragraphs else 'loss',
        published=table(
            'Devlin et al. 2019, Table 8, base, dev',
            ('MNLI', 'NER fine-tuned', 'NER frozen features'),
            {
                '15%: 80 mask 10 random 10 keep': (84.2, 95.4, 94.9),
                '15%: all mask': (84.3, 94.9, 94.0),
                '15%: 80 mask 20 random': (84.1, 95.2, 94.6),
                '15%: 80 mask 20 keep': (84.4, 95.2, 94.7),
                '15%: 80 random 20 keep': (83.7, 94.8, 94.6),
                '15%: all random': (83.6, 94.9, 94.6),
            },
        )
        + table(
            'Wettig et al. 2023, Table 4, large, dev',
            ('MNLI', 'QNLI', 'QQP', 'STS-B', 'SST-2'),
            {
                '40%: all mask': (84.5, 91.6, 88.1, 88.2, 92.8),
                '40%: all mask, and 5% keep': (84.2, 91.0, 87.8, 88.0, 93.3),
                '40%: 35% mask 5% random': (84.5, 91.3, 87.9, 87.7, 92.6),
                '40%: 80 mask 10 random 10 keep': (84.3, 91.2, 87.9, 87.8, 93.0),
            },
        ),
    )
