"""One text for each of 32 scripts."""

import functools
import gzip
import json
import unicodedata
from collections import Counter
from pathlib import Path

UDHR = Path(__file__).resolve().parents[3] / 'shared' / 'data' / 'odd' / 'udhr.jsonl.gz'
SCRIPTS = [
    'ARABIC', 'ARMENIAN', 'BENGALI', 'CANADIAN', 'CHEROKEE', 'CJK', 'CYRILLIC', 'DEVANAGARI', 'ETHIOPIC', 'GEORGIAN',
    'GREEK', 'GUJARATI', 'GURMUKHI', 'HANGUL', 'HEBREW', 'HIRAGANA', 'KANNADA', 'KHMER', 'LAO', 'LATIN', 'MALAYALAM',
    'MONGOLIAN', 'MYANMAR', 'SYRIAC', 'TAGALOG', 'TAMIL', 'THAANA', 'THAI', 'TIBETAN', 'TIFINAGH', 'VAI', 'YI',
]  # fmt: skip
"""As the first word of their letters' Unicode names."""


@functools.cache
def texts() -> dict[str, str]:
    """One declaration of human rights for each script."""
    found: dict[str, str] = {}
    with gzip.open(UDHR, 'rt', encoding='utf-8') as lines:
        for line in lines:
            text = json.loads(line)['text']
            names = Counter(unicodedata.name(letter, '?').split()[0] for letter in text if letter.isalpha())
            if names:
                found.setdefault(names.most_common(1)[0][0], text)
    return found
