"""What is masked together, at each masking rate: tokens, whole words, spans of words, or collocations.

Claim: at 15% larger units are better than single tokens; at 40% single tokens are as good, or better.
Source: Wettig et al. 2023, Section 4 and Figures 4 and 5 (no table is printed); Joshi et al. 2020, Table 6 (large, 15%,
segment pairs with NSP), whose subword, whole-word and geometric-span rows stand beside the arms at 15%.
Command: python -m experiments.ablate configs/masking_strategy.py --scale cpu --workdir runs/masking_strategy
Cost: 8 arms; at paper scale 12.1 billion tokens a replica, and at v5e's peak 763 chip-hours for all 24 replicas; by the
plan (docs/plan.md) a replica of the baseline takes at least 31. At cpu scale about 8 minutes on 2 cores.

Every arm masks exactly its rate of tokens, whatever they are masked with (train/units.py). Losses are measured with
single tokens masked, which favours the arms that saw such masks: read them with the probe and the tasks. In short rows
many units are cut by the budget: 15% of 62 tokens are 9, less than two spans of mean length. At paper scale this is
masking_rate's recipe without the further steps at 512. Not as published: as in masking_rate; the spans are SpanBERT's
where Wettig's have T5's lengths; collocations are mined from the corpus at hand (data/collocations.py).
"""

from configs import scales
from configs.electra import primary
from configs.masking_rate import glue_recipe, tasks_of_programs
from configs.published import table
from experiments.ablation import Ablation, Arm
from experiments.config_paths import changed

RATES = (0.15, 0.40)
UNITS = {'token': 'tokens', 'word': 'words', 'span': 'spans', 'collocation': 'collocations'}


def config(scale: str) -> Ablation:
    base = changed(glue_recipe(scale), {'evaluation.tasks': tasks_of_programs(scale)})
    return Ablation(
        name='masking_strategy',
        claim='Larger units help at 15% and not at 40% (Wettig et al. 2023, Figures 4 and 5).',
        base=base,
        arms=tuple(
            Arm(f'{name} {rate:.0%}', {'masking.corruption_rate': rate, 'masking.unit': unit})
            for rate in RATES
            for unit, name in UNITS.items()
        ),
        baseline='tokens 15%',
        seeds=scales.SEEDS[scale],
        **primary(scale),
        published=table(
            'Joshi et al. 2020, Table 6, large, dev',
            ('MNLI', 'QNLI'),
            {'tokens 15%': (86.7, 92.5), 'words 15%': (86.3, 92.8), 'spans 15%': (87.0, 93.3)},
        ),
    )
