"""Thirty scripts: what is prepared decodes to what was written, with no unknown piece and no document lost."""

import gzip
import json
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from data.clean import one_line
from data.prepare import prepare
from tests.data.corpora import quiet, small_config, write_jsonl

UDHR = Path(__file__).resolve().parents[3] / 'shared' / 'data' / 'odd' / 'udhr.jsonl.gz'
SCRIPTS = [
    'ARABIC', 'ARMENIAN', 'BENGALI', 'CANADIAN', 'CHEROKEE', 'CJK', 'CYRILLIC', 'DEVANAGARI', 'ETHIOPIC', 'GEORGIAN',
    'GREEK', 'GUJARATI', 'GURMUKHI', 'HANGUL', 'HEBREW', 'HIRAGANA', 'KANNADA', 'KHMER', 'LAO', 'LATIN', 'MALAYALAM',
    'MONGOLIAN', 'MYANMAR', 'SYRIAC', 'TAGALOG', 'TAMIL', 'THAANA', 'THAI', 'TIBETAN', 'TIFINAGH', 'VAI', 'YI',
]  # fmt: skip
"""As the first word of their letters' Unicode names."""

pytestmark = [pytest.mark.peers, pytest.mark.slow]


@pytest.fixture(scope='module')
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


@pytest.mark.parametrize('tokenizer', ['unigram', 'bpe'])
@pytest.mark.parametrize('script', SCRIPTS)
def test_what_is_prepared_decodes_to_what_was_written(script, tokenizer, texts, tmp_path):
    lines = [*filter(None, map(one_line, texts[script].splitlines()))]
    # Beside a longer text: some of these are too short to train a tokenizer on.
    lines += filter(None, map(one_line, texts['LATIN'].splitlines()))
    lines = list(dict.fromkeys(lines))
    corpus = write_jsonl(tmp_path / 'corpus.jsonl', lines)
    config = small_config(corpus, tokenizer=tokenizer, vocab_size=400, heldout_percent=20.0)
    store = prepare(config, tmp_path / 'store', log=quiet)
    vocabulary, decoded = store.tokenizer.vocabulary, []
    for split in (store.train, store.heldout):
        tokens = np.asarray(split.tokens)
        assert not np.isin(tokens, [vocabulary.unk, vocabulary.pad, vocabulary.cls, vocabulary.mask]).any()
        for start, end in zip(split.document_offsets[:-1], split.document_offsets[1:], strict=True):
            decoded.append(store.tokenizer.decode(tokens[start:end][tokens[start:end] != vocabulary.sep]))
    assert Counter(map(one_line, decoded)) == Counter(lines)


def test_no_script_is_left_out(texts):
    assert set(texts) == set(SCRIPTS)
