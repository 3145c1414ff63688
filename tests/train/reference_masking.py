"""Masking as plain loops over Python integers, and rows to try it on. Only the noise is `train/masking.py`'s."""

import math
from fractions import Fraction
from functools import partial

import jax
import numpy as np

from data.vocabulary import Vocabulary
from tests.vocabularies import vocabulary_of
from train.masking import Masked, row_keys
from train.randomness import RANKS, REPLACEMENTS, RULE
from train.settings import Settings
from train.units import UNIT_NUMBERS

SENTENCEPIECE = vocabulary_of(300, 'sentencepiece')
# As BERT's WordPiece: specials in the middle of the table, and one more special id at its end.
WORDPIECE = Vocabulary(
    size=200,
    pad=0,
    unk=100,
    cls=101,
    sep=102,
    mask=103,
    ordinary=np.concatenate([np.arange(1, 100), np.arange(104, 199)]),
    fingerprint='wordpiece',
    starts_word=np.arange(200) % 3 == 0,
)
VOCABULARIES = {'sentencepiece': SENTENCEPIECE, 'wordpiece': WORDPIECE}


def settings(
    corruption=0.15, prediction=None, rule=(0.8, 0.1, 0.1), duplicates=0, seed=0, noise=0, unit='token'
) -> Settings:
    """Settings of a replica as `settings_at` would make them, rates given in decimal."""
    units = [
        round(Fraction(str(rate)) * 100_000) for rate in (corruption, corruption if prediction is None else prediction)
    ]
    return Settings(
        seed=np.uint32(seed),
        noise=np.uint32(noise),
        corruption=np.int32(units[0]),
        prediction=np.int32(units[1]),
        mask_share=np.float32(rule[0]),
        random_share=np.float32(rule[1]),
        unit=np.int32(UNIT_NUMBERS[unit]),
        duplicates=np.int32(duplicates),
        learning_rate=np.float32(0),
        weight_decay=np.float32(0),
    )


def rows(seed: int, batch: int, length: int, vocabulary: Vocabulary, documents: int = 2, special: float = 0.05):
    """Rows of [CLS], text with [SEP] between documents and other specials strewn in, [SEP], padding. int32 [B, L]."""
    random = np.random.default_rng(seed)
    tokens_BxL = random.choice(vocabulary.ordinary, (batch, length)).astype(np.int32)
    for tokens_L in tokens_BxL:
        strewn = random.random(length) < special
        tokens_L[strewn] = random.choice([vocabulary.unk, vocabulary.cls, vocabulary.mask], strewn.sum())
        tokens_L[random.integers(0, length, documents - 1)] = vocabulary.sep
        end = length if random.random() < 0.5 else random.integers(2, length + 1)
        tokens_L[0], tokens_L[end - 1] = vocabulary.cls, vocabulary.sep
        tokens_L[end:] = vocabulary.pad
    return tokens_BxL


def rounded(rate: Fraction, number: int) -> int:
    """rate x number to the nearest integer, ties up."""
    return math.floor(rate * number + Fraction(1, 2))


@partial(jax.jit, static_argnames='length')
def _noise(seed, purpose, noise, length, row_ids_B, epochs_B, copy):
    keys_B = row_keys(seed, purpose, noise, length, row_ids_B, epochs_B, copy)
    return jax.vmap(lambda key: jax.random.bits(key, (length,), 'uint32'))(keys_B)


def noise(settings: Settings, purpose: int, length: int, row_ids_B, epochs_B, copy: int) -> list[list[int]]:
    """The 32 random bits that each token has for a purpose."""
    return np.asarray(_noise(settings.seed, purpose, settings.noise, length, row_ids_B, epochs_B, copy)).tolist()


def mask_rows(tokens_BxL, row_ids_B, epochs_B, settings: Settings, vocabulary: Vocabulary, slots: int, copies: int):
    """What `train.masking.mask_rows` promises, one token at a time."""
    length = tokens_BxL.shape[1]
    if settings.duplicates:
        epochs_B = epochs_B % settings.duplicates
    random = {(RANKS, 0): noise(settings, RANKS, length, row_ids_B, epochs_B, 0)}
    for copy in range(copies):
        random |= {(p, copy): noise(settings, p, length, row_ids_B, epochs_B, copy) for p in (RULE, REPLACEMENTS)}
    # A position takes as many bits as the last one needs, one bit marks what cannot be chosen, noise has the rest.
    step = 2 ** (1 + len(bin(length - 1)[2:]))
    ordinary = vocabulary.ordinary.tolist()
    found = []
    for row, tokens in enumerate(tokens_BxL.tolist()):
        maskable = [i for i, token in enumerate(tokens) if token in ordinary]
        ranked = sorted(maskable, key=lambda i: (random[RANKS, 0][row][i] // step, i))
        corrupted = rounded(Fraction(int(settings.corruption), 100_000), len(maskable))
        scored = rounded(Fraction(int(settings.prediction), 100_000), len(maskable))
        for copy in range(copies):
            first = min(copy * corrupted, len(maskable) - corrupted)
            inputs, chosen = list(tokens), ranked[first : first + corrupted]
            for i in chosen:
                uniform = random[RULE, copy][row][i] // 2**8 / 2**24
                if uniform < settings.mask_share:
                    inputs[i] = vocabulary.mask
                elif uniform < settings.mask_share + settings.random_share:
                    inputs[i] = ordinary[random[REPLACEMENTS, copy][row][i] % len(ordinary)]
            targets = ranked[copy * corrupted : min((copy + 1) * corrupted, scored)]
            positions = targets + [0] * (slots - len(targets))
            weights = [1.0] * len(targets) + [0.0] * (slots - len(targets))
            labels = [tokens[i] for i in positions]
            found.append((inputs, positions, labels, weights, [i in chosen for i in range(length)]))
    return Masked(*(np.array(part) for part in zip(*found, strict=True)))
