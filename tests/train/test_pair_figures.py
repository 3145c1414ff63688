"""Accuracy on held-out pairs against a plain loop, and what it takes."""

import jax
import numpy as np
import pytest

from data.pair_rows import PairRows
from model import mlm
from tests.data.sentence_case import split_of_sentences
from tests.train import pairs_case
from tests.train.heldout_case import one_device, stacked, store_of
from tests.train.step_case import VOCABULARY, cohort
from train.fixed_masks import SEED
from train.masking import pair_ids
from train.objectives.mlm_with_pairs import encoder, judge
from train.pair_figures import pair_figures
from train.step import init_params

HELDOUT = split_of_sentences(np.random.default_rng(5).integers(1, 14, (12, 9)).tolist())


def figures(params, heldout=HELDOUT):
    group = cohort({'a': pairs_case.config()}, seeds=tuple(range(len(params))))
    return pair_figures(store_of(heldout), group, stacked(*params), pairs_case.LENGTH, one_device(), 0, 9)


def params(seed: int, scale: float = 20.0):
    drawn = init_params(jax.random.key(seed), pairs_case.config())
    return jax.tree.map(lambda leaf: leaf * scale, drawn)


def test_against_a_plain_loop():
    drawn = [params(0), params(1)]
    found, remarks = figures(drawn)
    assert not remarks and {(f['metric'], f['seed']) for f in found} == {
        (metric, seed) for metric in ('nsp_accuracy', 'sop_accuracy') for seed in (0, 1)
    }
    assert 50.0 not in {figure['value'] for figure in found}  # which any one answer to all would have
    model = pairs_case.config().model
    for figure in found:
        second = {'nsp_accuracy': 'random', 'sop_accuracy': 'swapped'}[figure['metric']]
        rows = PairRows(HELDOUT, pairs_case.LENGTH, VOCABULARY, False, second, whole=True)
        right = []
        for exchanged in (False, True):
            cut = rows.cut(SEED, 0, np.arange(len(rows)), exchanged)
            documents, types = pair_ids(cut.tokens, VOCABULARY)
            own = drawn[figure['seed']]
            states = mlm.encode(encoder(own), model, cut.tokens, documents, types)
            right += (np.asarray(judge(own, model, states[:, :1])).argmax(1) == int(exchanged)).tolist()
        assert figure['value'] == pytest.approx(100 * np.mean(right))


def test_one_answer_to_all_is_right_half_of_the_time():
    always = params(0)
    always['pair']['output']['bias'] = always['pair']['output']['bias'] + np.array([1e3, 0], np.float32)
    assert {figure['value'] for figure in figures([always])[0]} == {50.0}


def test_held_out_text_of_one_document_has_no_random_pairs():
    found, remarks = figures([params(0)], split_of_sentences([[4, 5, 6, 7]]))
    assert [figure['metric'] for figure in found] == ['sop_accuracy']
    assert remarks[0].startswith('no nsp accuracy: the held-out text has no such pairs (next-sentence')
