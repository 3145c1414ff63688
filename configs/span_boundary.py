"""With spans masked: do pairs of segments help, and does it help to predict a span from its two boundaries?

Claim: one segment is better than two with next-sentence prediction, and the span-boundary objective adds a little on
every task, most where spans of text are what is asked for (coreference, question answering).
Source: Joshi et al. 2020 (SpanBERT), Sections 3.2 and 5.2 and Table 7 (large).
Command: python -m experiments.ablate configs/span_boundary.py --scale cpu --workdir runs/span_boundary
Cost: 3 arms; at paper scale 314.6 billion tokens a replica, and at v5e's peak 7,804 chip-hours for all 9 replicas; by
the plan (docs/plan.md) a replica of the baseline takes at least 863. At cpu scale about 6 minutes on one core.

All arms mask 15% in spans of 1 to 10 words. Targets and masks of the last two are the same; the boundary loss is of
those targets, too, so it adds a head and no text (train/objectives/mlm_with_boundary.py says what a span is and where
its boundaries are). Pairs of segments get as many rows as the others, which they fill to 84% (of the embedded corpus at
128: configs/input_format.py). One length throughout, as in the paper: the scale's last, 512 at paper scale.

Losses are measured with single tokens masked and by the MLM head alone: read the probe and the tasks. Not as published:
as in bert_base; a row runs on into the next document; of the tasks those of GLUE alone are run.
"""

from configs import scales
from configs.electra import primary
from configs.input_format import recipe as one_length
from configs.published import table
from experiments.ablation import Ablation, Arm
from experiments.config_paths import changed
from model.config import SIZES
from train.config import Config, Stage


def recipe(scale: str) -> Config:
    """Spans in rows of one length; at paper scale SpanBERT's size and steps."""
    base = changed(one_length(scale), {'masking.unit': 'span'})
    if scale != 'paper':
        return base
    return changed(
        base,
        {
            **{f'model.{name}': value for name, value in SIZES['large'].items()},
            'optimizer.warmup_share': 10_000 / 2_400_000,
            'optimizer.epsilon': 1e-8,
            'optimizer.weight_decay': 0.1,
            'stages': (Stage(length=512, batch_size=256, steps=2_400_000),),
        },
    )


def config(scale: str) -> Ablation:
    return Ablation(
        name='span_boundary',
        claim='One segment beats two with NSP; the span-boundary objective adds to it (Joshi et al. 2020, Table 7).',
        base=recipe(scale),
        arms=(
            Arm('two segments + NSP', {'objective.name': 'mlm_nsp', 'objective.rows': 'segment_pairs'}),
            Arm('one segment'),
            Arm('one segment + SBO', {'objective.name': 'mlm_sbo'}),
        ),
        baseline='one segment',
        seeds=scales.SEEDS[scale],
        **primary(scale),
        published=table(
            'Joshi et al. 2020, Table 7, large, dev',
            ('SQuAD 2.0', 'NewsQA', 'TriviaQA', 'coreference', 'MNLI', 'QNLI', 'GLUE average'),
            {
                'two segments + NSP': (85.4, 73.0, 78.8, 76.4, 87.0, 93.3, 83.4),
                'one segment': (86.7, 73.4, 80.0, 76.3, 87.3, 93.8, 83.8),
                'one segment + SBO': (86.8, 74.1, 80.3, 79.0, 87.6, 93.9, 84.0),
            },
        ),
    )
