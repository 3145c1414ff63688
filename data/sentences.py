"""Where sentences end, by the rules of sentencex (about 300 languages, no model), and their tokens."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np
import sentencex

from data.tokenizer import Tokenizer


def sentences(paragraph: str, language: str) -> list[str]:
    """The sentences of one line, each with the space that follows it; joined they are the line.

    Args:
      language: ISO 639 code. One that the library does not know is split as the nearest that it does, or as English.
    """
    return sentencex.segment(language, paragraph)


def encode_sentences(tokenizer: Tokenizer, paragraphs: Sequence[str], language: str) -> list[list[np.ndarray]]:
    """Tokens of each sentence of each paragraph, int32; joined they are those of the paragraph as a whole.

    A token that reaches over the end of a sentence, where no space stands, belongs to it. Sentences without a token are
    left out.
    """
    stretches = [list(_stretches(sentences(paragraph, language))) for paragraph in paragraphs]
    # No piece reaches over a space, so that what stands between spaces can be encoded alone.
    lines = [''.join(stretch).strip(' ') for found in stretches for stretch in found]
    ids = iter(zip(lines, tokenizer.encode_lines(lines), strict=True))
    return [[each for stretch in found for each in _cut(tokenizer, stretch, *next(ids))] for found in stretches]


def _stretches(parts: Sequence[str]) -> Iterator[list[str]]:
    """Sentences that stand side by side without a space between them, as in Chinese; elsewhere one at a time."""
    stretch: list[str] = []
    for part in parts:
        stretch.append(part)
        if part.endswith(' '):
            yield stretch
            stretch = []
    if stretch:
        yield stretch


def _cut(tokenizer: Tokenizer, stretch: list[str], line: str, ids: np.ndarray) -> list[np.ndarray]:
    """The tokens of each sentence of a stretch, which are `ids` together."""
    if len(stretch) > 1:
        (located,) = tokenizer.locate([line])
        starts = list(accumulate(map(len, stretch[:-1])))
        found = np.split(located.ids, np.searchsorted(located.spans_Tx2[:, 0], starts))
    else:
        found = [ids]
    return [each for each in found if len(each)]
