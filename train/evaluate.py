"""Loss and accuracy on held-out text: every arm at the same rates, on the same masks."""

from collections.abc import Collection
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from data.rows import Rows
from data.store import TokenStore
from data.vocabulary import Vocabulary
from model import mlm
from train.cohort import Cohort, units_of
from train.config import Config
from train.figures import figure
from train.fixed_masks import fixed_settings, own_settings, slots_for
from train.heldout_rows import heldout_rows
from train.masking import Masked, document_ids, mask_rows
from train.objectives.cross_entropy import judged
from train.rates import UNITS
from train.replicas import ReplicaProgram
from train.settings import Settings, stacked

UNIT = {'loss': 1.0, 'correct': 100.0}
"""Of figures made of each of `Scores`: nats, and percent."""


class Scores(NamedTuple):
    """Sums over the targets of each row."""

    loss: Any
    correct: Any
    weight: Any


class HeldOut:
    """Evaluates all replicas of a cohort on held-out rows of one length, in one program."""

    def __init__(self, store: TokenStore, cohort: Cohort, length: int, mesh: jax.sharding.Mesh):
        self._cohort = cohort
        self._split, self._vocabulary, self._length = store.heldout, store.tokenizer.vocabulary, length
        self._own_R = [own_settings(replica) for replica in cohort.replicas]
        rates = cohort.config.evaluation.rates
        own_rates = [settings.corruption / UNITS for settings in self._own_R]
        units = units_of(cohort)
        score = make_score(cohort.config, self._vocabulary, slots_for([*rates, *own_rates], length), units)
        self._program = ReplicaProgram(score, mesh, cohort.config.evaluation.batch_size)

    def curve(self, params_R: Any, stage: int, step: int) -> list[dict]:
        """A point of each replica's learning curve: the loss at the first common rate on the curve's rows."""
        evaluation = self._cohort.config.evaluation
        rate = evaluation.rates[0]
        sums = self._sums(params_R, [fixed_settings(rate)] * len(self._own_R), evaluation.curve_rows)
        return self._figures(sums, [rate] * len(self._own_R), stage, step, {'curve_loss': 'loss'})

    def figures(self, params_R: Any, stage: int, step: int) -> list[dict]:
        """Loss (nats a target) and accuracy (in percent) of each replica at each common rate, then at its own.

        A model that was trained on a generator's samples has none of its own: there is no generator here.
        """
        evaluation = self._cohort.config.evaluation
        found = []
        for rate in evaluation.rates:
            sums = self._sums(params_R, [fixed_settings(rate)] * len(self._own_R), evaluation.rows)
            names = {'loss': 'loss', 'accuracy': 'correct'}
            found += self._figures(sums, [rate] * len(self._own_R), stage, step, names)
        if self._cohort.config.objective.replaces:
            return found
        sums = self._sums(params_R, self._own_R, evaluation.rows)
        own_rates = [settings.corruption / UNITS for settings in self._own_R]
        return found + self._figures(sums, own_rates, stage, step, {'own_loss': 'loss', 'own_accuracy': 'correct'})

    def _sums(self, params_R: Any, settings_R: list[Settings], wanted: int) -> Scores:
        """Sums over all targets of the wanted rows, each float64 [R]."""
        tokens_NxL, row_ids_N = heldout_rows(self._split, self._vocabulary, self._length, wanted)
        joins_NxL = Rows(self._split, self._length, self._vocabulary, keep_partial=True).joins(row_ids_N)
        scores = self._program((params_R, stacked(settings_R)), (tokens_NxL, row_ids_N, joins_NxL))
        return Scores(*(np.sum(leaf, axis=1, dtype=np.float64) for leaf in scores))

    def _figures(self, sums: Scores, rates, stage: int, step: int, names: dict[str, str]) -> list[dict]:
        """A replica without a single target (an own rate of 0) has no figure."""
        found = []
        for metric, field in names.items():
            for i, replica in enumerate(self._cohort.replicas):
                if sums.weight[i]:
                    value = UNIT[field] * getattr(sums, field)[i] / sums.weight[i]
                    found.append(figure(replica, stage, step, metric, value, float(rates[i])))
        return found


def make_score(config: Config, vocabulary: Vocabulary, slots: int, units: Collection[str]):
    """`score((params, settings), (tokens_BxL, row_ids_B, joins_BxL or None)) -> Scores`, each [B], for one replica."""

    def score(replica, rows):
        params, settings = replica
        tokens_BxL, row_ids_B, joins_BxL = rows
        document_ids_BxL = document_ids(tokens_BxL, vocabulary)
        epochs_B = jnp.zeros_like(row_ids_B)
        masked: Masked = mask_rows(
            tokens_BxL, document_ids_BxL, row_ids_B, epochs_B, settings, vocabulary, slots, 1, units, joins_BxL
        )
        log_probs_BxM, right_BxM = target_log_probs(params, config, masked, document_ids_BxL)
        return Scores(
            -jnp.sum(jnp.where(masked.weights_BxM > 0, log_probs_BxM, 0.0), axis=1),
            jnp.sum(masked.weights_BxM * right_BxM, axis=1),
            jnp.sum(masked.weights_BxM, axis=1),
        )

    return score


def target_log_probs(params: Any, config: Config, masked: Masked, document_ids_BxL) -> tuple[jax.Array, jax.Array]:
    """Log probability of each target's label, float32 [B, M], and whether it is the likeliest id, bool [B, M]."""
    hidden_BxMxD = mlm.encode(
        params, config.model, masked.inputs_BxL, document_ids_BxL, positions_BxM=masked.positions_BxM
    )
    logits_BxMxV = mlm.predict(params, config.model, hidden_BxMxD)
    return judged(logits_BxMxV, masked.labels_BxM)
