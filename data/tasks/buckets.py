"""Batches of few shapes: rows of like length together, so that short sentences do not pay for long ones."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from data.permutation import permute
from data.tasks.features import Features

BUCKETS = (16, 32, 64, 128, 256, 512)
"""Lengths that rows are padded to, those below the longest allowed, and the longest allowed."""
_ROWS, _BATCHES = 0, 1  # purposes of a permutation; those of pretraining are row lengths, which are 3 or more


class TaskBatch(NamedTuple):
    """B rows of L tokens; in training every array has a leading axis S of seeds, all with the same L."""

    tokens_BxL: np.ndarray
    """int32."""
    document_ids_BxL: np.ndarray
    """int32: 1 for a token of the row, whichever side it is on, 0 for padding."""
    type_ids_BxL: np.ndarray
    """int32."""
    targets: np.ndarray
    """As `Features.targets` has them: [B] int32 or float32; tagging [B, L] int32, -1 where not scored; span [B, 2]."""
    weights_B: np.ndarray
    """float32: 1 for a row, 0 for one that only fills the batch."""
    rows_B: np.ndarray
    """int32: the row's number in the features; -1 for one that only fills the batch."""


def bucket_lengths(max_length: int, buckets: Sequence[int] = BUCKETS) -> tuple[int, ...]:
    """The lengths that batches may have, rising."""
    return (*(length for length in sorted(buckets) if length < max_length), max_length)


def steps_per_epoch(features: Features, batch_size: int) -> int:
    return -(-len(features) // batch_size)


def training_batches(
    features: Features, *, seeds: Sequence[int], batch_size: int, epochs: int, start: int = 0
) -> Iterator[TaskBatch]:
    """The batches of `epochs` epochs, from step `start`: in each epoch every row once, each seed in its own order.

    Which rows are together, and when, is a function of (seed, epoch, batch size) and the rows' lengths alone. Which
    length comes when is the same for all seeds, as one program takes them all. What is left over in a bucket goes into
    the next longer one, so that an epoch has as many steps as without buckets, and one batch at most with rows that
    only fill it.

    Raises:
      ValueError: there is no row.
    """
    lengths = bucket_lengths(features.max_length)
    if not len(features):
        raise ValueError('there is no row to make batches of')
    bucket_N = np.searchsorted(lengths, features.lengths_N)
    steps = steps_per_epoch(features, batch_size)
    for epoch in range(start // steps, epochs):
        plans = [_plan(seed, epoch, bucket_N, len(lengths), batch_size) for seed in seeds]
        order = permute(0, _BATCHES, epoch, np.arange(steps), steps)
        for index in order[start % steps if epoch == start // steps else 0 :]:
            rows_SxB = np.stack([_filled(plan[index][1], batch_size) for plan in plans])
            yield gather(features, rows_SxB, lengths[plans[0][index][0]])


def evaluation_batches(features: Features, batch_size: int) -> Iterator[TaskBatch]:
    """Every row once, from short to long, without an axis of seeds; nothing if there is no row."""
    lengths = bucket_lengths(features.max_length)
    bucket_N = np.searchsorted(lengths, features.lengths_N)
    order_N = np.argsort(features.lengths_N, kind='stable')
    for bucket, length in enumerate(lengths):
        rows = order_N[bucket_N[order_N] == bucket]
        for first in range(0, len(rows), batch_size):
            yield gather(features, _filled(rows[first : first + batch_size], batch_size), length)


def gather(features: Features, rows: np.ndarray, length: int) -> TaskBatch:
    """The rows with these numbers, int [..., B], -1 for none, padded to `length`."""
    weights = (rows >= 0).astype(np.float32)
    starts = features.offsets[rows]
    ends = np.where(rows >= 0, features.offsets[rows + 1], starts)
    places = starts[..., None] + np.arange(length)
    real = places < ends[..., None]
    places = np.where(real, places, 0)

    def padded(array_T: np.ndarray, filler: int) -> np.ndarray:
        return np.where(real, array_T[places], np.int32(filler))

    if features.kind == 'tagging':
        targets = padded(features.targets, -1)
    else:
        targets = features.targets[rows]
        targets[rows < 0] = 0
    return TaskBatch(
        tokens_BxL=padded(features.tokens_T, features.vocabulary.pad),
        document_ids_BxL=real.astype(np.int32),
        type_ids_BxL=padded(features.type_ids_T, 0),
        targets=targets,
        weights_B=weights,
        rows_B=rows.astype(np.int32),
    )


def scatter(features: Features, batch: TaskBatch, values: np.ndarray, out: np.ndarray) -> None:
    """Puts a batch's outputs where they belong; those of rows and tokens that only fill are left out.

    Args:
      values: [B, ...]; of tagging and span tasks, which are of tokens, [B, L, ...].
      out: [N, ...], a row's outputs at its number; of tagging and span [T, ...], as the features' tokens lie.
    """
    held_B = batch.weights_B > 0
    if features.kind in ('classification', 'regression'):
        out[batch.rows_B[held_B]] = values[held_B]
        return
    real_BxL = batch.document_ids_BxL > 0
    places_BxL = features.offsets[batch.rows_B][:, None] + np.arange(real_BxL.shape[1])
    out[places_BxL[real_BxL]] = values[real_BxL]


def _plan(seed: int, epoch: int, bucket_N: np.ndarray, count: int, batch_size: int) -> list[tuple[int, np.ndarray]]:
    """(bucket, rows) of each batch of an epoch, buckets rising; the buckets do not depend on the seed."""
    order_N = permute(seed, _ROWS, epoch, np.arange(len(bucket_N)), len(bucket_N))
    plan, left = [], np.empty(0, np.int64)
    for bucket in range(count):
        inside = order_N[bucket_N[order_N] == bucket]
        rows = np.concatenate([left, inside])
        whole = len(rows) - len(rows) % batch_size
        plan += [(bucket, rows[first : first + batch_size]) for first in range(0, whole, batch_size)]
        left = rows[whole:]
    if len(left):
        plan.append((int(bucket_N[left[-1]]), left))  # what is left of the longest bucket stands last
    return plan


def _filled(rows: np.ndarray, batch_size: int) -> np.ndarray:
    return np.concatenate([rows, np.full(batch_size - len(rows), -1, np.int64)])
