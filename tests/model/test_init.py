"""Initial parameters: their distribution, what they depend on, their names and their number."""

import dataclasses
import math

import jax
import numpy as np
import pytest
from scipy import stats

from model import mlm
from model.config import SIZES, ModelConfig
from model.parameters import AXES, draw

BASE = ModelConfig(layers=3, width=32, heads=2, feed_forward=64, max_length=40, vocab_size=300)


def leaves(tree):
    return {'/'.join(entry.key for entry in path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def init(config, seed=0):
    return leaves(jax.jit(mlm.init, static_argnums=1)(jax.random.key(seed), config))


@pytest.mark.parametrize(('size', 'count'), [('base', 109_482_240), ('large', 335_141_888)])
def test_published_sizes_have_the_published_number_of_parameters(size, count):
    config = ModelConfig(**SIZES[size], vocab_size=30_522)
    shapes = leaves(mlm.shapes(config))
    padding = (config.padded_vocab_size - config.vocab_size) * config.width
    counted = sum(math.prod(leaf.shape) for path, leaf in shapes.items() if not path.startswith('head/'))
    assert counted - padding == count


@pytest.mark.parametrize('norm', ['post', 'pre'])
def test_weights_are_a_normal_cut_at_two_deviations_and_the_rest_is_neutral(norm):
    config = dataclasses.replace(BASE, norm=norm, init_stddev=0.05)
    for path, leaf in init(config).items():
        values = np.asarray(leaf, np.float64).ravel()
        assert leaf.dtype == np.float32
        if path.endswith('/bias'):
            assert not values.any(), path
        elif path.endswith('/scale'):
            assert (values == 1).all(), path
        else:
            assert stats.kstest(values, stats.truncnorm(-2, 2, scale=0.05).cdf).pvalue > 1e-4, path


CHANGES = [dict(norm='pre'), dict(positions='rotary'), dict(layers=5), dict(max_length=64), dict(vocab_size=500)]


@pytest.mark.parametrize('change', CHANGES, ids=lambda change: next(iter(change)))
def test_models_that_differ_in_structure_share_what_they_can(change):
    one, other = init(BASE), init(dataclasses.replace(BASE, **change))
    assert one.keys() & other.keys() >= {path for path in one if path.startswith('layers/')}
    for path in one.keys() & other.keys():
        shared = tuple(slice(min(sizes)) for sizes in zip(one[path].shape, other[path].shape, strict=True))
        np.testing.assert_array_equal(one[path][shared], other[path][shared], err_msg=path)


def test_no_two_leaves_layers_or_seeds_are_alike():
    drawn = []
    for seed in (0, 1):
        for path, leaf in init(BASE, seed).items():
            if path.endswith(('kernel', 'embedding')):
                drawn += [np.ravel(each)[:64] for each in (leaf if path.startswith('layers/') else [leaf])]
    correlations = np.corrcoef([values for values in drawn if len(values) == 64])
    assert len(correlations) > 40
    assert np.abs(correlations - np.eye(len(correlations))).max() < 0.65


def test_a_leaf_of_another_name_has_no_distribution():
    with pytest.raises(ValueError, match="parameter head/gain: no initial distribution for a leaf named 'gain'"):
        draw(jax.random.key(0), 'head/gain', (3,), 0.02)


@pytest.mark.parametrize('norm', ['post', 'pre'])
@pytest.mark.parametrize('positions', ['learned', 'rotary'])
def test_every_leaf_names_its_axes(norm, positions):
    config = dataclasses.replace(BASE, norm=norm, positions=positions)
    shapes = leaves(mlm.init(jax.random.key(0), config))
    axes = {
        '/'.join(entry.key for entry in path): names
        for path, names in jax.tree_util.tree_leaves_with_path(
            mlm.logical_axes(config), is_leaf=lambda x: isinstance(x, tuple)
        )
    }
    sizes = {
        'layers': 3, 'vocab': 384, 'position': 40, 'type': 2, 'embed': 32, 'head_embed': 32, 'heads': 2, 'head': 16,
        'feed_forward': 64,
    }  # fmt: skip
    assert sizes.keys() == set(AXES)
    assert axes.keys() == shapes.keys()
    for path, names in axes.items():
        assert shapes[path].shape == tuple(sizes[name] for name in names), path
    assert ('final_norm/scale' in axes) == (norm == 'pre')
    assert ('embeddings/position/embedding' in axes) == (positions == 'learned')


def test_the_pooler_is_apart():
    assert not any('pooler' in path for path in init(BASE))
    pooler = leaves(mlm.init_pooler(jax.random.key(0), BASE))
    assert {path: leaf.shape for path, leaf in pooler.items()} == {'dense/kernel': (32, 32), 'dense/bias': (32,)}
