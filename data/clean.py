"""Text as every part of Cloze sees it: NFC, no control characters, one kind of line end."""

import re
import unicodedata
from typing import NamedTuple

# Controls and separators that stand between words become a space; Python's str.split() agrees on all of them.
_SPACES = re.compile('[\t\x0b\x0c\x1c-\x1f\x85\u2028\u2029]')
# All other C0 and C1 controls, and the byte order mark wherever it stands (inside a text it is an old ZWNBSP).
_CONTROLS = re.compile('[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufeff]')
_SURROGATES = re.compile('[\ud800-\udfff]')
_ODD = re.compile(f'{_SPACES.pattern}|{_CONTROLS.pattern}|{_SURROGATES.pattern}')
# The same for ASCII, which is most text, at a fifth of the time.
_ASCII = bytes(range(128)).decode()
_TABLE = bytes(ord(' ') if _SPACES.match(letter) else ord(letter) for letter in _ASCII) + bytes(range(128, 256))
_DELETED = ''.join(_CONTROLS.findall(_ASCII)).encode()
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
    if text.isascii():
        content = text.encode()
        cleaned = content.translate(_TABLE, _DELETED)
        return Cleaned(text if cleaned == content else cleaned.decode(), len(content) - len(cleaned), 0)
    controls = surrogates = 0
    if _ODD.search(text):
        text = _SPACES.sub(' ', text)
        text, controls = _CONTROLS.subn('', text)
        text, surrogates = _SURROGATES.subn('\ufffd', text)
    return Cleaned(unicodedata.normalize('NFC', text), controls, surrogates)


def one_line(text: str) -> str:
    """The cleaned text with every run of white space as one space: what tokenizers read."""
    text = clean(text).text
    return ' '.join(text.split()) if '\n' in text else _squeezed(text)


def paragraphs(text: str) -> list[str]:
    """Paragraphs of a cleaned text, each one line; those without a visible character are left out.

    Blocks between blank lines, where the text has any; otherwise its lines.
    """
    blocks: list[list[str]] = [[]]
    for line in text.split('\n'):
        line = _squeezed(line)
        if line:
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    blocks = [block for block in blocks if block]
    found = [' '.join(block) for block in blocks] if len(blocks) > 1 else blocks[0] if blocks else []
    return [paragraph for paragraph in found if _visible(paragraph)]


def _squeezed(line: str) -> str:
    """A line with every run of white space as one space."""
    if line.isascii() and line.isprintable() and '  ' not in line:  # nothing to be done, in a fifth of the time
        return line.strip(' ')
    return ' '.join(line.split())


def _visible(text: str) -> bool:
    return any(unicodedata.category(letter) not in _INVISIBLE for letter in text)
