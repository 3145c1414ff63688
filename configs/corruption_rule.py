"""What becomes of a chosen token: [MASK], a random token, or itself.

Claim: at 15% fine-tuning is robust to the rule, but a model that saw only [MASK] is worse as frozen features.
Source: Devlin et al. 2019, Table 8 (base). Rules at 40% are in corruption_rule_40.py.
Command: python -m experiments.ablate configs/corruption_rule.py --scale cpu --workdir runs/corruption_rule
Cost: 6 arms; at paper scale 42.6 billion tokens a replica, and at v5e's peak 576 chip-hours for all 18 replicas; by the
plan (docs/plan.md) a replica of the baseline takes at least 46. At cpu scale about 6 minutes on 2 cores.

What counts is the probe of frozen features, where the corpus has labels for it. The table's own columns need its data:
with --evaluation.data_dir DIR, MNLI is read from DIR/MNLI (GLUE's files) and NER from DIR/conll2003 (CoNLL-2003's).
Losses are measured under [MASK] alone, which the two arms without it never saw: theirs say nothing about what these
arms learned. Not as published: as in bert_base.
"""

from configs import scales
from configs.published import table
from experiments.ablation import Ablation, Arm
from experiments.config_paths import changed
from train.config import TaskEvaluation

MIXED = (0.8, 0.1, 0.1)


def rule_arm(name: str, rate: float, rule: tuple[float, float, float]) -> Arm:
    """An arm; `rule` is what becomes of the chosen: shares that turn into [MASK], into a random token, and stay."""
    return Arm(name, {'masking.corruption_rate': rate, 'masking.rule': rule})


def tasks(scale: str, layers: int) -> tuple[TaskEvaluation, ...]:
    """The three columns of Table 8; frozen features are of the last 4 layers (Section 5.3)."""
    return (
        scales.task(scale, 'mnli', 'MNLI', 'MNLI'),
        scales.task(scale, 'tagging', 'NER fine-tuned', 'conll2003'),
        scales.task(scale, 'tagging', 'NER frozen features', 'conll2003', features=min(4, layers), learning_rate=1e-3),
    )


def config(scale: str) -> Ablation:
    base = scales.scale(scale)
    return Ablation(
        name='corruption_rule',
        claim='Fine-tuning is robust to the corruption rule, frozen features less so (Devlin et al. 2019, Table 8).',
        base=changed(base, {'evaluation.tasks': tasks(scale, base.model.layers)}),
        arms=(
            rule_arm('80 mask 10 random 10 keep', 0.15, MIXED),
            rule_arm('all mask', 0.15, (1.0, 0.0, 0.0)),
            rule_arm('80 mask 20 random', 0.15, (0.8, 0.2, 0.0)),
            rule_arm('80 mask 20 keep', 0.15, (0.8, 0.0, 0.2)),
            rule_arm('80 random 20 keep', 0.15, (0.0, 0.8, 0.2)),
            rule_arm('all random', 0.15, (0.0, 1.0, 0.0)),
        ),
        baseline='80 mask 10 random 10 keep',
        seeds=scales.SEEDS[scale],
        primary='probe' if base.evaluation.probe_paragraphs else 'loss',
        published=table(
            'Devlin et al. 2019, Table 8, base, dev',
            ('MNLI', 'NER fine-tuned', 'NER frozen features'),
            {
                '80 mask 10 random 10 keep': (84.2, 95.4, 94.9),
                'all mask': (84.3, 94.9, 94.0),
                '80 mask 20 random': (84.1, 95.2, 94.6),
                '80 mask 20 keep': (84.4, 95.2, 94.7),
                '80 random 20 keep': (83.7, 94.8, 94.6),
                'all random': (83.6, 94.9, 94.6),
            },
        ),
    )
