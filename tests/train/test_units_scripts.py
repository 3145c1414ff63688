"""Units in thirty scripts: exact counts, and two words cut at most, whether a script has spaces or not."""

import numpy as np
import pytest

from data.clean import one_line
from data.prepare import prepare
from data.rows import Rows
from tests.data.corpora import quiet, small_config, write_jsonl
from tests.data.scripts import SCRIPTS, texts
from tests.train import reference_masking as reference
from train.masking import document_ids, mask_rows, maskable
from train.rates import count

pytestmark = [pytest.mark.peers, pytest.mark.slow]
LENGTH, RATE = 64, 0.3


@pytest.mark.parametrize('script', SCRIPTS)
def test_words_are_masked_whole_and_the_count_is_exact(script, tmp_path):
    lines = dict.fromkeys(filter(None, map(one_line, f'{texts()[script]}\n{texts()["LATIN"]}'.splitlines())))
    config = small_config(write_jsonl(tmp_path / 'corpus.jsonl', list(lines)), vocab_size=400, heldout_percent=20.0)
    store = prepare(config, tmp_path / 'store', log=quiet)
    vocabulary = store.tokenizer.vocabulary
    rows = Rows(store.train, LENGTH, vocabulary)
    tokens_NxL, numbers_N = rows.gather(np.arange(len(rows))), np.arange(len(rows), dtype=np.int32)
    ids_NxL = document_ids(tokens_NxL, vocabulary)
    free_NxL = np.asarray(maskable(tokens_NxL, ids_NxL, vocabulary))
    for unit in ('word', 'span'):
        settings = reference.settings(RATE, rule=(1.0, 0.0, 0.0), unit=unit)
        masked = mask_rows(
            tokens_NxL, ids_NxL, numbers_N, numbers_N * 0, settings, vocabulary, LENGTH, copies=1, units={unit}
        )
        found_NxL = np.asarray(masked.inputs_BxL) != tokens_NxL
        np.testing.assert_array_equal(found_NxL.sum(1), count(round(RATE * 100_000), free_NxL.sum(1)))
        assert not (found_NxL & ~free_NxL).any()
        for tokens_L, free_L, found_L in zip(tokens_NxL, free_NxL, found_NxL, strict=True):
            begins_L = store.tokenizer.starts_word[tokens_L] | ~free_L | ~np.pad(free_L[:-1], (1, 0))
            words = np.split(found_L, np.flatnonzero(begins_L)[1:])
            assert sum(0 < word.mean() < 1 for word in words if len(word)) <= 2
