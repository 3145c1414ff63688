"""How many parameters there are, how they start, and that each axis has a name."""

import dataclasses
import itertools
import math
from functools import partial

import jax
import numpy as np
import pytest

from model import mlm
from model.config import SIZES, ModelConfig
from model.parameters import AXES, draw, draw_tree, logical_axes

CONFIG = ModelConfig(
    layers=2, width=32, heads=2, feed_forward=96, max_length=40, type_vocab_size=3, vocab_size=250, init_stddev=0.03
)
init = jax.jit(mlm.init, static_argnums=1)


def by_path(tree):
    leaves = jax.tree_util.tree_leaves_with_path(tree, is_leaf=lambda node: isinstance(node, tuple))
    return {'/'.join(entry.key for entry in path): leaf for path, leaf in leaves}


def start(seed=0, **changes):
    return by_path(init(jax.random.key(seed), dataclasses.replace(CONFIG, **changes)))


@pytest.mark.parametrize(('size', 'parameters'), [('base', 109_482_240), ('large', 335_141_888)])
def test_published_numbers_of_parameters(size, parameters):
    """Those of `BertModel` of transformers (Devlin et al. 2019, Section 3: 110M, 340M): embeddings, layers, pooler."""
    config = ModelConfig(**SIZES[size], vocab_size=30_522)
    shapes = mlm.shapes(config)
    padding = (config.padded_vocab_size - 30_522) * config.width
    assert padding == 70 * config.width
    encoder = [shapes[part] for part in ('embeddings', 'layers', 'pooler')]
    assert sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(encoder)) - padding == parameters
    head = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes['head']))
    assert head == config.width**2 + 3 * config.width + config.padded_vocab_size
    assert shapes.keys() == {'embeddings', 'layers', 'pooler', 'head'}


def test_shapes_are_what_init_makes():
    for norm, positions, layers in itertools.product(['post', 'pre'], ['learned', 'rotary'], [1, 3]):
        config = dataclasses.replace(CONFIG, norm=norm, positions=positions, layers=layers)
        shapes = mlm.shapes(config)
        made = jax.eval_shape(partial(mlm.init, config=config), jax.random.key(0))
        square = jax.ShapeDtypeStruct((config.width, config.width), np.float32)
        made['pooler'] = {'dense': {'kernel': square, 'bias': square.update(shape=(config.width,))}}
        assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), made) == jax.tree.map(
            lambda leaf: (leaf.shape, np.dtype('float32')), shapes
        )
        assert ('final_norm' in shapes) == (norm == 'pre')
        assert ('position' in shapes['embeddings']) == (positions == 'learned')


def test_arms_that_differ_in_structure_start_alike_where_they_can():
    base = start()
    positions, final_norm = 'embeddings/position/embedding', {'final_norm/bias', 'final_norm/scale'}
    forms = dict(scan_layers=False, remat=True, dtype='bfloat16', attend='document', dropout=0.5)
    for changes, only in [
        (dict(layers=4, max_length=64, vocab_size=380), set()),
        (dict(norm='pre', positions='rotary', **forms), {positions, *final_norm}),
    ]:
        other = start(**changes)
        assert base.keys() ^ other.keys() == only
        for name in base.keys() & other.keys():
            # Longer first axes (layers, table rows) begin with the shorter ones' values.
            rows = len(base[name])
            np.testing.assert_array_equal(base[name], other[name][:rows], err_msg=f'{name} {changes}')
            assert base[name].dtype == other[name].dtype == np.float32
            longer = 'layers' in changes and name.startswith(('layers/', positions, 'embeddings/token', 'head/bias'))
            assert (len(other[name]) > rows) == longer, name


def test_no_two_draws_are_the_same():
    """Not of other seeds, of other leaves of one shape, of other layers, nor of the pooler."""
    drawn = {}
    for seed in (0, 1):
        pooler = by_path(draw_tree(jax.random.key(seed), {'pooler': mlm.shapes(CONFIG)['pooler']}, CONFIG.init_stddev))
        for name, leaf in (start(seed) | pooler).items():
            if name.endswith(('kernel', 'embedding')):
                parts = leaf if name.startswith('layers/') else [leaf]
                drawn |= {(seed, name, i): np.ravel(part)[:96] for i, part in enumerate(parts)}
    assert len(drawn) == 2 * (3 + 2 * 6 + 1 + 1)
    for (a, x), (b, y) in itertools.combinations(drawn.items(), 2):
        assert not np.isin(x, y).mean() > 0.1, f'{a} starts as {b}'
        assert abs(np.corrcoef(x, y)[0, 1]) < 5 * len(x) ** -0.5, f'{a} goes with {b}'


def test_weights_start_from_a_truncated_normal_biases_at_0_and_scales_at_1():
    # The standard deviation of a normal distribution cut at two of its own.
    density = math.exp(-2) / math.sqrt(2 * math.pi)
    spread = math.sqrt(1 - 4 * density / math.erf(math.sqrt(2)))
    assert spread == pytest.approx(0.8796, abs=1e-4)
    for name, leaf in start().items():
        leaf = np.asarray(leaf) / CONFIG.init_stddev
        if name.endswith('bias'):
            assert not leaf.any(), name
        elif name.endswith('scale'):
            np.testing.assert_array_equal(leaf * CONFIG.init_stddev, 1, err_msg=name)
        else:
            # 4 sigma; the fourth moment of the cut distribution is below a normal's, so this is wide.
            assert abs(leaf.mean()) < 4 * spread * leaf.size**-0.5, name
            assert abs(leaf.std() - spread) < 4 * spread * (2 * leaf.size) ** -0.5, name
            assert np.abs(leaf).max() <= 2.0001, name
            assert leaf.size < 1000 or np.abs(leaf).max() > 1.9, name


def test_a_leaf_of_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="layers/new/gain: no initial distribution for a leaf named 'gain'"):
        draw(jax.random.key(0), 'layers/new/gain', (2, 3), 0.02)


@pytest.mark.parametrize('norm', ['post', 'pre'])
def test_every_axis_of_every_leaf_has_the_name_of_its_size(norm):
    config = dataclasses.replace(CONFIG, norm=norm, layers=5)
    size = dict(layers=5, vocab=256, position=40, type=3, embed=32, head_embed=32, heads=2, head=16, feed_forward=96)
    assert size.keys() == set(AXES) - {'label', 'boundary'}  # which are of other heads' (heads.py, boundary.py)
    shapes, axes = by_path(mlm.shapes(config)), by_path(logical_axes(mlm.declared(config)))
    assert axes.keys() == {name for name in shapes if not name.startswith('pooler/')}
    for name, names in axes.items():
        assert tuple(size[axis] for axis in names) == shapes[name].shape, (name, names)
        assert len(set(names)) == len(names), (name, names)
        assert ('layers' in names) == name.startswith('layers/'), (name, names)
