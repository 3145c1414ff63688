"""What makes ELECTRA learn from so little compute: its loss on all tokens, or that it never meets [MASK]?

Claim: at equal compute telling replaced tokens from others beats BERT. Most of the gain comes from a loss on every
token, a little from reading no [MASK].
Source: Clark et al. 2020, Section 3.4 and Table 5 (base); numbers of the recipe from Table 6 and
google-research/electra.
Command: python -m experiments.ablate configs/electra.py --scale cpu --workdir runs/electra
Cost: 5 arms; at paper scale 120.1 billion tokens a replica of BERT, and at v5e's peak 1,412 chip-hours for all 15
replicas; by the plan (docs/plan.md) a replica of the baseline takes at least 94. Every arm takes the training FLOPs of
ELECTRA, counted by train/flops.py, so their steps differ. At cpu scale with five seeds about 20 minutes on one core
(docs/results).

The arms: ELECTRA; ELECTRA 15%, detection scored on the chosen tokens alone; replace MLM, whose chosen tokens are
samples of the generator where BERT has [MASK]; all-tokens MLM, which predicts every token of such rows, copying by a
gate; BERT. An MLM loss exists for three of them, and is measured under [MASK], which two of those never read: the arms
are compared by the probe and the downstream task.

One length throughout, as in the paper: the scale's last, 512 at paper scale. Below it the generator is a quarter as
wide, as in ELECTRA-small. Not as published: as in bert_base.
"""

from configs import scales
from configs.masking_rate import tasks_of_programs
from configs.published import table
from experiments.ablation import Ablation, Arm
from experiments.config_paths import changed
from train.config import Config, Stage

CURVE_PROBE = {'smoke': 60, 'cpu': 400, 'overnight': 1000, 'paper': 0}
"""Paragraphs of a probe at each point of the learning curve, which is drawn against FLOPs."""


def recipe(scale: str) -> Config:
    """ELECTRA in the form of a scale; at paper scale ELECTRA-base."""
    base = changed(
        scales.one_length(scales.scale(scale)),
        {
            'objective.name': 'electra',
            # Of what is chosen 15% stay in the generator's input: google-research/electra, not the paper.
            'masking.rule': (0.85, 0.0, 0.15),
            'evaluation.tasks': tasks_of_programs(scale),
            'evaluation.curve_probe': CURVE_PROBE[scale],
        },
    )
    if scale != 'paper':
        return base
    return changed(
        base,
        {
            'objective.generator.width': 1 / 3,
            'optimizer.learning_rate': 2e-4,
            'optimizer.warmup_share': 10_000 / 766_000,
            'stages': (Stage(length=512, batch_size=256, steps=766_000),),
        },
    )


def primary(scale: str) -> dict:
    """What arms without an MLM head are compared by: the probe where the corpus has labels for it."""
    return dict(primary='accuracy', primary_task='MNLI') if scale == 'paper' else dict(primary='probe')


BERT = {'objective.name': 'mlm', 'masking.rule': (0.8, 0.1, 0.1)}


def config(scale: str) -> Ablation:
    base = recipe(scale)
    others = {
        'ELECTRA 15%': {'objective.detect': 'chosen'},
        'Replace MLM': {'objective.name': 'replace_mlm'},
        'All-Tokens MLM': {'objective.name': 'all_tokens_mlm'},
        'BERT': BERT,
    }
    return Ablation(
        name='electra',
        claim='At equal compute ELECTRA beats BERT, mostly for its loss on all tokens (Clark et al. 2020, Table 5).',
        base=base,
        arms=(Arm('ELECTRA'), *(Arm(name, changes, at_flops_of={}) for name, changes in others.items())),
        baseline='BERT',
        seeds=scales.SEEDS[scale],
        **primary(scale),
        published=table(
            'Clark et al. 2020, Table 5, base, GLUE dev',
            ('GLUE average',),
            {
                'ELECTRA': (85.0,),
                'All-Tokens MLM': (84.3,),
                'Replace MLM': (82.4,),
                'ELECTRA 15%': (82.4,),
                'BERT': (82.2,),
            },
        ),
    )
