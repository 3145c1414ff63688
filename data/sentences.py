"""Where sentences end, by the rules of sentencex (about 300 languages, no model), and their tokens."""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import sentencex

from data.tokenizer import Tokenizer


def sentences(paragraph: str, language: str) -> list[str]:
    """The sentences of one line, each with the space that follows it; joined they are the line.

    Args:
      language: ISO 639 code. One that the library does not know is split as the nearest that it does, or as English.
    """
    return sentencex.segment(language, paragraph)


class Encoded(NamedTuple):
    """Paragraphs P as tokens, and their sentences S."""

    ids: list[np.ndarray]
    """Tokens of each paragraph, int32."""
    lengths_S: np.ndarray
    """Tokens of each sentence."""
    sentences_P: np.ndarray
    """How many sentences each paragraph has."""


def encode_sentences(tokenizer: Tokenizer, paragraphs: Sequence[str], language: str) -> Encoded:
    """Tokens of paragraphs, and how many of them each sentence has.

    A token that reaches over the end of a sentence, where no space stands, belongs to it. Sentences without a token are
    left out.
    """
    parts = [sentences(line, language) or [''] for line in paragraphs]
    ids = tokenizer.encode_lines(paragraphs)
    offset_P = np.cumsum([0, *map(len, ids)])
    owner_S = np.repeat(np.arange(len(parts)), list(map(len, parts)))
    first_P = np.searchsorted(owner_S, np.arange(len(parts)))
    begin_S, whole_P = _by_words(tokenizer, parts, ids, first_P, owner_S, offset_P)
    for number in np.flatnonzero(~whole_P):
        (located,) = tokenizer.locate([paragraphs[number]])
        *others, _ = parts[number]
        ends = [end - part.endswith(' ') for part, end in zip(others, accumulate(map(len, others)), strict=True)]
        begins = offset_P[number] + np.searchsorted(located.spans_Tx2[:, 0], ends)
        begin_S[first_P[number] + 1 : first_P[number] + len(parts[number])] = begins
    begin_S[first_P] = offset_P[:-1]
    lengths_S = np.diff(begin_S, append=offset_P[-1])
    kept_S = lengths_S > 0
    return Encoded(ids, lengths_S[kept_S], np.bincount(owner_S[kept_S], minlength=len(parts)))


def _by_words(
    tokenizer: Tokenizer,
    parts: Sequence[Sequence[str]],
    ids: Sequence[np.ndarray],
    first_P: np.ndarray,
    owner_S: np.ndarray,
    offset_P: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The first token of each sentence, by counting words; and of which paragraphs that can be trusted.

    It can where tokens begin as many words as stand between spaces, and all sentences end at one. To locate each token
    takes ten times as long.
    """
    words = np.flatnonzero(tokenizer.starts_word[np.concatenate([np.empty(0, np.int32), *ids])])
    word_P = np.searchsorted(words, offset_P)
    spaces_S = np.array([part.count(' ') for each in parts for part in each], np.int64)
    glued_S = np.array([not part.endswith(' ') for each in parts for part in each], np.int64)
    spaces_P, glued_P = (np.add.reduceat(each_S, first_P) for each_S in (spaces_S, glued_S))
    before_S = np.cumsum(spaces_S) - spaces_S
    word_S = (word_P[:-1] - before_S[first_P])[owner_S] + before_S
    begin_S = np.append(words, 0)[np.minimum(word_S, len(words))]
    return begin_S, (spaces_P + 1 == np.diff(word_P)) & (glued_P == 1)
