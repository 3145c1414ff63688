"""Collocations: runs of 2 to 5 words that stand together more often than their parts would, mined from a corpus.

After Levine et al. 2021, "PMI-Masking", Section 3: of the n-grams seen more than 10 times, those of the highest
pointwise mutual information against the likeliest way to cut them,

    PMI(w1 ... wn) = min over cuts into shorter runs s of  log p(w1 ... wn) - sum of log p(s).

Lengths are ranked apart, since the measure grows with n: half of the list are pairs, a quarter runs of 3, an eighth
each of 4 and of 5. The list is as long as it must be for half of the tokens to stand in a collocation (for the paper's
corpus 800,000). Text is then cut from left to right, the longest collocation first.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from data.store import Split
from data.tokenizer import Tokenizer

SHARES = {2: 0.5, 3: 0.25, 4: 0.125, 5: 0.125}
"""Words -> share of the list."""
SEEN_MORE_THAN = 10
COVERED = 0.5
MINED_TOKENS = 100_000_000
"""The first so many tokens of the training split are mined: counting takes 170 bytes a token on the embedded corpus."""
_CHUNK_TOKENS = 1 << 24
_MIX, _TOKEN, _WORD = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 0xC2B2AE3D27D4EB4F))


@dataclass(frozen=True)
class Collocation:
    """One of the list."""

    words: str
    count: int
    pmi: float
    """Nats."""


@dataclass(frozen=True)
class Words:
    """The words of a stretch of tokens. A special token is a word that no collocation holds."""

    starts_W: np.ndarray
    """Number of each word's first token."""
    hashes_W: np.ndarray
    """uint64 of a word's tokens."""
    ordinary_W: np.ndarray

    def runs(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Of the run of `size` words from each word on, as far as there are so many: hash, and whether it has ordinary
        words alone."""
        count = max(len(self.hashes_W) - size + 1, 0)
        hashes, ordinary = np.zeros(count, np.uint64), np.ones(count, bool)
        for i in range(size):
            hashes = hashes * _WORD + self.hashes_W[i : i + count]
            ordinary &= self.ordinary_W[i : i + count]
        return hashes, ordinary


def words_of(tokens_T: np.ndarray, tokenizer: Tokenizer) -> Words:
    """The words that the tokens make, by `starts_word` of the tokenizer."""
    ordinary = np.zeros(tokenizer.vocabulary.size, bool)
    ordinary[tokenizer.vocabulary.ordinary] = True
    ordinary_T = ordinary[tokens_T]
    begins_T = tokenizer.starts_word[tokens_T] | ~ordinary_T | ~np.pad(ordinary_T[:-1], (1, 0))
    starts_W = np.flatnonzero(begins_T)
    lengths_W = np.diff(starts_W, append=len(tokens_T))
    places_T = np.arange(len(tokens_T)) - np.repeat(starts_W, lengths_W)
    powers = np.multiply.accumulate(np.append(np.uint64(1), np.full(lengths_W.max(initial=1), _TOKEN)))
    mixed_T = (tokens_T.astype(np.uint64) + np.uint64(1)) * _MIX
    mixed_T = (mixed_T ^ (mixed_T >> np.uint64(29))) * powers[places_T]
    hashes_W = np.add.reduceat(mixed_T, starts_W) if len(starts_W) else np.empty(0, np.uint64)
    return Words(starts_W, hashes_W, ordinary_T[starts_W])


def mine(split: Split, tokenizer: Tokenizer) -> tuple[list[Collocation], dict[int, np.ndarray]]:
    """The collocations of a split, the most telling of each length first.

    Returns:
      The list, and for each length the hashes of its runs, rising.
    """
    tokens_T = np.asarray(split.tokens[:MINED_TOKENS])
    words = words_of(tokens_T, tokenizer)
    lengths_W = np.diff(words.starts_W, append=len(tokens_T))
    found = _ranked(words)
    limit = max(math.ceil(len(each['order']) / SHARES[size]) for size, each in found.items())
    low, high = 0, limit
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _covered(words, lengths_W, found, middle) >= COVERED else (middle + 1, high)
    listed, hashes = [], {}
    for size, each in found.items():
        kept = each['order'][: round(SHARES[size] * low)]
        hashes[size] = np.sort(each['hashes'][kept])
        for i in kept.tolist():
            first = each['first'][i]
            end = words.starts_W[first + size] if first + size < len(words.starts_W) else len(tokens_T)
            text = tokenizer.decode(tokens_T[words.starts_W[first] : end])
            listed.append(Collocation(' '.join(text.split()), int(each['counts'][i]), float(each['pmi'][i])))
    return listed, hashes


def _ranked(words: Words) -> dict[int, dict[str, np.ndarray]]:
    """For each length its candidates: hashes, counts, the first word of one, PMI; `order` ranks them, and `ranks_W` are
    the ranks of the runs from each word on."""
    found, log_p, likeliest = {}, {}, {}
    count_W = len(words.hashes_W)
    for size in range(1, max(SHARES) + 1):
        hashes, ordinary = words.runs(size)
        places = np.flatnonzero(ordinary)
        unique, first, inverse, counts = np.unique(
            hashes[places], return_index=True, return_inverse=True, return_counts=True
        )
        log_p[size] = np.full(count_W, -np.inf)
        log_p[size][places] = np.log(counts[inverse] / max(len(places), 1))
        # The likeliest cut: a first run shorter than the whole, then the likeliest way to have the rest.
        cut = np.full(count_W, -np.inf)
        for head in range(1, size):
            rest = np.append(likeliest[size - head][head:], np.full(head, -np.inf))
            cut = np.maximum(cut, log_p[head] + rest)
        likeliest[size] = np.maximum(log_p[size], cut)
        if size == 1:
            continue
        at = places[first]
        pmi = log_p[size][at] - cut[at]
        order = np.lexsort((unique, -counts, -pmi))
        order = order[counts[order] > SEEN_MORE_THAN]
        ranks = np.full(len(unique), len(unique))
        ranks[order] = np.arange(len(order))
        ranks_W = np.full(count_W, np.iinfo(np.int64).max)
        ranks_W[places] = np.where(counts[inverse] > SEEN_MORE_THAN, ranks[inverse], np.iinfo(np.int64).max)
        found[size] = dict(hashes=unique, counts=counts, first=at, pmi=pmi, order=order, ranks_W=ranks_W)
    return found


def _covered(words: Words, lengths_W: np.ndarray, found: dict, listed: int) -> float:
    """Share of the tokens that stand in a collocation if the list is so long."""
    inside_W = np.zeros(len(lengths_W), bool)
    for size, each in found.items():
        places = np.flatnonzero(each['ranks_W'] < round(SHARES[size] * listed))
        for i in range(size):
            inside_W[places + i] = True
    return float(lengths_W[inside_W].sum() / max(lengths_W[words.ordinary_W].sum(), 1))


def joins(split: Split, tokenizer: Tokenizer, hashes: dict[int, np.ndarray]) -> Iterator[np.ndarray]:
    """For each token whether it begins a word that belongs to the collocation before it: bool, in stretches of whole
    documents."""
    ends = split.document_offsets
    start = 0
    while start < len(split.tokens):
        last, one = np.searchsorted(ends, start + _CHUNK_TOKENS, 'right') - 1, np.searchsorted(ends, start) + 1
        end = int(ends[max(last, one)])
        tokens_T = np.asarray(split.tokens[start:end])
        yield _joined(words_of(tokens_T, tokenizer), len(tokens_T), hashes)
        start = end


def _joined(words: Words, count: int, hashes: dict[int, np.ndarray]) -> np.ndarray:
    longest_W = np.ones(len(words.hashes_W), np.int64)
    for size in sorted(hashes):
        found, ordinary = words.runs(size)
        longest_W[: len(found)][ordinary & np.isin(found, hashes[size])] = size
    joined_W = np.zeros(len(longest_W), bool)
    end = 0
    places = np.flatnonzero(longest_W > 1)
    for place, size in zip(places.tolist(), longest_W[places].tolist(), strict=True):
        if place >= end:
            end = place + size
            joined_W[place + 1 : end] = True
    joined_T = np.zeros(count, bool)
    joined_T[words.starts_W[joined_W]] = True
    return joined_T
