"""Where each token stands in the text as it was given, before any cleaning."""

import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from data.clean import clean, one_line

_CHANGED = ('Cc', 'Cs', 'Zl', 'Zp')
"""Categories that `clean` changes letter by letter: controls, surrogates, separators of lines."""


class Located(NamedTuple):
    """A text's tokens with their places in it."""

    ids: np.ndarray
    """int32 [T]."""
    spans_Tx2: np.ndarray
    """int32: token t is text[begin:end], in code points and without white space; empty where a token is a space."""


def located(text: str, encode: Callable[[str], tuple[Sequence[int], Sequence[tuple[int, int]]]]) -> Located:
    """Tokens of a text. `encode` gives the ids of a line and each one's (begin, end) in that line."""
    line, places_Cx2 = aligned(text)
    ids, in_line = encode(line)
    spans_Tx2 = np.zeros((len(ids), 2), np.int32)
    for span, (begin, end) in zip(spans_Tx2, in_line, strict=True):
        while begin < end and line[begin] == ' ':
            begin += 1
        while begin < end and line[end - 1] == ' ':
            end -= 1
        if begin < end:
            span[:] = places_Cx2[begin, 0], places_Cx2[end - 1, 1]
        else:
            span[:] = places_Cx2[begin, 0] if begin < len(line) else places_Cx2[-1, 1] if line else 0
    return Located(np.array(ids, np.int32), spans_Tx2)


def aligned(text: str) -> tuple[str, np.ndarray]:
    """`one_line(text)`, and for each of its C letters the [begin, end) in `text` that it came from, int32 [C, 2].

    A space stands for the white space that it replaces. Where letters were composed (NFC), each letter that came of
    them spans them all.
    """
    line = one_line(text)
    if line == text:
        places_C = np.arange(len(text), dtype=np.int32)
        return line, np.stack([places_C, places_C + 1], axis=1)
    letters, places = [], []
    for word in _words(text):
        if letters and word:
            letters.append(' ')
            places.append((places[-1][1], word[0][1]))
        for letter, begin, end in _normalized(word):
            letters.append(letter)
            places.append((begin, end))
    return ''.join(letters), np.array(places, np.int32).reshape(-1, 2)


_Letter = tuple[str, int, int]


def _words(text: str) -> list[list[_Letter]]:
    """What stands between white space after all of `clean` but NFC, letter by letter, each with its place."""
    words: list[list[_Letter]] = [[]]
    for place, letter in enumerate(text):
        if unicodedata.category(letter) in _CHANGED or letter == '\ufeff':
            letter = clean(letter).text
        if letter.isspace():
            words.append([])
        elif letter:
            words[-1].append((letter, place, place + 1))
    return [word for word in words if word]


def _normalized(word: list[_Letter]) -> list[_Letter]:
    """NFC of a word, a stretch at a time: the shortest that compose on their own as they do together."""
    whole = ''.join(letter for letter, _, _ in word)
    if unicodedata.is_normalized('NFC', whole):
        return word
    stretches: list[list[_Letter]] = []
    for letter in word:
        stretches.append([letter])
        # Not marks alone: Hangul jamo and vowel signs of Indic scripts compose too.
        while len(stretches) > 1 and (
            _composed(stretches[-2] + stretches[-1]) != _composed(stretches[-2]) + _composed(stretches[-1])
        ):
            stretches[-2:] = [stretches[-2] + stretches[-1]]
    if ''.join(map(_composed, stretches)) != unicodedata.normalize('NFC', whole):
        stretches = [word]
    return [(letter, stretch[0][1], stretch[-1][2]) for stretch in stretches for letter in _composed(stretch)]


def _composed(stretch: list[_Letter]) -> str:
    return unicodedata.normalize('NFC', ''.join(letter for letter, _, _ in stretch))
