"""BERT-base, the recipe.

Claim: 1,000,000 steps of 256 rows, nine tenths of them at length 128 and the last at 512, give a masked-LM perplexity
of 3.99 on held-out text.
Source: Devlin et al. 2019, Section 3, Appendix A.2, Tables 5 and 6; google-research/bert.
Command: python -m experiments.pretrain configs/bert_base.py --scale cpu --workdir runs/bert_base
Cost: 1 arm, 1 seed; at paper scale 42.6 billion tokens a replica, and at v5e's peak 32 chip-hours; by the plan
(docs/plan.md) a replica of the baseline takes at least 46.

Smaller scales keep the recipe's form (post-LN, learned positions, 80/10/10, Adam without bias correction, clipping at
1.0) and take size, steps, learning rate and warmup from the scale. Not as published: SentencePiece with 32,000 pieces
for WordPiece with 30,522, Wikipedia without books, rows of running text without sentence pairs or next-sentence
prediction, a new mask each epoch for 10 fixed ones, bfloat16 for float32, no dropout of attention weights (Splash, the
TPU's attention kernel, has none).
"""

from configs import scales
from configs.published import table
from experiments.ablation import Ablation, Arm
from experiments.config_paths import changed
from train.config import Config


def recipe(scale: str) -> Config:
    """BERT's form at any scale; at paper scale nothing changes."""
    return changed(
        scales.scale(scale),
        {
            'model.norm': 'post',
            'model.positions': 'learned',
            'optimizer.beta2': 0.999,
            'optimizer.bias_correction': False,
            'optimizer.clip_norm': 1.0,
        },
    )


def config(scale: str) -> Ablation:
    return Ablation(
        name='bert_base',
        claim='BERT-base reaches a held-out masked-LM perplexity of 3.99 (Devlin et al. 2019).',
        base=recipe(scale),
        arms=(Arm('base'),),
        baseline='base',
        seeds=1,
        published=table(
            'Devlin et al. 2019, Table 6, base, held-out perplexity and dev',
            ('perplexity', 'MNLI-m', 'MRPC', 'SST-2'),
            {'base': (3.99, 84.4, 86.7, 92.9)},
        )
        + table(
            'Devlin et al. 2019, Table 5, base without next-sentence prediction, dev',
            ('MNLI-m', 'QNLI', 'MRPC', 'SST-2', 'SQuAD 1.1 F1'),
            {'base': (83.9, 84.9, 86.5, 92.6, 87.9)},
        ),
    )
