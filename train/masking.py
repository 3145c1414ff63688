"""Which tokens of a row are corrupted and scored, drawn inside the jitted step.

Every maskable token of a row gets a noise value, and the tokens with the lowest values are chosen: exactly
round(rate x maskable) of them, without replacement. A row's noise depends on (seed, noise, purpose, length, row id,
epoch, copy) alone, so neither batch size, row order nor device count matters, and the choice at a higher rate contains
the choice at a lower one. The tokens of a larger unit are chosen together (`train/units.py`).
"""

from collections.abc import Collection
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from data.vocabulary import Vocabulary
from model.dropout import noise_seed
from train.randomness import CUTS, RANKS, REPLACEMENTS, RULE, SAMPLES, SPANS, purpose_key
from train.rates import LONGEST_ROW, count
from train.settings import Settings
from train.units import UNIT_NUMBERS, first_tokens, span_lengths


class Masked(NamedTuple):
    """Corrupted rows and their M target slots. With C copies a row the leading axis is B * C, copies side by side."""

    inputs_BxL: jax.Array
    """int32, what the model reads."""
    positions_BxM: jax.Array
    """int32, the scored positions by rank of their noise; 0 in unused slots."""
    labels_BxM: jax.Array
    """int32, the original token at each position."""
    weights_BxM: jax.Array
    """float32, 1 for a target and 0 for an unused slot."""
    chosen_BxL: jax.Array
    """bool, the tokens that are corrupted: targets, and those that are not scored."""


def document_ids(tokens_BxL: jax.Array, vocabulary: Vocabulary) -> jax.Array:
    """Document of each token, from 1; a [SEP] belongs to the document that it ends; 0 is padding. int32 [B, L]."""
    ends_BxL = (tokens_BxL == vocabulary.sep).astype(jnp.int32)
    before_BxL = jnp.cumsum(ends_BxL, axis=-1) - ends_BxL
    return jnp.where(tokens_BxL == vocabulary.pad, 0, 1 + before_BxL)


def pair_ids(tokens_BxL: jax.Array, vocabulary: Vocabulary) -> tuple[jax.Array, jax.Array]:
    """Document ids and type ids of rows of pairs, int32 [B, L].

    A pair counts as one document, wherever its second segment is from: it is judged as a whole.
    """
    segments_BxL = document_ids(tokens_BxL, vocabulary)
    return jnp.minimum(segments_BxL, 1), (segments_BxL > 1).astype(jnp.int32)


def maskable(tokens_BxL: jax.Array, document_ids_BxL: jax.Array, vocabulary: Vocabulary) -> jax.Array:
    """Which tokens may be chosen: valid, and of an ordinary id (not special, not a padding id). bool [B, L]."""
    return is_ordinary(tokens_BxL, vocabulary) & (document_ids_BxL > 0)


def is_ordinary(ids: jax.Array, vocabulary: Vocabulary) -> jax.Array:
    """Which of these ids are neither special nor padding ids; bool, of any shape."""
    found = jnp.zeros(ids.shape, bool)
    for first, end in _runs(vocabulary):
        found |= (ids >= first) & (ids < end)
    return found


def row_keys(seed, purpose: int, noise, length: int, row_ids_B: jax.Array, epochs_B: jax.Array, copy: int) -> jax.Array:
    """One typed key a row [B], from nothing but these; `seed` and `noise` may be traced (see `train/randomness.py`)."""
    key = purpose_key(seed, purpose)
    for part in (noise, length, copy):
        key = jax.random.fold_in(key, part)
    return jax.vmap(lambda row, epoch: jax.random.fold_in(jax.random.fold_in(key, row), epoch))(row_ids_B, epochs_B)


def mask_rows(
    tokens_BxL: jax.Array,
    document_ids_BxL: jax.Array,
    row_ids_B: jax.Array,
    epochs_B: jax.Array,
    settings: Settings,
    vocabulary: Vocabulary,
    slots: int,
    copies: int,
    units: Collection[str] = ('token',),
    joins_BxL: jax.Array | None = None,
) -> Masked:
    """Chooses, corrupts and gathers the targets of B rows.

    With k the count at the corruption rate and p that at the prediction rate, copy j corrupts the tokens of ranks
    j k to (j + 1) k and scores those of them below p (Wettig et al. 2023, Section 5). Where fewer than k ranks are
    left for the last copy it corrupts the last k, so that each copy is corrupted at the same rate.

    Args:
      slots: M, at least the targets that any row can have (`target_slots`); targets beyond are not scored.
      copies: C, at least that of any arm in the program (`copies`); an arm that needs fewer scores nothing in the rest.
      units: names of the units that any arm in the program masks by; `settings.unit` says which.
      joins_BxL: tokens that go on with the collocation before them; needed for that unit alone.

    Raises:
      ValueError: rows longer than LONGEST_ROW.
    """
    length = tokens_BxL.shape[-1]
    if length > LONGEST_ROW:
        raise ValueError(f'rows of {length} tokens: masking counts in int32, up to {LONGEST_ROW}')
    epochs_B = _mask_epochs(epochs_B, settings)
    maskable_BxL = maskable(tokens_BxL, document_ids_BxL, vocabulary)
    maskable_B = maskable_BxL.sum(-1, dtype=jnp.int32)
    corrupted_B, scored_B = count(settings.corruption, maskable_B), count(settings.prediction, maskable_B)

    def bits(purpose: int, copy: int) -> jax.Array:
        keys_B = row_keys(settings.seed, purpose, settings.noise, length, row_ids_B, epochs_B, copy)
        return jax.vmap(lambda key: jax.random.bits(key, (length,), jnp.uint32))(keys_B)

    # All copies share one order, so that no two score the same token.
    noise_BxL, size, firsts_BxL = bits(RANKS, 0), max(length, slots), None
    if set(units) <= {'token'}:
        order_BxL, sorted_BxS = _ranks(noise_BxL, maskable_BxL, size)
    else:
        lengths_BxL = span_lengths(bits(SPANS, 0))
        firsts_BxL = first_tokens(tokens_BxL, maskable_BxL, lengths_BxL, joins_BxL, settings.unit, units, vocabulary)
        together = settings.unit != UNIT_NUMBERS['token']
        cut_B = jnp.where(together, bits(CUTS, 0)[:, 0] % jnp.maximum(maskable_B, 1).astype(jnp.uint32), 0)
        # A bit less for larger units, which `_cut` uses.
        noise_BxL = jnp.where(together, _of_first(noise_BxL, firsts_BxL) >> 1, noise_BxL)
        order_BxL, sorted_BxS = _cut(*_ranks(noise_BxL, maskable_BxL, size), cut_B.astype(jnp.int32), maskable_BxL)
    parts = []
    for copy in range(copies):
        start_B = copy * corrupted_B
        first_B = jnp.minimum(start_B, maskable_B - corrupted_B)
        chosen_BxL = (order_BxL >= _at(sorted_BxS, first_B)) & (order_BxL < _at(sorted_BxS, first_B + corrupted_B))
        random_BxL = ordinary_ids(bits(REPLACEMENTS, copy), vocabulary)
        rule_BxL = bits(RULE, copy)
        if 'span' in units:  # one fate for all of a span (Joshi et al. 2020, Section 3.1)
            rule_BxL = jnp.where(settings.unit == UNIT_NUMBERS['span'], _of_first(rule_BxL, firsts_BxL), rule_BxL)
        replaced_BxL = _replaced(tokens_BxL, rule_BxL, random_BxL, settings, vocabulary)
        inputs_BxL = jnp.where(chosen_BxL, replaced_BxL, tokens_BxL)
        targets = _targets(sorted_BxS, tokens_BxL, start_B, corrupted_B, scored_B, slots)
        parts.append((inputs_BxL, *targets, chosen_BxL))
    stacked = [jnp.stack(part, axis=1) for part in zip(*parts, strict=True)]
    return Masked(*(array.reshape(-1, array.shape[-1]) for array in stacked))


def sample_noise(length: int, row_ids_B: jax.Array, epochs_B: jax.Array, settings: Settings, copies: int) -> jax.Array:
    """Three uint32 words of each row's own, [B * C, 3], copies side by side, for samples at its targets."""
    epochs_B = _mask_epochs(epochs_B, settings)
    keys = [
        row_keys(settings.seed, SAMPLES, settings.noise, length, row_ids_B, epochs_B, copy) for copy in range(copies)
    ]
    return jnp.stack([jax.vmap(noise_seed)(keys_B) for keys_B in keys], axis=1).reshape(-1, 3)


def _mask_epochs(epochs_B: jax.Array, settings: Settings) -> jax.Array:
    """Static masking: a row's masks, and all that is drawn with them, come round again."""
    return jnp.where(settings.duplicates > 0, epochs_B % jnp.maximum(settings.duplicates, 1), epochs_B)


def _ranks(noise_BxL: jax.Array, maskable_BxL: jax.Array, size: int) -> tuple[jax.Array, jax.Array]:
    """One distinct uint32 per token that orders a row's tokens by noise; and those of a row, sorted and padded to S.

    From the highest bit: whether the token may not be chosen, noise, the position. Sorting one operand is faster than
    two, and unlike `lax.top_k` a sort gathers nothing across devices. S is size + 1: there is always one past the end.
    """
    length = maskable_BxL.shape[-1]
    positions_1xL = jnp.arange(length, dtype=jnp.uint32)[None]
    noise_BxL = (noise_BxL >> 1) & ~jnp.uint32(_position_mask(length))
    order_BxL = jnp.where(maskable_BxL, noise_BxL, jnp.uint32(1 << 31)) | positions_1xL
    sorted_BxL = lax.sort(order_BxL, dimension=1, is_stable=False)
    return order_BxL, jnp.pad(sorted_BxL, ((0, 0), (0, size + 1 - length)), constant_values=np.uint32(2**32 - 1))


def _cut(order_BxL, sorted_BxS, cut_B, maskable_BxL) -> tuple[jax.Array, jax.Array]:
    """The ranks from the token of rank cut_B on, those before it last. Bit 30 of `order_BxL` must be free then."""
    behind_BxL = maskable_BxL & (order_BxL < _at(sorted_BxS, cut_B))
    order_BxL = jnp.where(behind_BxL, order_BxL | np.uint32(1 << 30), order_BxL)
    length = order_BxL.shape[-1]
    return order_BxL, sorted_BxS.at[:, :length].set(lax.sort(order_BxL, dimension=1, is_stable=False))


def _of_first(bits_BxL: jax.Array, firsts_BxL: jax.Array) -> jax.Array:
    """The number of each token's unit: that of its first token."""
    return jnp.take_along_axis(bits_BxL, firsts_BxL, axis=1)


def _position_mask(length: int) -> int:
    return (1 << max(1, (length - 1).bit_length())) - 1


def _at(sorted_BxS: jax.Array, ranks_B: jax.Array) -> jax.Array:
    return jnp.take_along_axis(sorted_BxS, ranks_B[:, None], axis=1)


def _targets(sorted_BxS, tokens_BxL, start_B, corrupted_B, scored_B, slots) -> tuple[jax.Array, jax.Array, jax.Array]:
    """positions_BxM, labels_BxM, weights_BxM of the ranks from start_B on."""
    length = tokens_BxL.shape[-1]
    slots_1xM = jnp.arange(slots, dtype=jnp.int32)[None]
    ranks_BxM = start_B[:, None] + slots_1xM
    used_BxM = (slots_1xM < corrupted_B[:, None]) & (ranks_BxM < scored_B[:, None])
    taken_BxM = jnp.take_along_axis(sorted_BxS, jnp.where(used_BxM, ranks_BxM, 0), axis=1)
    positions_BxM = (taken_BxM & jnp.uint32(_position_mask(length))).astype(jnp.int32)
    positions_BxM = jnp.where(used_BxM, positions_BxM, 0)
    labels_BxM = jnp.take_along_axis(tokens_BxL, positions_BxM, axis=1)
    return positions_BxM, labels_BxM, used_BxM.astype(jnp.float32)


def _replaced(tokens_BxL, rule_bits_BxL, random_BxL, settings: Settings, vocabulary: Vocabulary) -> jax.Array:
    """What each token would become, were it chosen: [MASK], a random ordinary id or itself. int32 [B, L]."""
    uniform_BxL = (rule_bits_BxL >> 8).astype(jnp.float32) * 2.0**-24
    changed_BxL = jnp.where(uniform_BxL < settings.mask_share, vocabulary.mask, random_BxL)
    return jnp.where(uniform_BxL < settings.mask_share + settings.random_share, changed_BxL, tokens_BxL)


def ordinary_ids(bits: jax.Array, vocabulary: Vocabulary) -> jax.Array:
    """Ordinary ids drawn by 32 random bits each, uniform but for a share of len(ordinary) / 2**32. int32."""
    index = (bits % jnp.uint32(len(vocabulary.ordinary))).astype(jnp.int32)
    # Id = index + the ids left out below it. Comparisons with the few runs of ids are cheaper than a lookup on TPU.
    ids, passed, end_before = index, 0, 0
    for first, end in _runs(vocabulary):
        ids += jnp.where(index >= passed, first - end_before, 0)
        passed, end_before = passed + end - first, end
    return ids


def _runs(vocabulary: Vocabulary) -> list[tuple[int, int]]:
    """The ordinary ids as [first, end) runs: one for SentencePiece, whose specials come first, and few elsewhere."""
    breaks = np.flatnonzero(np.diff(vocabulary.ordinary) != 1) + 1
    return [(int(run[0]), int(run[-1]) + 1) for run in np.split(vocabulary.ordinary, breaks)]
