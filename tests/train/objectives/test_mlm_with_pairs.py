"""NSP and SOP beside MLM: both terms by a plain loop, who learns from which, and whole updates."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model import mlm
from tests.train import pairs_case
from tests.train.objectives.objective_case import config, gradients, inputs, loss, params
from tests.train.objectives.test_electra import learnt, moved
from tests.train.step_case import SIZE, VOCABULARY, cohort, trained
from train.config import Config
from train.masking import pair_ids
from train.objectives.config import ObjectiveConfig
from train.objectives.table import objective_of

RUN = config('mlm_nsp', rows='segment_pairs')


def test_both_terms_by_a_plain_loop():
    weights, rows = params(RUN), inputs(RUN)
    masked = rows.masked
    encoder = objective_of(RUN).encoder(weights)
    assert set(encoder) == set(mlm.shapes(RUN.model))
    states = mlm.encode(encoder, RUN.model, masked.inputs_BxL, rows.document_ids_BxL, rows.type_ids_BxL)
    logits = np.asarray(mlm.predict(encoder, RUN.model, states), np.float64)[..., :SIZE]
    of_tokens = [
        np.logaddexp.reduce(logits[b, masked.positions_BxM[b, m]])
        - logits[b, masked.positions_BxM[b, m], masked.labels_BxM[b, m]]
        for b, m in zip(*np.nonzero(masked.weights_BxM), strict=True)
    ]
    pooled = np.tanh(np.asarray(states)[:, 0] @ weights['pair']['pooler']['dense']['kernel'] + 0.1)
    judged = np.asarray(pooled @ weights['pair']['output']['kernel'] + 0.1, np.float64)
    labels = np.asarray(rows.pair_labels_B)
    of_pairs = np.logaddexp.reduce(judged, axis=1) - judged[np.arange(len(labels)), labels]
    sums, metrics = loss(weights, RUN, rows)
    np.testing.assert_allclose(sums['mlm'], np.sum(of_tokens), rtol=1e-5)
    np.testing.assert_allclose(sums['pair'], np.sum(of_pairs), rtol=1e-5)
    assert metrics['pair_accuracy'] == (np.sum(judged.argmax(1) == labels), 8) and 0 < labels.sum() < 8
    assert metrics['mlm_loss'] == (sums['mlm'], len(of_tokens))
    assert objective_of(RUN).weights(RUN, rows) == {'mlm': len(of_tokens), 'pair': 8}


def test_every_parameter_learns_from_what_it_serves():
    weights, rows = params(RUN), inputs(RUN)
    paths = learnt(weights)
    heads = {name: {path for path in paths if path.startswith(f'{name}/')} for name in ('head', 'pair')}
    found = gradients(weights, RUN, rows)
    assert moved(found['pair']) == paths - heads['head']
    assert moved(found['mlm']) == paths - heads['pair']


def test_a_pair_is_one_document_of_two_types():
    tokens = jnp.array([[2, 9, 9, 3, 8, 8, 3, 0], [2, 9, 3, 8, 3, 0, 0, 0]])
    documents, types = pair_ids(tokens, VOCABULARY)
    assert documents.tolist() == [[1] * 7 + [0], [1] * 5 + [0] * 3]
    assert types.tolist() == [[0] * 4 + [1] * 3 + [0], [0] * 3 + [1] * 2 + [0] * 3]


@pytest.mark.parametrize('name', ['mlm', 'electra', 'replace_mlm', 'all_tokens_mlm'])
def test_other_objectives_read_the_types_of_pairs(name):
    run = config(name)
    paired = dataclasses.replace(run, objective=dataclasses.replace(run.objective, rows='sentence_pairs'))
    weights, rows = params(paired), inputs(paired)
    found = gradients(weights, paired, rows)
    for term in objective_of(run).weights(run, rows):
        # The generator and the model read one table here.
        assert np.abs(found[term]['embeddings']['type']['embedding'][1]).max() > 1e-6
    assert inputs(run).type_ids_BxL is None


def test_updates_on_pairs_are_the_same_in_parts_and_mask_no_special():
    """By collocations, which need all that a row carries."""
    changes = dict(masking=dataclasses.replace(pairs_case.config().masking, unit='collocation'))
    results = []
    for parts in (1, 4):
        optimizer = dataclasses.replace(pairs_case.config().optimizer, micro_batches=parts)
        group = cohort({'a': pairs_case.config(**changes, optimizer=optimizer)}, seeds=(0, 1))
        results.append(trained(group, 2, lambda _, step, group=group: pairs_case.batch(group, step)))
    (whole, metrics), (cut, _) = results
    for a, b in zip(jax.tree.leaves(whole.params), jax.tree.leaves(cut.params), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5)
    pairs = metrics[0].pairs
    assert {'loss', 'mlm_loss', 'pair_loss', 'pair_accuracy'} <= set(pairs)
    total = sum(pairs[name][0] / pairs[name][1] for name in ('mlm_loss', 'pair_loss'))
    np.testing.assert_allclose(pairs['loss'][0], total, rtol=1e-5)
    batch = pairs_case.batch(group, 0)
    maskable = np.sum(batch.tokens_SxBxL > 4, axis=-1)
    assert metrics[0].targets.tolist() == np.sum((maskable * 3 + 5) // 10, axis=1).tolist()  # 30%, ties up


@pytest.mark.parametrize(
    ('fields', 'said'),
    [
        (dict(name='mlm_nsp'), 'objective.name mlm_nsp judges pairs: set objective.rows to segment_pairs'),
        (dict(name='mlm_sop', rows='doc_sentences'), 'or sentence_pairs, not doc_sentences'),
    ],
)
def test_pairs_are_judged_where_there_are_pairs(fields, said):
    with pytest.raises(ValueError, match=said):
        ObjectiveConfig(**fields)


def test_pairs_need_two_types():
    model = dataclasses.replace(RUN.model, type_vocab_size=1)
    with pytest.raises(ValueError, match='objective.rows sentence_pairs tells two segments apart by type'):
        Config(model=model, objective=ObjectiveConfig(rows='sentence_pairs'), stages=RUN.stages)
