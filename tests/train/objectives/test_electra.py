"""ELECTRA's terms: which parameter gets a gradient from which, what is shared, and the loss by a plain loop."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model import electra, mlm
from model.config import SIZES, GeneratorConfig, ModelConfig, generator_model
from tests.train.objectives.objective_case import SHARES, config, gradients, inputs, loss, params
from tests.train.step_case import SIZE, VOCABULARY, cohort, trained
from tests.train.step_case import rows as rows_of
from train.flops import FORWARD
from train.objectives import generation
from train.objectives.config import ObjectiveConfig
from train.objectives.sampling import gumbel, slot_seeds
from train.objectives.table import OBJECTIVES, objective_of


def by_path(tree) -> dict[str, np.ndarray]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {'/'.join(entry.key for entry in path): np.asarray(leaf) for path, leaf in leaves}


def moved(tree) -> set[str]:
    """Leaves with a gradient; a key's bias has none but rounding, since a softmax does not see it."""
    return {path for path, leaf in by_path(tree).items() if np.abs(leaf).max() > 1e-6 and 'key/bias' not in path}


def learnt(tree) -> set[str]:
    return {path for path in by_path(tree) if 'key/bias' not in path}


SHARED = {
    'embeddings': {'embeddings/token/embedding', 'embeddings/type/embedding', 'embeddings/position/embedding',
                   'embeddings/norm/scale', 'embeddings/norm/bias'},
    'token': {'embeddings/token/embedding'},
    'disentangled': set(),
    'none': set(),
}  # fmt: skip


@pytest.mark.parametrize('share', SHARED)
def test_detection_sends_the_generator_no_gradient_but_through_what_is_shared(share):
    run = config(share=share)
    weights = params(run)
    paths = learnt(weights)
    own = {path for path in paths if path.startswith('generator/')}
    if share == 'disentangled':  # the generator's table, at the encoder's place
        own |= {'embeddings/token/embedding'}
    found = gradients(weights, run, inputs(run))
    of_generator, of_detection = moved(found['generator']), moved(found['detection'])
    assert of_detection == paths - own, 'every parameter of the discriminator learns, and none of the generator alone'
    assert of_generator == own | SHARED[share]


def test_a_shared_encoder_learns_from_both():
    run = config(share='weights')
    weights = params(run)
    assert [path for path in by_path(weights) if path.startswith('generator/')] == [
        'generator/head/bias', 'generator/head/dense/bias', 'generator/head/dense/kernel', 'generator/head/norm/bias',
        'generator/head/norm/scale',
    ]  # fmt: skip
    encoder = {path for path in learnt(weights) if path.startswith(('embeddings/', 'layers/'))}
    found = gradients(weights, run, inputs(run))
    assert encoder <= moved(found['generator']) and encoder <= moved(found['detection'])


@pytest.mark.parametrize('share', ['embeddings', 'token'])
def test_the_shared_table_is_one_leaf_with_the_sum_of_both_gradients(share):
    run = config(share=share)
    weights = params(run)
    vocabulary = [path for path, leaf in by_path(weights).items() if leaf.ndim == 2 and leaf.shape[0] == 128]
    assert vocabulary == ['embeddings/token/embedding']
    found = gradients(weights, run, inputs(run))
    whole, *parts = (found[term]['embeddings']['token']['embedding'] for term in ('all', 'generator', 'detection'))
    np.testing.assert_allclose(whole, sum(parts), rtol=1e-4, atol=1e-5)
    # The generator's view of it is the leaf itself.
    view = electra.generator(weights, SHARES[share])
    assert view['embeddings']['token']['embedding'] is weights['embeddings']['token']['embedding']


def test_the_difference_to_the_generators_table_starts_at_zero():
    start = objective_of(config(share='disentangled'))
    weights = params(config(share='disentangled'), scale=1.0)
    token = weights['embeddings']['token']
    assert not token['delta'].any()
    np.testing.assert_array_equal(start.encoder(weights)['embeddings']['token']['embedding'], token['embedding'])
    # Arms that share otherwise start from the same table.
    for share in ('embeddings', 'token', 'none'):
        other = params(config(share=share), scale=1.0)['embeddings']['token']['embedding']
        np.testing.assert_array_equal(other, token['embedding'])
    state, _ = trained(cohort({'a': config(share='disentangled')}), 1)
    assert np.abs(state.params['embeddings']['token']['delta']).max() > 0
    assert set(state.params['generator']['embeddings']) == {'position', 'type', 'norm'}


def test_terms_are_those_of_a_plain_loop():
    run = config()
    weights, rows = params(run), inputs(run)
    masked = rows.masked
    generator, model = (
        electra.generator(weights, run.objective.generator),
        generator_model(run.model, run.objective.generator),
    )
    hidden = mlm.encode(generator, model, masked.inputs_BxL, rows.document_ids_BxL)
    noise = np.asarray(gumbel(slot_seeds(rows.noise_Bx3, masked.positions_BxM.shape[1]), 128))
    read, generator_loss, right = np.array(rows.tokens_BxL), 0.0, 0
    for b in range(len(read)):
        for m in np.flatnonzero(masked.weights_BxM[b]):
            at, label = int(masked.positions_BxM[b, m]), int(masked.labels_BxM[b, m])
            logits = np.asarray(mlm.predict(generator, model, hidden[b : b + 1, at : at + 1]), np.float64)[0, 0, :SIZE]
            generator_loss += np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[label]
            right += logits.argmax() == label
            read[b, at] = max(VOCABULARY.ordinary, key=lambda id_: logits[id_] + noise[b, m, id_])
    states = mlm.encode(electra.encoder(weights), run.model, jnp.asarray(read), rows.document_ids_BxL)
    logits = np.asarray(electra.detect(weights, run.model, states), np.float64)
    valid, fake = np.asarray(rows.document_ids_BxL) > 0, read != np.asarray(rows.tokens_BxL)
    detection_loss = sum(
        np.log1p(np.exp(-logits[b, i] if fake[b, i] else logits[b, i]))
        for b in range(len(read)) for i in range(read.shape[1]) if valid[b, i]
    )  # fmt: skip
    sums, metrics = loss(weights, run, rows)
    np.testing.assert_allclose(sums['generator'], generator_loss, rtol=1e-5)
    np.testing.assert_allclose(sums['detection'], 50 * detection_loss, rtol=1e-5)
    called, caught = (logits > 0) & valid, (logits > 0) & valid & fake
    targets = float(masked.weights_BxM.sum())
    expected = {
        'generator_loss': (generator_loss, targets),
        'generator_accuracy': (right, targets),
        'detection_loss': (detection_loss, valid.sum()),
        'detection_accuracy': (((logits > 0) == fake)[valid].sum(), valid.sum()),
        'fake_share': (fake.sum(), valid.sum()),
        'precision': (caught.sum(), called.sum()),
        'recall': (caught.sum(), fake.sum()),
    }
    assert metrics.keys() == expected.keys() | {'auc'}
    for name, pair in expected.items():
        np.testing.assert_allclose(metrics[name], pair, rtol=1e-5, err_msg=name)
    assert 0 < fake.sum() <= targets and fake[valid].sum() == fake.sum()
    weight = objective_of(run).weights(run, rows)
    assert (weight['generator'], weight['detection']) == (targets, valid.sum())


def test_detection_at_the_chosen_tokens_alone_is_a_part_of_it():
    everywhere, chosen = config(), config(detect='chosen')
    weights, rows = params(everywhere), inputs(everywhere)
    sums, metrics = loss(weights, chosen, rows)
    assert float(metrics['detection_loss'][1]) == float(rows.masked.weights_BxM.sum())
    assert metrics['fake_share'][0] == loss(weights, everywhere, rows)[1]['fake_share'][0]
    made = generation.generate(weights, everywhere, VOCABULARY, rows, jax.random.key(1))
    states = mlm.encode(weights, everywhere.model, made.tokens_BxL, rows.document_ids_BxL)
    logits = np.asarray(electra.detect(weights, everywhere.model, states))
    b, m = np.nonzero(np.asarray(rows.masked.weights_BxM))
    at = np.asarray(rows.masked.positions_BxM)[b, m]
    sign = np.where(np.asarray(made.tokens_BxL != rows.tokens_BxL)[b, at], -1, 1)
    np.testing.assert_allclose(sums['detection'], 50 * np.log1p(np.exp(sign * logits[b, at])).sum(), rtol=1e-5)


def test_a_sample_that_is_the_token_that_was_there_is_original():
    """At a temperature near 0 a generator that knows every token replaces none."""
    run = config(temperature=1e-3)
    rows = inputs(run)
    made = generation.placed(rows.masked.labels_BxM, rows.masked, rows.tokens_BxL)
    np.testing.assert_array_equal(made, rows.tokens_BxL)
    never = config(sampler='disallow_correct')
    _, metrics = loss(params(never), never, rows)
    assert metrics['fake_share'][0] == float(rows.masked.weights_BxM.sum())


def test_uniform_replacements_need_no_generator():
    run = config(sampler='uniform')
    weights = params(run)
    assert 'generator' not in weights
    sums, metrics = loss(weights, run, inputs(run))
    assert sums.keys() == {'detection'} and 'generator_loss' not in metrics
    assert objective_of(run).weights(run, inputs(run)).keys() == sums.keys()


@pytest.mark.slow
def test_micro_batches_change_no_gradient():
    whole = config()
    cut = dataclasses.replace(whole, optimizer=dataclasses.replace(whole.optimizer, micro_batches=2))
    (one, one_metrics), (two, two_metrics) = trained(cohort({'a': whole}), 1), trained(cohort({'a': cut}), 1)
    for (path, a), b in zip(by_path(one.opt_state[0].mu).items(), by_path(two.opt_state[0].mu).values(), strict=True):
        assert np.max(np.abs(a - b)) <= 1e-5 * np.max(np.abs(a)) + 1e-9, path
    for metric, pair in one_metrics[0].pairs.items():
        if metric != 'auc':  # of pairs within a micro-batch
            np.testing.assert_allclose(pair, two_metrics[0].pairs[metric], rtol=1e-5, err_msg=metric)


def test_each_objective_declares_what_it_says():
    for name, heads in {
        'mlm': {'head'},
        'electra': {'detection'},
        'replace_mlm': {'head'},
        'all_tokens_mlm': {'head', 'gate'},
    }.items():
        run = config(name)
        weights = params(run)
        generators = {'generator'} if run.objective.has_generator else set()
        assert weights.keys() == {'embeddings', 'layers'} | heads | generators
        view = objective_of(run).encoder(weights)
        assert view.keys() == {'embeddings', 'layers'} | ({'head'} if run.objective.predicts else set())
    assert OBJECTIVES.keys() == FORWARD.keys()


def test_sizes_of_generators_are_those_of_the_paper():
    """Clark et al. 2020, Table 6."""
    wide = {'base': (1 / 3, (256, 4, 1024)), 'large': (0.25, (256, 4, 1024)), 'electra_small': (0.25, (64, 1, 256))}
    for size, (fraction, expected) in wide.items():
        model = ModelConfig(**SIZES[size], vocab_size=30_522)
        made = generator_model(model, GeneratorConfig(width=fraction))
        assert (made.width, made.heads, made.feed_forward) == expected
        assert (made.layers, made.table_width) == (model.layers, model.table_width)


@pytest.mark.parametrize(
    ('make', 'said'),
    [
        (lambda: GeneratorConfig(share='weights'), 'as large as the model'),
        (lambda: GeneratorConfig(width=0.0), 'objective.generator.width is 0.0: use a fraction above 0'),
        (lambda: config(share='embeddings', temperature=0.0), 'objective.temperature is 0.0: use a number above 0'),
        (lambda: ObjectiveConfig(detection_weight=-1.0), 'objective.detection_weight is -1.0'),
        (
            lambda: ObjectiveConfig('electra', generator=GeneratorConfig(width=0.5), sampler='uniform'),
            'uniform has no generator',
        ),
        (
            lambda: dataclasses.replace(
                config(), objective=ObjectiveConfig('electra', generator=GeneratorConfig(width=0.8125))
            ),
            'objective.generator.width 0.8125 of this model: model.width 13 is not a multiple of model.heads 2',
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_clear_line(make, said):
    with pytest.raises(ValueError, match=said) as error:
        make()
    assert '\n' not in str(error.value)


@pytest.mark.slow
def test_both_models_learn():
    """On eight rows again and again: the generator gets tokens right, and the discriminator tells its mistakes."""
    run = config(rate=0.3)
    run = dataclasses.replace(run, optimizer=dataclasses.replace(run.optimizer, learning_rate=1e-2))
    _, metrics = trained(cohort({'a': run}), 30, change=lambda host, step: rows_of((0,), 0))
    means = [{name: float(pair[0][0] / pair[1][0]) for name, pair in each.pairs.items()} for each in metrics]
    assert means[-1]['generator_loss'] < means[0]['generator_loss'] - 0.5
    assert means[-1]['generator_accuracy'] > means[0]['generator_accuracy'] + 0.1
    assert means[-1]['detection_loss'] < means[0]['detection_loss']
    assert np.mean([each['auc'] for each in means[-5:]]) > 0.7
