"""What a row is: pairs of segments or of sentences, judged by next-sentence prediction, or plain text without it.

Claim: NSP can go: text without it does as well or better, best within documents, and pairs of single sentences hurt,
whose rows are too short to learn from distance.
Source: Liu et al. 2019 (RoBERTa), Section 4.2 and Table 2 (base).
Command: python -m experiments.ablate configs/input_format.py --scale cpu --workdir runs/input_format
Cost: 4 arms; at paper scale 131.1 billion tokens a replica, and at v5e's peak 3,391 chip-hours for all 12 replicas; by
the plan (docs/plan.md) a replica of the baseline takes at least 103. At cpu scale about 7 minutes on one core.

All rows are cut from one store. One length throughout, as in the paper (Section 3.1): the scale's last, 512 at paper
scale; in rows of 64 sentences would be cut to pieces. Rows that are not full get larger batches, so that every arm
reads about as many tokens as full rows hold. Below paper scale the batches are for the embedded corpus at 128, where
rows of documents, segments and sentences are 77, 84 and 65% full (sentences of more than 62 tokens are cut); at paper
scale sentence pairs alone get more, 8 times as many rows, on the guess that two sentences of Wikipedia fill an eighth
of 512. Every arm is measured on the same plain rows of held-out text, whatever it was trained on; those that judge
pairs also on held-out pairs. Not as published: as in bert_base; full sentences end where the row does, not where a
sentence ends.
"""

import dataclasses

from configs import scales
from configs.electra import primary
from configs.masking_rate import tasks_of_programs
from configs.published import table
from experiments.ablation import Ablation, Arm
from experiments.config_paths import changed
from train.config import Config

ROWS = {'doc_sentences': 1.29, 'segment_pairs': 1.19, 'sentence_pairs': 1.55}
"""Rows for each row of full sentences, below paper scale."""
PAPER_ROWS = {'sentence_pairs': 8.0}


def recipe(scale: str) -> Config:
    """All the scale's steps at its last length."""
    return changed(scales.one_length(scales.scale(scale)), {'evaluation.tasks': tasks_of_programs(scale)})


def config(scale: str) -> Ablation:
    base = recipe(scale)
    (stage,) = base.stages

    def arm(name: str, rows: str, objective: str = 'mlm') -> Arm:
        times = (PAPER_ROWS if scale == 'paper' else ROWS).get(rows, 1.0)
        larger = dataclasses.replace(stage, batch_size=round(times * stage.batch_size))
        return Arm(name, {'objective.rows': rows, 'objective.name': objective, 'stages': (larger,)})

    return Ablation(
        name='input_format',
        claim='Without NSP a model is as good or better; sentence pairs hurt (Liu et al. 2019, Table 2).',
        base=base,
        arms=(
            arm('segment pairs + NSP', 'segment_pairs', 'mlm_nsp'),
            arm('sentence pairs + NSP', 'sentence_pairs', 'mlm_nsp'),
            arm('full sentences', 'full_sentences'),
            arm('doc sentences', 'doc_sentences'),
        ),
        baseline='segment pairs + NSP',
        seeds=scales.SEEDS[scale],
        **primary(scale),
        published=table(
            'Liu et al. 2019, Table 2, base, dev, median of 5 seeds',
            ('SQuAD 1.1 F1', 'SQuAD 2.0 F1', 'MNLI', 'SST-2', 'RACE'),
            {
                'segment pairs + NSP': (90.4, 78.7, 84.0, 92.9, 64.2),
                'sentence pairs + NSP': (88.7, 76.2, 82.9, 92.1, 63.0),
                'full sentences': (90.4, 79.1, 84.7, 92.5, 64.8),
                'doc sentences': (90.6, 79.7, 84.7, 92.7, 65.6),
            },
        ),
    )
