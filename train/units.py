"""Units: what is masked together. A token, a whole word, a span of words, or a collocation.

The budget stays exact in tokens. A row's units lie on a ring in random order, and from a random token on the ring's
tokens are the row's ranks: the first k of them are chosen, whatever k is. Thus every token is as likely to be chosen as
any other, whichever unit it is in, and the choice at a higher rate contains the choice at a lower one; in return the
units at both ends of the stretch may be cut. (Ranks that begin with a whole unit would mask short words too often.)
"""

from collections.abc import Collection

import jax
import jax.numpy as jnp
import numpy as np

from data.vocabulary import Vocabulary

UNIT_NUMBERS = {'token': 0, 'word': 1, 'span': 2, 'collocation': 3}
"""Name -> number, as `Settings` carries it."""
LONGEST_SPAN = 10
"""Words (Joshi et al. 2020, Section 3.1)."""
GEOMETRIC = 0.2
"""Parameter of the spans' lengths, from the same place: 3.8 words in the mean once those over 10 are left out."""


def span_shares() -> np.ndarray:
    """Share of spans of 1, 2, ... LONGEST_SPAN words: geometric, cut off and scaled up to 1. float64."""
    shares = GEOMETRIC * (1 - GEOMETRIC) ** np.arange(LONGEST_SPAN)
    return shares / shares.sum()


def first_tokens(
    tokens_BxL: jax.Array,
    maskable_BxL: jax.Array,
    lengths_BxL: jax.Array,
    joins_BxL: jax.Array | None,
    unit: jax.Array,
    units: Collection[str],
    vocabulary: Vocabulary,
) -> jax.Array:
    """Position of the first token of the unit that each token is in: int32 [B, L].

    No unit goes over a special token or a row's end. Tokens that are not maskable are units of their own.

    Args:
      lengths_BxL: words of a span that begins at a token (`span_lengths`).
      joins_BxL: bool, tokens that go on with the collocation before them.
      unit: number of the unit wanted, traced.
      units: names of the units that are asked for anywhere in the program.
    """
    before_BxL = jnp.pad(maskable_BxL[:, :-1], ((0, 0), (1, 0)))
    fresh_BxL = ~(maskable_BxL & before_BxL)
    begins_BxL = jnp.ones_like(maskable_BxL)
    words_BxL = fresh_BxL | jnp.asarray(vocabulary.starts_word)[tokens_BxL]
    begins_BxL = jnp.where(unit == UNIT_NUMBERS['word'], words_BxL, begins_BxL)
    if 'span' in units:
        spans_BxL = _spans(words_BxL, fresh_BxL, lengths_BxL)
        begins_BxL = jnp.where(unit == UNIT_NUMBERS['span'], spans_BxL, begins_BxL)
    if 'collocation' in units:
        begins_BxL = jnp.where(unit == UNIT_NUMBERS['collocation'], words_BxL & (fresh_BxL | ~joins_BxL), begins_BxL)
    positions_1xL = jnp.arange(tokens_BxL.shape[-1], dtype=jnp.int32)[None]
    return jax.lax.cummax(jnp.where(begins_BxL, positions_1xL, 0), axis=1)


def span_lengths(bits_BxL: jax.Array) -> jax.Array:
    """Words of a span, int32, each from 32 random bits."""
    below = np.round(np.cumsum(span_shares())[:-1] * 2.0**32).astype(np.uint32)
    return 1 + sum((bits_BxL >= edge).astype(jnp.int32) for edge in below)


def _spans(words_BxL: jax.Array, fresh_BxL: jax.Array, lengths_BxL: jax.Array) -> jax.Array:
    """Which tokens begin a span: where the one before has had its words, or must end. bool [B, L]."""

    def step(left_B, token):
        word_B, fresh_B, length_B = token
        begins_B = word_B & (fresh_B | (left_B == 0))
        return jnp.where(begins_B, length_B, left_B) - word_B, begins_B

    columns = (words_BxL.T, fresh_BxL.T, lengths_BxL.T)
    return jax.lax.scan(step, jnp.zeros_like(lengths_BxL[:, 0]), columns)[1].T
