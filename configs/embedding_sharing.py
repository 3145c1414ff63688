"""How should a generator and a discriminator share their token embeddings?

Claim: shared embeddings are pulled two ways, and separate ones lose what the generator learns. Best is a discriminator
that reads the generator's table without changing it, and learns a difference to it (GDES).
Source: He et al. 2023 (DeBERTa-v3), Section 3.2 and its ablation of base models; its figures are second-hand, from
notes on the paper.
Command: python -m experiments.ablate configs/embedding_sharing.py --scale cpu --workdir runs/embedding_sharing
Cost: 3 arms; at paper scale 131.1 billion tokens a replica, and at v5e's peak 1,402 chip-hours for all 9 replicas; by
the plan (docs/plan.md) a replica of the baseline takes at least 156. At cpu scale about 8 minutes on one core.

The generator is as wide as the discriminator and half as deep. Only the token table is shared; positions, types and
norms are each one's own. Not as published: a BERT without DeBERTa's disentangled attention (the second table is of
ELECTRA's own form, too); the learning rate of the ablation is not given, ELECTRA's is kept; else as in electra.
"""

from configs import scales
from configs.electra import primary, recipe
from configs.published import table
from experiments.ablation import Ablation, Arm
from experiments.config_paths import changed
from train.config import Stage


def config(scale: str) -> Ablation:
    base = changed(recipe(scale), {'objective.generator.width': 1.0, 'objective.generator.layers': 0.5})
    if scale == 'paper':
        stages = (Stage(length=512, batch_size=2048, steps=125_000),)
        base = changed(base, {'stages': stages, 'optimizer.warmup_share': 10_000 / 125_000})
    return Ablation(
        name='embedding_sharing',
        claim='Embeddings shared without their gradients are best (He et al. 2023, DeBERTa-v3).',
        base=base,
        arms=(
            Arm('shared', {'objective.generator.share': 'token'}),
            Arm('separate', {'objective.generator.share': 'none'}),
            Arm('disentangled', {'objective.generator.share': 'disentangled'}),
        ),
        baseline='shared',
        seeds=scales.SEEDS[scale],
        **primary(scale),
        published=table(
            'He et al. 2023, DeBERTa-v3, base, dev (second-hand)',
            ('MNLI-m', 'MNLI-mm', 'SQuAD 2.0 F1', 'SQuAD 2.0 EM'),
            {
                'shared': (88.8, 88.4, 86.3, 83.5),
                'separate': (88.3, 87.9, 85.3, 82.7),
                'disentangled': (89.3, 89.0, 87.2, 84.5),
            },
        )
        + table(
            'He et al. 2023, ELECTRA-base trained again, dev (second-hand)',
            ('MNLI-m', 'MNLI-mm'),
            {'shared': (87.9, 87.4), 'disentangled': (88.3, 87.8)},
        ),
    )
