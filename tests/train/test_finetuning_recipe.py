"""Losses, optimizer, schedule, grids and early stopping of fine-tuning against plain formulas."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from train.finetuning.config import FinetuneConfig
from train.finetuning.early_stopping import Course
from train.finetuning.grids import GRIDS, label, points, structure
from train.finetuning.objectives import task_loss
from train.finetuning.optimizer import distances_from_output, transformation
from train.finetuning.settings import learning_rate

LAYERS = 3


def log_softmax(x):
    return x - np.logaddexp.reduce(x, axis=-1, keepdims=True)


def outputs_of(kind: str, seed: int = 0):
    """Outputs and targets of 4 rows of 6 tokens, the last row only filling the batch, with poison where none count."""
    random = np.random.default_rng(seed)
    documents_BxL = np.array([[1] * 6, [1] * 4 + [0] * 2, [1] * 2 + [0] * 4, [0] * 6], np.int32)
    weights_B = np.array([1, 1, 1, 0], np.float32)
    shape = {'classification': (4, 3), 'regression': (4, 1), 'tagging': (4, 6, 3), 'span': (4, 6, 2)}[kind]
    outputs = random.normal(size=shape).astype(np.float32)
    outputs[3] = np.inf if kind == 'regression' else np.nan
    targets = {
        'classification': np.array([2, 0, 1, 0]),
        'regression': np.array([1.5, -2.0, 0.25, 0.0], np.float32),
        'tagging': np.array([[-1, 0, 2, -1, 1, -1], [-1, 1, -1, -1, -1, -1], [-1] * 6, [-1] * 6]),
        'span': np.array([[2, 4], [0, 0], [1, 1], [0, 0]]),
    }[kind]
    return outputs, targets, weights_B, documents_BxL


def expected_loss(kind, outputs, targets, documents_BxL):
    if kind == 'regression':
        return sum((float(outputs[i, 0]) - float(targets[i])) ** 2 for i in range(3)), 3
    if kind == 'classification':
        return -sum(log_softmax(outputs[i])[targets[i]] for i in range(3)), 3
    if kind == 'tagging':
        places = [(i, j) for i, j in itertools.product(range(4), range(6)) if targets[i, j] >= 0]
        return -sum(log_softmax(outputs[i, j])[targets[i, j]] for i, j in places), len(places)
    total = 0.0
    for i, side in itertools.product(range(3), range(2)):
        total -= log_softmax(outputs[i, documents_BxL[i] > 0, side])[targets[i, side]] / 2
    return total, 3


@pytest.mark.parametrize('kind', ['classification', 'regression', 'tagging', 'span'])
def test_losses_are_sums_over_what_counts(kind):
    outputs, targets, weights_B, documents_BxL = outputs_of(kind)
    loss, weight = task_loss(kind, jnp.asarray(outputs), targets, weights_B, documents_BxL)
    expected, count = expected_loss(kind, outputs, targets, documents_BxL)
    assert weight == count
    assert float(loss) == pytest.approx(expected, rel=1e-5)


def draw(seed: int, pooler: bool):
    random = np.random.default_rng(seed)
    shapes = {
        'encoder': {
            'embeddings': {'token': {'embedding': (5, 4)}, 'norm': {'scale': (4,)}},
            'layers': {'query': {'kernel': (LAYERS, 4, 4), 'bias': (LAYERS, 4)}},
            'shared': {'up': {'kernel': (4, 6), 'bias': (6,)}},
            'final_norm': {'scale': (4,)},
        },
        'head': {'output': {'kernel': (4, 2), 'bias': (2,)}}
        | ({'pooler': {'dense': {'kernel': (4, 4)}}} if pooler else {}),
    }
    return jax.tree.map(
        lambda shape: random.normal(size=shape).astype(np.float32), shapes, is_leaf=lambda x: isinstance(x, tuple)
    )


@pytest.mark.parametrize('pooler', [True, False])
def test_each_layer_is_one_further_from_the_output(pooler):
    far = distances_from_output(draw(0, pooler), LAYERS)
    top = 2 if pooler else 1
    assert far['head']['output'] == {'kernel': 0, 'bias': 0}
    assert not pooler or far['head']['pooler']['dense']['kernel'] == 1
    layers = far['encoder']['layers']['query']
    assert layers['kernel'].shape == (LAYERS, 1, 1) and layers['bias'].shape == (LAYERS, 1)
    assert layers['kernel'].ravel().tolist() == [top + 2, top + 1, top]
    assert far['encoder']['final_norm']['scale'] == top
    assert far['encoder']['shared']['up'] == {'kernel': top, 'bias': top}  # as the last of the layers that share it
    assert set(map(float, jax.tree.leaves(far['encoder']['embeddings']))) == {top + 3}


def test_updates_are_optax_adamw_at_each_layers_own_rate():
    """Bias-corrected AdamW after clipping; decay 0.5 a layer; kernels and embeddings alone decay."""
    config, rate, decay, weight_decay = FinetuneConfig(clip_norm=2.0, beta2=0.99), 0.01, 0.5, 0.1
    params = draw(0, True)
    ours = transformation(config, LAYERS, rate, weight_decay, decay)
    state, found = ours.init(params), params
    for step in range(4):
        updates, state = ours.update(draw(step + 1, True), state, found)
        found = optax.apply_updates(found, updates)
    powers = {
        'head/output': 0,
        'head/pooler': 1,
        'encoder/layers': None,
        'encoder/embeddings': 5,
        'encoder/shared': 2,
        'encoder/final_norm': 2,
    }

    def one(path, leaf):
        names = [entry.key for entry in path]
        power = powers['/'.join(names[:2])]
        is_decayed = names[-1] in ('kernel', 'embedding')
        return (power, is_decayed)

    kinds = jax.tree_util.tree_map_with_path(one, params)
    expected = dict(jax.tree_util.tree_leaves_with_path(params))
    moments = {path: (0.0, 0.0) for path in expected}
    for step in range(4):
        grads = dict(jax.tree_util.tree_leaves_with_path(draw(step + 1, True)))
        norm = np.sqrt(sum(np.sum(np.square(g, dtype=np.float64)) for g in grads.values()))
        for (path, grad), (power, is_decayed) in zip(
            grads.items(), jax.tree.leaves(kinds, is_leaf=lambda x: isinstance(x, tuple)), strict=True
        ):
            grad = grad * min(1, 2.0 / norm)
            m, v = moments[path]
            m, v = 0.9 * m + 0.1 * grad, 0.99 * v + 0.01 * grad**2
            moments[path] = m, v
            update = (m / (1 - 0.9 ** (step + 1))) / (np.sqrt(v / (1 - 0.99 ** (step + 1))) + 1e-6)
            update = update + weight_decay * is_decayed * expected[path]
            if power is None:
                scale = decay ** np.array([4.0, 3.0, 2.0]).reshape((3,) + (1,) * (grad.ndim - 1))
            else:
                scale = decay**power
            expected[path] = expected[path] - rate * scale * update
    for path, leaf in jax.tree_util.tree_leaves_with_path(found):
        np.testing.assert_allclose(leaf, expected[path], atol=2e-6, err_msg=jax.tree_util.keystr(path))


@settings(deadline=None)
@given(st.integers(1, 400), st.floats(0, 1))
def test_the_rate_rises_to_its_peak_and_falls_to_nothing(steps, share):
    config = FinetuneConfig(learning_rate=2e-5, warmup_share=share)
    rates = [learning_rate(config, step, steps) for step in range(steps)]
    assert min(rates) > 0 and max(rates) <= 2e-5
    peak = int(np.argmax(rates))
    assert rates[:peak] == sorted(rates[:peak]) and rates[peak:] == sorted(rates[peak:], reverse=True)
    if 2 <= round(share * steps) <= steps - 2:
        assert peak == round(share * steps) - 1 and max(rates) == 2e-5
        assert rates[0] == pytest.approx(2e-5 / round(share * steps))
        assert rates[-1] == pytest.approx(2e-5 / (steps - round(share * steps)))


def test_grids_are_those_of_the_papers():
    base = FinetuneConfig(seeds=2)
    bert = points(base, 'bert')
    assert {(p.batch_size, p.learning_rate, p.epochs) for p in bert} == set(
        itertools.product((16, 32), (5e-5, 3e-5, 2e-5), (2, 3, 4))
    )
    assert len(bert) == 18 and len({structure(p) for p in bert}) == 6, 'learning rates share a program'
    roberta = points(base, 'roberta')
    assert len(roberta) == 6 and {(p.epochs, p.weight_decay, p.warmup_share) for p in roberta} == {(10, 0.1, 0.06)}
    assert all(p.patience for p in roberta) and not any(p.patience for p in bert)
    electra = points(base, 'electra')
    assert len(electra) == 12 and len({structure(p) for p in electra}) == 1
    assert len({label(p) for p in bert + electra}) == 30
    assert all(p.seeds == 2 for p in bert + roberta + electra)
    assert points(base, '') == [base]


def test_what_is_given_beside_a_grid_stays():
    base = FinetuneConfig(batch_size=8, epochs=1)
    found = points(base, 'bert', given=['batch_size', 'epochs', 'task'])
    assert {(p.batch_size, p.epochs) for p in found} == {(8, 1)} and len(found) == 3
    assert {p.epochs for p in points(FinetuneConfig(epochs=4), 'roberta', given=['epochs'])} == {4}


@pytest.mark.parametrize('name', GRIDS)
def test_what_a_grid_sets_are_fields(name):
    fields = {field.name for field in dataclasses.fields(FinetuneConfig)}
    assert {*GRIDS[name].values, *GRIDS[name].changes} <= fields


def test_each_replica_stops_after_its_own_patience_and_keeps_its_best_epoch():
    course = Course(3, patience=2)
    scores = [[50, 10, np.nan], [60, 9, 5], [60, 8, 4], [59, 99, 3], [99, 99, 99]]
    better = [course.add(np.array(row)).tolist() for row in scores]
    assert better == [[True] * 3, [True, False, True], [False] * 3, [False] * 3, [False] * 3]
    assert course.best_R.tolist() == [1, 0, 1] and not course.running_R.any()
    short = Course(3, patience=2)
    for row in scores[:3]:
        short.add(np.array(row))
    assert short.running_R.tolist() == [True, False, True]
    again = Course(3, patience=2)
    again.history = course.history
    assert again.best_R.tolist() == course.best_R.tolist()


@settings(deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.integers(1, 4))
def test_the_best_is_the_first_maximum_up_to_where_it_stopped(scores, patience):
    course, kept = Course(1, patience), 0
    for epoch, score in enumerate(scores):
        if course.running_R[0]:
            ran = epoch + 1
        if course.add(np.array([score]))[0]:
            kept = epoch
    seen = scores[:ran]
    assert kept == course.best_R[0] == seen.index(max(seen))
    waits = [ran - 1 - kept if ran < len(scores) or not course.running_R[0] else None]
    assert waits in ([None], [patience])


@pytest.mark.parametrize(
    ('changes', 'said'),
    [
        (dict(batch_size=0), 'batch_size is 0'),
        (dict(epochs=0), 'epochs is 0'),
        (dict(learning_rate=float('nan')), 'learning_rate is nan'),
        (dict(layerwise_decay=0.0), 'layerwise_decay is 0.0'),
        (dict(warmup_share=1.5), 'warmup_share is 1.5'),
        (dict(slice_percent=100.0), 'slice_percent is 100.0'),
        (dict(max_length=7), 'max_length is 7'),
        (dict(first_seed=2**31), 'first_seed is'),
        (dict(features=-1), 'features is -1'),
        (dict(beta2=1.0), 'beta2 is 1.0'),
    ],
)
def test_impossible_configs_are_refused(changes, said):
    with pytest.raises(ValueError, match=said):
        FinetuneConfig(**changes)
