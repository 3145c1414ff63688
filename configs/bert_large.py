"""BERT-large, the recipe.

Claim: under the recipe of BERT-base, 24 layers of width 1,024 bring the masked-LM perplexity on held-out text from 3.99
to 3.23.
Source: Devlin et al. 2019, Section 3, Appendix A.2, Table 6; google-research/bert.
Command: python -m experiments.pretrain configs/bert_large.py --scale cpu --workdir runs/bert_large
Cost: 1 arm, 1 seed; at paper scale 42.6 billion tokens a replica, and at v5e's peak 112 chip-hours; by the plan
(docs/plan.md) a replica of the baseline takes at least 182.

Smaller scales have twice the layers of bert_base, and its width. Not as published: as in bert_base.
"""

from configs.bert_base import recipe
from configs.published import table
from experiments.ablation import Ablation, Arm
from experiments.config_paths import changed
from model.config import SIZES


def config(scale: str) -> Ablation:
    base = recipe(scale)
    size = SIZES['large'] if scale == 'paper' else {'layers': 2 * base.model.layers}
    return Ablation(
        name='bert_large',
        claim='BERT-large reaches a held-out masked-LM perplexity of 3.23, base 3.99 (Devlin et al. 2019).',
        base=changed(base, {f'model.{name}': value for name, value in size.items()}),
        arms=(Arm('large'),),
        baseline='large',
        seeds=1,
        published=table(
            'Devlin et al. 2019, Table 6, large, held-out perplexity and dev',
            ('perplexity', 'MNLI-m', 'MRPC', 'SST-2'),
            {'large': (3.23, 86.6, 87.8, 93.7)},
        ),
    )
