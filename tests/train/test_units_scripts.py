"""Units in thirty scripts: exact counts, nested rates, two units cut at most; with spaces between words and without."""

import numpy as np
import pytest

from data import collocation_store, collocations
from data.clean import one_line
from data.prepare import prepare
from data.rows import Rows
from tests.data.corpora import quiet, small_config, write_jsonl
from tests.data.scripts import SCRIPTS, texts
from tests.train import reference_masking as reference
from train.masking import document_ids, mask_rows, maskable
from train.rates import count

pytestmark = [pytest.mark.peers, pytest.mark.slow]
LENGTH, RATES = 64, (0.15, 0.3)


@pytest.mark.parametrize('script', SCRIPTS)
def test_units_are_masked_whole_and_the_count_is_exact(script, tmp_path, monkeypatch):
    for module in (collocations, collocation_store):
        # The texts are short: what a corpus has more than ten times stands in them more than once.
        monkeypatch.setattr(module, 'SEEN_MORE_THAN', 1)
    lines = dict.fromkeys(filter(None, map(one_line, f'{texts()[script]}\n{texts()["LATIN"]}'.splitlines())))
    config = small_config(write_jsonl(tmp_path / 'corpus.jsonl', list(lines)), vocab_size=400, heldout_percent=20.0)
    store = collocation_store.with_collocations(prepare(config, tmp_path / 'store', log=quiet), log=quiet)
    vocabulary = store.tokenizer.vocabulary
    rows = Rows(store.train, LENGTH, vocabulary)
    numbers_N = np.arange(len(rows), dtype=np.int32)
    tokens_NxL, joins_NxL = rows.gather(numbers_N), rows.joins(numbers_N)
    ids_NxL = document_ids(tokens_NxL, vocabulary)
    free_NxL = np.asarray(maskable(tokens_NxL, ids_NxL, vocabulary))
    # No unit reaches over the edge of a row or document.
    fresh_NxL = ~free_NxL | ~np.pad(free_NxL[:, :-1], [(0, 0), (1, 0)])
    words_NxL = store.tokenizer.starts_word[tokens_NxL] | fresh_NxL
    collocations_NxL = words_NxL & (~joins_NxL | fresh_NxL)
    assert (words_NxL & ~collocations_NxL).any()
    begins = {'word': words_NxL, 'span': words_NxL, 'collocation': collocations_NxL}
    for unit, begins_NxL in begins.items():
        few_NxL = np.zeros_like(free_NxL)
        for rate in RATES:
            settings = reference.settings(rate, rule=(1.0, 0.0, 0.0), unit=unit)
            noise = (numbers_N, numbers_N * 0)
            masked = mask_rows(
                tokens_NxL, ids_NxL, *noise, settings, vocabulary, LENGTH, 1, {unit}, joins_BxL=joins_NxL
            )
            found_NxL = np.asarray(masked.inputs_BxL) != tokens_NxL
            np.testing.assert_array_equal(found_NxL.sum(1), count(round(rate * 100_000), free_NxL.sum(1)))
            assert not (found_NxL & ~free_NxL).any() and not (few_NxL & ~found_NxL).any()
            few_NxL = found_NxL
            for begins_L, found_L in zip(begins_NxL, found_NxL, strict=True):
                units = np.split(found_L, np.flatnonzero(begins_L)[1:])
                assert sum(0 < part.mean() < 1 for part in units if len(part)) <= 2
