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
# What else Python's str.split() takes for white space, in a cleaned text.
_WIDE = re.compile('[\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]')
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
    return _squeezed(_narrow(clean(text).text).replace('\n', ' '))


def paragraphs(text: str) -> list[str]:
    """Paragraphs of a cleaned text, each one line; those without a visible character are left out.

    Blocks between blank lines, where the text has any; otherwise its lines.
    """
    lines = list(map(_squeezed, _narrow(text).split('\n')))
    blocks, start = [], 0
    for stop in [*(number for number, line in enumerate(lines) if not line), len(lines)]:
        if stop > start:
            blocks.append(lines[start:stop])
        start = stop + 1
    found = [' '.join(block) for block in blocks] if len(blocks) > 1 else blocks[0] if blocks else []
    return [paragraph for paragraph in found if _visible(paragraph)]


def _narrow(text: str) -> str:
    """A cleaned text in which all white space but line ends is plain spaces."""
    return text if text.isascii() else _WIDE.sub(' ', text)


def _squeezed(line: str) -> str:
    """A line with every run of spaces as one."""
    return ' '.join(line.split()) if '  ' in line else line.strip(' ')  # the quick way is nearly always open


def _visible(text: str) -> bool:
    return text[:1].isalnum() or any(unicodedata.category(letter) not in _INVISIBLE for letter in text)
