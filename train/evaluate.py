"""Loss and accuracy on held-out text: every arm at the same rates, on the same masks."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from data.rows import Rows
from data.store import Split, TokenStore
from data.vocabulary import Vocabulary
from model import mlm
from train.cohort import Cohort, Replica, units_of
from train.config import Config, MaskingConfig
from train.masking import Masked, document_ids, mask_rows
from train.objectives import judged
from train.rates import UNITS, rate_at, rate_units, target_slots
from train.replicas import over_replicas
from train.settings import Settings, settings_at
from train.sharding import placed, put
from train.units import UNIT_NUMBERS

SEED = 2**32 - 1
"""Seed of all evaluation masks: a constant, so that they are the same for every arm and seed."""


UNIT = {'loss': 1.0, 'correct': 100.0}
"""Of figures made of each of `Scores`: nats, and percent."""


class Scores(NamedTuple):
    """Sums over the targets of each row."""

    loss: Any
    correct: Any
    weight: Any


def fixed_settings(rate: float) -> Settings:
    """Masking at one of the common rates: every chosen token becomes [MASK], whatever the arm's rule."""
    units = np.int32(rate_units(rate))
    return Settings(
        seed=np.uint32(SEED),
        noise=np.uint32(0),
        corruption=units,
        prediction=units,
        mask_share=np.float32(1),
        random_share=np.float32(0),
        unit=np.int32(UNIT_NUMBERS['token']),
        duplicates=np.int32(0),
        learning_rate=np.float32(0),
        weight_decay=np.float32(0),
    )


def own_settings(replica: Replica) -> Settings:
    """Masking at the corruption rate with which the arm ends, by its own rule; all that is corrupted is scored.

    A prediction rate apart from the corruption rate changes how many of the corrupted tokens are scored, not what a
    token's loss is expected to be, so here it is left out.
    """
    config = replica.config
    units = np.int32(rate_units(rate_at(config.masking, config.steps, config.steps)))
    settings = settings_at(config, replica.seed, config.steps - 1)
    fixed = fixed_settings(0.0)
    return fixed._replace(
        corruption=units,
        prediction=units,
        mask_share=settings.mask_share,
        random_share=settings.random_share,
        unit=settings.unit,
    )


def slots_for(rates: Iterable[float], length: int) -> int:
    """M, target slots a row that serve all of `rates`."""
    return target_slots([MaskingConfig(corruption_rate=rate) for rate in rates], length)


def spread(total: int, wanted: int) -> np.ndarray:
    """Numbers of `wanted` of `total` items (0: of all), spread evenly over them: int64 [min(total, wanted)]."""
    wanted = min(wanted, total) or total
    return np.arange(wanted, dtype=np.int64) * total // max(wanted, 1)


def heldout_rows(split: Split, vocabulary: Vocabulary, length: int, wanted: int) -> tuple[np.ndarray, np.ndarray]:
    """Held-out rows, the last one padded so that no token is lost, and their numbers.

    Returns:
      tokens_NxL int32 and row_ids_N int32, N at most `wanted` (0: all), spread evenly over the text.
    """
    rows = Rows(split, length, vocabulary, keep_partial=True)
    row_ids_N = spread(len(rows), wanted)
    return rows.gather(row_ids_N), row_ids_N.astype(np.int32)


def whole_batches(count: int, batch_size: int) -> Iterator[tuple[np.ndarray, int]]:
    """Indices of `count` items in batches that are all whole: (indices int64 [batch_size], how many of them count).

    The last batch repeats item 0; what comes of the repeats is to be thrown away.
    """
    for start in range(0, count, batch_size):
        indices = np.arange(start, start + batch_size)
        yield np.where(indices < count, indices, 0), min(batch_size, count - start)


def figure(
    replica: Replica | None,
    stage: int | None,
    step: int | None,
    metric: str,
    value: float,
    eval_rate: float | None = None,
    task: str | None = None,
) -> dict:
    """One row of results.csv; without a replica it belongs to no arm (a baseline by counting)."""
    return {
        'arm': replica.arm if replica else '',
        'seed': replica.seed if replica else None,
        'stage': stage,
        'step': step,
        'metric': metric,
        'eval_rate': eval_rate,
        'task': task,
        'ft_seed': None,
        'value': float(value),
    }


class ReplicaProgram:
    """A function of one replica and a batch of rows, compiled once for all replicas of a cohort.

    `function((params, extra), (arrays with rows first)) -> tree of arrays with rows first`.
    """

    def __init__(self, function, mesh: jax.sharding.Mesh, batch_size: int):
        parts = mesh.shape['data'] * mesh.shape['fsdp']
        self._batch_size = -(-batch_size // parts) * parts
        self._placed = placed(mesh, 'batch')
        # Whole on every device and host: these results are small, and every host reads them.
        self._run = jax.jit(over_replicas(function, mesh), out_shardings=placed(mesh))

    def __call__(self, stacked: Any, rows: Any) -> Any:
        """Results for all N rows, each leaf a numpy array [R, N, ...]; rows are a tree of numpy arrays [N, ...]."""
        count = len(jax.tree.leaves(rows)[0])
        # All batches are dispatched before the first result is waited for.
        parts = []
        for indices, counted in whole_batches(count, self._batch_size):
            batch = put(jax.tree.map(lambda leaf: leaf[indices], rows), self._placed)  # noqa: B023
            parts.append((self._run(stacked, batch), counted))
        parts = [jax.tree.map(lambda a: np.asarray(a)[:, :counted], part) for part, counted in parts]  # noqa: B023
        return jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *parts)


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
        """Loss (nats a target) and accuracy (in percent) of each replica at each common rate, then at its own."""
        evaluation = self._cohort.config.evaluation
        found = []
        for rate in evaluation.rates:
            sums = self._sums(params_R, [fixed_settings(rate)] * len(self._own_R), evaluation.rows)
            names = {'loss': 'loss', 'accuracy': 'correct'}
            found += self._figures(sums, [rate] * len(self._own_R), stage, step, names)
        sums = self._sums(params_R, self._own_R, evaluation.rows)
        own_rates = [settings.corruption / UNITS for settings in self._own_R]
        return found + self._figures(sums, own_rates, stage, step, {'own_loss': 'loss', 'own_accuracy': 'correct'})

    def _sums(self, params_R: Any, settings_R: list[Settings], wanted: int) -> Scores:
        """Sums over all targets of the wanted rows, each float64 [R]."""
        tokens_NxL, row_ids_N = heldout_rows(self._split, self._vocabulary, self._length, wanted)
        joins_NxL = Rows(self._split, self._length, self._vocabulary, keep_partial=True).joins(row_ids_N)
        stacked = Settings(*(np.stack(leaf) for leaf in zip(*settings_R, strict=True)))
        scores = self._program((params_R, stacked), (tokens_NxL, row_ids_N, joins_NxL))
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
