"""Layers that share weights (Lan et al. 2020): against equal layers of their own, and how many weights there are."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model import electra, mlm
from model.config import SIZES, GeneratorConfig, ModelConfig
from model.flops import forward_flops
from model.parameters import logical_axes
from tests.model.plain_encoder import SMALL, DOCUMENTS_BxL, random_params, random_tokens

APART = ModelConfig(**{**SMALL, 'layers': 3}, embedding_width=8)
DROPPING = dict(dropout=0.3, attention_dropout=0.3)
PARTS = {
    'attention': {'attention', 'attention_norm'},
    'feed_forward': {'feed_forward', 'feed_forward_norm'},
    'all': {'attention', 'attention_norm', 'feed_forward', 'feed_forward_norm'},
}
"""What each value shares: a LayerNorm goes with the part that it follows, as in transformers' AlbertAttention."""


def names(tree) -> dict:
    return {'/'.join(entry.key for entry in path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def apart(params, config):
    """The parameters of the same model whose layers share nothing."""
    copies = jax.tree.map(lambda leaf: np.stack([leaf] * config.layers), params['shared'])
    others = {name: part for name, part in params.items() if name != 'shared'}
    return {**others, 'layers': {**params.get('layers', {}), **copies}}


def score(params, config, positions_BxM=None):
    """A number, the states, and the number's gradient."""
    tokens_BxL = random_tokens(config, DOCUMENTS_BxL.shape)

    def of(params):
        key = jax.random.key(5) if config.dropout else None
        hidden = mlm.encode(params, config, tokens_BxL, DOCUMENTS_BxL, None, key, positions_BxM)
        return jax.nn.log_softmax(mlm.predict(params, config, hidden))[..., 7].mean(), hidden

    (value, hidden), gradients = jax.jit(jax.value_and_grad(of, has_aux=True))(params)
    return value, hidden, gradients


@pytest.mark.parametrize(
    ('share', 'form'),
    [
        ('attention', dict(norm='pre', positions='rotary')),
        ('feed_forward', dict(scan_layers=False, **DROPPING)),
        ('all', dict(remat=True, **DROPPING)),
        ('all', dict(norm='pre', scan_layers=False, remat=True)),
    ],
    ids=['attention scanned', 'feed_forward unrolled', 'all scanned, remat', 'all unrolled, remat'],
)
def test_a_shared_gradient_is_the_sum_of_those_of_equal_layers(share, form):
    shared = dataclasses.replace(APART, layers_share=share, **form)
    params = random_params(shared)
    assert params['shared'].keys() == PARTS[share]
    assert params.get('layers', {}).keys() == PARTS['all'] - PARTS[share]
    positions_BxM = np.array([[4, 0, 11], [6, 2, 2], [7, 1, 3]], np.int32)
    value, hidden, gradients = score(params, shared, positions_BxM)
    expected = score(apart(params, shared), dataclasses.replace(shared, layers_share='none'), positions_BxM)
    np.testing.assert_allclose(value, expected[0], rtol=1e-6)
    np.testing.assert_allclose(hidden, expected[1], rtol=0, atol=2e-6)
    wanted = names(expected[2])
    assert len(names(gradients['shared'])) == 6 * ('feed_forward' in PARTS[share]) + 10 * ('attention' in PARTS[share])
    for name, leaf in names(gradients).items():
        root, _, rest = name.partition('/')
        other = wanted[f'layers/{rest}'].sum(axis=0) if root == 'shared' else wanted[name]
        np.testing.assert_allclose(leaf, other, rtol=0, atol=1e-6, err_msg=name)
    # Layers that see other states: a gradient of one of them alone would not do.
    kernels = [name for name in wanted if name.startswith('layers/') and name.endswith('kernel')]
    assert all(np.abs(wanted[name][0] - wanted[name][1]).max() > 1e-4 for name in kernels)


@pytest.mark.parametrize('share', PARTS)
def test_layers_share_one_leaf_which_starts_as_the_first_layers(share):
    config = dataclasses.replace(APART, layers_share=share)
    base, found = (names(mlm.init(jax.random.key(3), each)) for each in (APART, config))
    for name, leaf in found.items():
        first = name.replace('shared/', 'layers/')
        np.testing.assert_array_equal(leaf, base[first] if first == name else base[first][0], err_msg=name)
    assert {name.replace('shared/', 'layers/') for name in found} == base.keys()
    axes = names_of_axes(config)
    assert all(('layers' in axes[name]) == name.startswith('layers/') for name in found)
    assert {name: len(each) for name, each in axes.items()} == {name: leaf.ndim for name, leaf in found.items()}


def names_of_axes(config) -> dict:
    axes = logical_axes(mlm.declared(config))
    found = jax.tree_util.tree_leaves_with_path(axes, is_leaf=lambda node: isinstance(node, tuple))
    return {'/'.join(entry.key for entry in path): leaf for path, leaf in found}


@pytest.mark.parametrize(
    ('size', 'count'),
    [
        ('albert_base', 11_683_584),
        ('albert_large', 17_683_968),
        ('albert_xlarge', 58_724_864),
        ('albert_xxlarge', 222_595_584),
    ],
)
def test_published_numbers_of_parameters(size, count):
    """Those of `AlbertModel` of transformers (Lan et al. 2020, Table 1: 12M, 18M, 60M, 235M)."""
    config = ModelConfig(**SIZES[size], vocab_size=30_000)
    shapes = {name: part for name, part in mlm.shapes(config).items() if name != 'head'}
    padding = (config.padded_vocab_size - 30_000) * config.table_width
    assert sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes)) - padding == count


@pytest.mark.parametrize('embedding_width', [128, 768])
def test_sharing_takes_parameters_and_no_operations(embedding_width):
    """Lan et al. 2020, Table 4, in millions: what each part costs is the difference to its neighbour."""
    base = ModelConfig(**SIZES['base'], embedding_width=embedding_width, vocab_size=30_000)
    table = {
        128: {'all': 12, 'attention': 64, 'feed_forward': 38, 'none': 89},
        768: {'all': 31, 'attention': 83, 'feed_forward': 57, 'none': 108},
    }[embedding_width]
    for share, millions in table.items():
        config = dataclasses.replace(base, layers_share=share)
        shapes = {name: part for name, part in mlm.shapes(config).items() if name != 'head'}
        count = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes))
        assert abs(count / 1e6 - millions) < 1.2, (share, count)
        assert forward_flops(config, 4, 128, 20) == forward_flops(base, 4, 128, 20)


def test_what_is_shared_is_kept_once_for_the_backward_pass():
    """A scan that took it for one of its inputs would keep it once a layer."""

    def kept(config):
        tokens_BxL = random_tokens(config, DOCUMENTS_BxL.shape)
        _, pull_back = jax.eval_shape(
            lambda params: jax.vjp(lambda p: mlm.encode(p, config, tokens_BxL, DOCUMENTS_BxL), params),
            random_params(config),
        )
        return [leaf.shape for leaf in jax.tree.leaves(pull_back)]

    kernel = (APART.width, APART.feed_forward)
    half = dataclasses.replace(APART, dtype='bfloat16')
    for form in (dict(), dict(remat=True)):
        assert (APART.layers, *kernel) in kept(dataclasses.replace(half, **form))
        assert (APART.layers, *kernel) not in kept(dataclasses.replace(half, **form, layers_share='all'))


def test_a_generator_shares_layers_as_its_model_does():
    model = dataclasses.replace(APART, layers_share='all')
    config = GeneratorConfig(width=0.5, layers=1.0)
    boxes = electra.with_generator(mlm.declared(model), model, config)
    assert boxes['generator'].keys() == {'shared', 'head'}
    assert electra.encoder(boxes)['shared'] is boxes['shared']
    whole = electra.generator(boxes, config)
    assert jnp.shape(whole['shared']['feed_forward']['up']['kernel'].value) == (8, 12)
