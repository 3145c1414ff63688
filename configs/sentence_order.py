"""What to ask of two segments: nothing, whether they belong together (NSP), or which comes first (SOP).

Claim: sentence order helps downstream tasks, next-sentence prediction hardly; a model of NSP can tell no order, while
one of order tells other documents' sentences well above chance.
Source: Lan et al. 2020 (ALBERT), Section 4.6 and Table 5 (base).
Command: python -m experiments.ablate configs/sentence_order.py --scale cpu --workdir runs/sentence_order
Cost: 3 arms; at paper scale 131.1 billion tokens a replica, and at v5e's peak 925 chip-hours for all 9 replicas; by the
plan (docs/plan.md) a replica of the baseline takes at least 103. At cpu scale about 5 minutes on one core.

All arms read the same pairs of segments; they differ in what is done to the second and asked about it. The asymmetry
is in the table of other measures: each model that judges pairs is scored on held-out pairs of both kinds. The arm
without a question has no head to score. One length throughout: the scale's last, 512 at paper scale, as in the paper.
Below it many sentences of the embedded corpus are longer than half a row and are cut; held-out pairs are scored on rows
without such parts.
Not as published: as in bert_base; BERT's encoder for ALBERT's with shared layers, its optimizer and batch for LAMB and
4,096.
"""

from configs import scales
from configs.electra import primary
from configs.input_format import recipe
from configs.published import table
from experiments.ablation import Ablation, Arm
from experiments.config_paths import changed


def config(scale: str) -> Ablation:
    return Ablation(
        name='sentence_order',
        claim='Sentence order helps more than NSP, and tells more (Lan et al. 2020, Table 5).',
        base=changed(recipe(scale), {'objective.rows': 'segment_pairs'}),
        arms=(
            Arm('none'),
            Arm('NSP', {'objective.name': 'mlm_nsp'}),
            Arm('SOP', {'objective.name': 'mlm_sop'}),
        ),
        baseline='NSP',
        seeds=scales.SEEDS[scale],
        **primary(scale),
        published=table(
            'Lan et al. 2020, Table 5, base, dev; accuracies of MLM, NSP and SOP on held-out text',
            ('MLM', 'NSP', 'SOP', 'SQuAD 1.1 F1', 'SQuAD 2.0 F1', 'MNLI', 'SST-2', 'RACE', 'average'),
            {
                'none': (54.9, 52.4, 53.3, 88.6, 78.1, 81.5, 89.9, 61.7, 79.0),
                'NSP': (54.5, 90.5, 52.0, 88.4, 77.2, 81.6, 91.1, 62.3, 79.2),
                'SOP': (54.0, 78.9, 86.5, 89.3, 80.0, 82.0, 90.3, 64.0, 80.1),
            },
        ),
    )
