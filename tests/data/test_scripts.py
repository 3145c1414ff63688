"""Thirty scripts: what is prepared decodes to what was written, with no unknown piece and no document lost."""

from collections import Counter

import numpy as np
import pytest

from data.clean import one_line
from data.prepare import prepare
from tests.data.corpora import quiet, small_config, write_jsonl
from tests.data.scripts import SCRIPTS, texts

pytestmark = [pytest.mark.peers, pytest.mark.slow]


@pytest.mark.parametrize('tokenizer', ['unigram', 'bpe'])
@pytest.mark.parametrize('script', SCRIPTS)
def test_what_is_prepared_decodes_to_what_was_written(script, tokenizer, tmp_path):
    lines = [*filter(None, map(one_line, texts()[script].splitlines()))]
    # Beside a longer text: some of these are too short to train a tokenizer on.
    lines += filter(None, map(one_line, texts()['LATIN'].splitlines()))
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


def test_no_script_is_left_out():
    assert set(texts()) == set(SCRIPTS)
