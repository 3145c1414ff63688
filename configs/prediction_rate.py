"""Corrupting and predicting apart: what 40% masking does to the input, and what it gains in targets.

Claim: at one corruption rate more predictions help, and at one prediction rate more corruption hurts; a masking rate
sets both at once.
Source: Wettig et al. 2023, Section 5 and Table 3 (large); its figures are second-hand, from notes on the paper.
Command: python -m experiments.ablate configs/prediction_rate.py --scale cpu --workdir runs/prediction_rate
Cost: 6 arms; at paper scale 12.1 billion tokens a replica, and at v5e's peak 1,581 chip-hours for all 18 replicas; by
the plan (docs/plan.md) a replica of the baseline takes at least 32. An arm that predicts c times what it corrupts
encodes c copies of each row: 8 at 5/40, 4 at 10/40, 2 at 20/40, so the six encode as much as 17 arms of one copy. At
cpu scale, with little more than half the steps of other configs, about 8 minutes on 2 cores.

At paper scale this is masking_rate's recipe without the further steps at 512, as the table has GLUE alone. Not as
published: as in masking_rate.
"""

from configs import scales
from configs.masking_rate import glue_recipe
from configs.published import table
from experiments.ablation import Ablation, Arm
from experiments.config_paths import changed

STEPS = {'smoke': {'stages.0.steps': 36, 'stages.1.steps': 4}, 'cpu': {'stages.0.steps': 750, 'stages.1.steps': 80}}
"""Updates of both stages, about half of other configs', so that the copies take no more time than a scale has."""


def _arm(corrupted: float, predicted: float) -> Arm:
    changes = {'masking.corruption_rate': corrupted}
    if predicted != corrupted:
        changes['masking.prediction_rate'] = predicted
    return Arm(f'corrupt {corrupted:.0%}, predict {predicted:.0%}', changes)


def config(scale: str) -> Ablation:
    return Ablation(
        name='prediction_rate',
        claim='More predictions help and more corruption hurts; the masking rate trades them (Wettig et al. 2023).',
        base=changed(glue_recipe(scale), STEPS.get(scale, {})),
        arms=(
            _arm(0.40, 0.40),
            _arm(0.40, 0.20),
            _arm(0.20, 0.20),
            _arm(0.20, 0.40),
            _arm(0.10, 0.40),
            _arm(0.05, 0.40),
        ),
        baseline='corrupt 40%, predict 40%',
        seeds=scales.SEEDS[scale],
        published=table(
            'Wettig et al. 2023, Table 3, large, dev (second-hand)',
            ('MNLI', 'QNLI', 'QQP', 'STS-B', 'SST-2'),
            {
                'corrupt 40%, predict 40%': (84.5, 91.6, 88.1, 88.2, 92.8),
                'corrupt 40%, predict 20%': (83.7, 90.6, 87.8, 87.5, 92.9),
                'corrupt 20%, predict 20%': (84.1, 91.3, 87.9, 87.4, 92.7),
                'corrupt 20%, predict 40%': (85.7, 92.0, 87.9, 88.6, 93.4),
                'corrupt 10%, predict 40%': (86.3, 92.3, 88.3, 88.9, 93.2),
                'corrupt 5%, predict 40%': (86.9, 92.2, 88.5, 88.6, 93.9),
            },
        ),
    )
