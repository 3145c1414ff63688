"""ALBERT's two ways to fewer parameters: narrow embeddings, and layers that share their weights.

Claim: embeddings a sixth as wide cost little. Shared attention costs little, too; what sharing all costs is mostly the
feed-forward's.
Source: Lan et al. 2020 (ALBERT), Sections 4.4 and 4.5, Tables 3 and 4 (base).
Command: python -m experiments.ablate configs/sharing.py --scale cpu --workdir runs/sharing
Cost: 8 arms; at paper scale 262.1 billion tokens a replica, and at v5e's peak 4,848 chip-hours for all 24 replicas; by
the plan (docs/plan.md) a replica of the baseline takes at least 206. Each arm is a program of its own; narrow ones take
a little less compute, shared ones none less. Smoke runs four of the arms. At cpu scale, with half the updates of other
configs and one fine-tuning a replica, about 8 minutes on 2 cores.

Full embeddings are as wide as the model, narrow ones a sixth of that at paper scale (128 of 768), a quarter below it:
the tables of tokens, positions and types, and the output layer tied to the first. A part of a layer that is shared is
one set of weights for all layers, with its LayerNorm. Table 3 has two widths more, 64 and 256.

At paper scale the recipe is ALBERT's: MLM with sentence order, pairs of segments at 512, LAMB, batches of 4,096. Below
it plain MLM on plain rows, all of the scale's last length, and two layers at least. Not as published: as in bert_base;
ALBERT masks n-grams and cuts a tenth of its rows short.
"""

from configs import input_format, scales
from configs.electra import primary
from configs.published import table
from experiments.ablation import Ablation, Arm
from experiments.config_paths import changed
from train.config import Config, Stage

SHARED = {'nothing': 'none', 'attention': 'attention', 'feed-forward': 'feed_forward', 'all': 'all'}
TABLE_4 = {
    ('full', 'nothing'): (108, 82.3),
    ('full', 'attention'): (83, 81.6),
    ('full', 'feed-forward'): (57, 79.5),
    ('full', 'all'): (31, 79.8),
    ('narrow', 'nothing'): (89, 81.6),
    ('narrow', 'attention'): (64, 81.7),
    ('narrow', 'feed-forward'): (38, 80.2),
    ('narrow', 'all'): (12, 80.1),
}
"""Millions of parameters and the average of five tasks."""
SMOKE = (('full', 'nothing'), ('narrow', 'attention'), ('narrow', 'feed-forward'), ('narrow', 'all'))
"""Each width and each way to share once: with a program for every arm eight would take minutes."""


def recipe(scale: str) -> Config:
    """BERT's layers, at paper scale trained as ALBERT."""
    base = scales.of_many_programs(input_format.recipe(scale), scale)
    if scale != 'paper':
        return changed(base, {'model.layers': max(base.model.layers, 2)})
    return changed(
        base,
        {
            'objective.name': 'mlm_sop',
            'objective.rows': 'segment_pairs',
            'optimizer.name': 'lamb',
            'optimizer.learning_rate': 1.76e-3,
            'optimizer.warmup_share': 3_125 / 125_000,
            'stages': (Stage(length=512, batch_size=4096, steps=125_000),),
        },
    )


def config(scale: str) -> Ablation:
    base = recipe(scale)
    widths = {'full': 0, 'narrow': 128 if scale == 'paper' else base.model.width // 4}
    arms = {f'{width}, {part} shared': (width, part) for width, part in (SMOKE if scale == 'smoke' else TABLE_4)}
    return Ablation(
        name='sharing',
        claim='Narrow embeddings cost little; in shared layers the feed-forward is what costs (Lan et al. 2020).',
        base=base,
        arms=tuple(
            Arm(name, {'model.embedding_width': widths[width], 'model.layers_share': SHARED[part]})
            for name, (width, part) in arms.items()
        ),
        baseline='full, nothing shared',
        seeds=scales.SEEDS[scale],
        **primary(scale),
        published=table(
            'Lan et al. 2020, Table 4, base, dev',
            ('parameters, millions', 'average'),
            {name: TABLE_4[arm] for name, arm in arms.items()},
        ),
    )
