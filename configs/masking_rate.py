"""How much to mask: 15, 30 or 40%.

Claim: a large model trained at 40% masking is as good as one trained at 15%, or better. By the same paper the best rate
of smaller models is lower: 20% at base size and 15% at medium, so 15% ahead of 40% in a small run agrees with it.
Source: Wettig et al. 2023, "Should You Mask 15% in Masked Language Modeling?", Tables 1, 2 and 7, Figure 2, and the
README of princeton-nlp/DinkyTrain. Figures of Table 2 are second-hand, from notes on the paper.
Command: python -m experiments.ablate configs/masking_rate.py --scale cpu --workdir runs/masking_rate
Cost: 3 arms; at paper scale 16.9 billion tokens a replica, and at v5e's peak 407 chip-hours for all 9 replicas; by the
plan (docs/plan.md) a replica of the baseline takes at least 56. At cpu scale about 5 minutes on 2 cores (README).

Each replica is fine-tuned too: to tell which century's message a paragraph comes from, of messages held out of
pretraining; at paper scale on GLUE, where --evaluation.data_dir names a folder with its files.

At paper scale this is the efficient recipe (after Izsak et al. 2021): large, pre-LN, all [MASK], 23,000 steps at length
128, then the further 2,300 at 512 with a schedule of their own. Not as published: SentencePiece with 32,000 pieces for
GPT-2's 50,000, Wikipedia without books, bfloat16 for float16, no dropout of attention weights (Splash, the TPU's
attention kernel, has none). The batch of the further steps is not given; it is kept.
"""

from configs import scales
from configs.published import table
from experiments.ablation import Ablation, Arm
from experiments.config_paths import changed
from model.config import SIZES
from train.config import Config, Stage, TaskEvaluation

GLUE = {'mnli': 'MNLI', 'qnli': 'QNLI', 'qqp': 'QQP', 'sst2': 'SST-2'}
"""Task -> its column in the paper's table, and its folder in GLUE's own files."""


def recipe(scale: str) -> Config:
    """All [MASK] and pre-LN; at paper scale run_efficient_mlm_recipe.sh of DinkyTrain."""
    base = changed(scales.scale(scale), {'masking.rule': (1.0, 0.0, 0.0), 'model.norm': 'pre'})
    if scale != 'paper':
        return base
    large = {f'model.{name}': value for name, value in SIZES['large'].items()}
    return changed(
        base,
        {
            **large,
            'optimizer.learning_rate': 2e-3,
            'optimizer.warmup_share': 0.06,
            'optimizer.beta2': 0.98,
            'optimizer.bias_correction': True,
            'optimizer.clip_norm': 0.0,
            'stages': (
                Stage(length=128, batch_size=4096, steps=23_000),
                # Peak 5e-4, a quarter of the first.
                Stage(length=512, batch_size=4096, steps=2_300, restart=True, peak_scale=0.25, warmup_share=0.1),
            ),
            'evaluation.curve_every': 1_000,
        },
    )


def glue_recipe(scale: str) -> Config:
    """The recipe without its further steps at 512, for tables that hold GLUE alone."""
    base = recipe(scale)
    return changed(base, {'stages': base.stages[:1]}) if scale == 'paper' else base


def tasks(scale: str) -> tuple[TaskEvaluation, ...]:
    """A task from the embedded corpus, or at paper scale those of the paper's table."""
    if scale == 'paper':
        return tuple(scales.task(scale, name, title, title) for name, title in GLUE.items())
    return (scales.task(scale, 'corpus:century', 'century'),)


def tasks_of_programs(scale: str) -> tuple[TaskEvaluation, ...]:
    """The same for arms that are a program each. At smoke scale none: with them a run would take more than a minute."""
    return () if scale == 'smoke' else tasks(scale)


def config(scale: str) -> Ablation:
    return Ablation(
        name='masking_rate',
        claim='A large model trained at 40% masking is as good as one trained at 15%, or better (Wettig et al. 2023).',
        base=changed(recipe(scale), {'evaluation.tasks': tasks(scale)}),
        arms=(
            Arm('15%', {'masking.corruption_rate': 0.15}),
            Arm('30%', {'masking.corruption_rate': 0.30}),
            Arm('40%', {'masking.corruption_rate': 0.40}),
        ),
        baseline='15%',
        seeds=scales.SEEDS[scale],
        published=table(
            'Wettig et al. 2023, DinkyTrain README, large, dev',
            ('MNLI', 'QNLI', 'QQP', 'SST-2'),
            {
                '15%': (84.2, 90.9, 87.8, 93.3),
                '30%': (84.2, 91.6, 88.0, 93.0),
                '40%': (84.5, 91.6, 88.1, 92.8),
            },
        )
        + table(
            'Wettig et al. 2023, Table 2, large, GLUE test (second-hand)',
            ('MNLI-m', 'MNLI-mm', 'QNLI', 'QQP F1', 'RTE', 'SST-2', 'MRPC F1', 'CoLA', 'STS-B'),
            {
                '15%': (84.2, 83.4, 90.9, 70.8, 73.5, 92.8, 88.8, 51.8, 87.3),
                '40%': (84.7, 84.0, 91.3, 70.9, 75.5, 92.6, 89.8, 50.7, 87.6),
            },
        )
        + table(
            'Wettig et al. 2023, Table 2, large, dev (second-hand)',
            ('SQuAD 1.1 F1',),
            {'15%': (88.0,), '40%': (89.8,)},
        ),
    )
