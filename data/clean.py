"""Text as every part of Cloze sees it: NFC, no control characters, one kind of line end."""

import re
import unicodedata
from typing import NamedTuple

# Controls and separators that stand between words become a space; Python's str.split() agrees on all of them.
_SPACES = re.compile('[\t\x0b\x0c\x1c-\x1f\x85\u2028\u2029]')
# All other C0 and C1 controls, and the byte order mark wherever it stands (inside a text it is an old ZWNBSP).
_CONTROLS = re.compile('[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufeff]')
_SURROGATES = re.compile('[\ud800-\udfff]')
_INVISIBLE = {'Cc', 'Cf', 'Zs', 'Zl', 'Zp'}


class Cleaned(NamedTuple):
    """A text, and what was taken from it."""

    text: str
    controls: int
    """Control characters removed."""
    surrogates: int
    """Lone surrogates (half a character, from a JSON escape) replaced by U+FFFD."""


def clean(text: str) -> Cleaned:
    """NFC, CRLF and CR to LF, control characters out, U+2028, U+2029, U+0085 and tabs to a space."""
    if '\r' in text:
        text = text.replace('\r\n', '\n').replace('\r', '\n')
    text = _SPACES.sub(' ', text)
    text, controls = _CONTROLS.subn('', text)
    surrogates = 0
    if not text.isascii():
        text, surrogates = _SURROGATES.subn('\ufffd', text)
        text = unicodedata.normalize('NFC', text)
    return Cleaned(text, controls, surrogates)


def one_line(text: str) -> str:
    """The cleaned text with every run of white space as one space: what tokenizers read."""
    return ' '.join(clean(text).text.split())


def paragraphs(text: str) -> list[str]:
    """Paragraphs of a cleaned text, each one line; those without a visible character are left out.

    Blocks between blank lines, where the text has any; otherwise its lines.
    """
    blocks: list[list[str]] = [[]]
    for line in text.split('\n'):
        line = ' '.join(line.split())
        if line:
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    blocks = [block for block in blocks if block]
    found = [' '.join(block) for block in blocks] if len(blocks) > 1 else blocks[0] if blocks else []
    return [paragraph for paragraph in found if _visible(paragraph)]


def _visible(text: str) -> bool:
    return any(unicodedata.category(letter) not in _INVISIBLE for letter in text)
