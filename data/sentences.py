"""Where sentences end, by the rules of sentencex (about 300 languages, no model), and their tokens."""

from collections.abc import Iterator, Sequence

import numpy as np
import sentencex

from data.tokenizer import Tokenizer


def sentences(paragraph: str, language: str) -> list[str]:
    """The sentences of one line, each with the space that follows it; joined they are the line.

    Args:
      language: ISO 639 code. One that the library does not know is split as the nearest that it does, or as English.
    """
    return sentencex.segment(language, paragraph)


def encode_sentences(
    tokenizer: Tokenizer, paragraphs: Sequence[str], language: str
) -> Iterator[tuple[np.ndarray, list[int]]]:
    """Tokens of each paragraph, int32, and how many of them each of its sentences has.

    A token that reaches over the end of a sentence, where no space stands, belongs to it. Sentences without a token are
    left out.
    """
    for ids_T, counts in tokenizer.encode_parts([sentences(paragraph, language) for paragraph in paragraphs]):
        yield ids_T, [count for count in counts if count]
