"""Which pairs of held-out text a model judges rightly: NSP's and SOP's, whichever it was trained on.

That shows ALBERT's asymmetry (Lan et al. 2020, Table 5): a model of sentence order also tells other documents'
sentences in many cases, one of NSP can tell no order. The pairs are segments at the last stage's length, unmasked, the
same for every arm and seed. Each is shown twice, as it stands in the text and with its second segment exchanged, so
guessing makes 50%, though segments' lengths tell a little. Rows with a part of a sentence (one longer than half a row)
are left out: where such segments end would tell which comes first.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from data.errors import UserError
from data.pair_rows import PairRows
from data.store import TokenStore
from data.vocabulary import Vocabulary
from model import mlm
from train.cohort import Cohort
from train.config import Config
from train.figures import figure
from train.fixed_masks import SEED
from train.heldout_rows import spread
from train.masking import pair_ids
from train.objectives.mlm_with_pairs import encoder, judge
from train.replicas import ReplicaProgram

METRICS = {'nsp_accuracy': 'random', 'sop_accuracy': 'swapped'}
"""Metric -> what takes the second segment's place."""


def pair_figures(
    store: TokenStore, cohort: Cohort, params_R: Any, length: int, mesh: jax.sharding.Mesh, stage: int, step: int
) -> tuple[list[dict], list[str]]:
    """Accuracies of each replica in percent, and why there are not more.

    Args:
      params_R: all parameters, the head for pairs with them.
    """
    evaluation, vocabulary = cohort.config.evaluation, store.tokenizer.vocabulary
    program = ReplicaProgram(make_judgement(cohort.config, vocabulary), mesh, evaluation.batch_size)
    found, remarks = [], []
    for metric, second in METRICS.items():
        try:
            rows = PairRows(store.heldout, length, vocabulary, sentences=False, second=second, whole=True)
        except UserError as error:
            # Of its mends none is one for held-out text.
            remarks.append(
                f'no {metric.replace("_", " ")}: the held-out text has no such pairs ({str(error).split(":")[0]})'
            )
            continue
        row_ids_N = spread(len(rows), evaluation.rows)
        right_RxN = np.concatenate(
            [
                program(params_R, (cut.tokens, cut.pair_labels))
                for cut in (rows.cut(SEED, 0, row_ids_N, exchanged) for exchanged in (False, True))
            ],
            axis=1,
        )
        for replica, right_N in zip(cohort.replicas, right_RxN, strict=True):
            found.append(figure(replica, stage, step, metric, 100 * right_N.mean()))
    return found, remarks


def make_judgement(config: Config, vocabulary: Vocabulary):
    """`judgement(params, (tokens_BxL, labels_B)) -> bool [B]`: which pairs one replica judges rightly."""

    def judgement(params, rows):
        tokens_BxL, labels_B = rows
        document_ids_BxL, type_ids_BxL = pair_ids(tokens_BxL, vocabulary)
        first_Bx1 = jnp.zeros((len(tokens_BxL), 1), jnp.int32)
        hidden_Bx1xD = mlm.encode(
            encoder(params), config.model, tokens_BxL, document_ids_BxL, type_ids_BxL, positions_BxM=first_Bx1
        )
        return judge(params, config.model, hidden_Bx1xD).argmax(axis=-1) == labels_B

    return judgement
