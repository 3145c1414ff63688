"""Heads of downstream tasks, and the features that they read, against formulas in numpy and `transformers`."""

import dataclasses
from functools import partial

import jax
import numpy as np
import pytest

from model import mlm
from model.config import ModelConfig
from model.heads import apply_head, init_head
from model.parameters import draw
from tests.model import plain_encoder
from tests.model.plain_encoder import SMALL, DOCUMENTS_BxL, random_params, random_tokens

CONFIG = ModelConfig(**SMALL | dict(layers=4))
PRE = dataclasses.replace(CONFIG, norm='pre', norm_epsilon=1e-5)
UNROLLED = dataclasses.replace(CONFIG, scan_layers=False)
VALID_BxL = (DOCUMENTS_BxL > 0).astype(np.int32)
KINDS = ('classification', 'regression', 'tagging', 'span')
encode = jax.jit(mlm.encode, static_argnames=('config', 'last'))


def random_head(kind: str, labels: int, features: int = 0, config: ModelConfig = CONFIG):
    """No bias of 0."""
    noise = np.random.default_rng(3)
    made = jax.eval_shape(partial(init_head, config=config, kind=kind, labels=labels, features=features), key(0))
    return jax.tree.map(lambda leaf: noise.normal(0, 0.3, leaf.shape).astype(np.float32), made)


def key(seed: int) -> jax.Array:
    return jax.random.key(seed)


@pytest.mark.parametrize('config', [CONFIG, PRE, UNROLLED], ids=['post', 'pre', 'unrolled'])
@pytest.mark.parametrize('last', [2, 4])
def test_features_are_the_states_of_the_last_layers_the_lowest_first(config, last):
    params, tokens_BxL = random_params(config), random_tokens(config, DOCUMENTS_BxL.shape)
    types_BxL = np.zeros_like(tokens_BxL)
    found_BxLxE = encode(params, config, tokens_BxL, VALID_BxL, types_BxL, last=last)
    assert found_BxLxE.shape == (*tokens_BxL.shape, last * config.width)
    for row, valid_L in enumerate(VALID_BxL > 0):
        for index, depth in enumerate(range(config.layers - last + 1, config.layers + 1)):
            shallow = dataclasses.replace(config, layers=depth)
            expected_LxD = plain_encoder.encode(params, shallow, tokens_BxL[row], VALID_BxL[row], types_BxL[row])
            found_LxD = found_BxLxE[row][:, index * config.width : (index + 1) * config.width]
            np.testing.assert_allclose(found_LxD[valid_L], expected_LxD[valid_L], atol=2e-5)


@pytest.mark.parametrize('config', [CONFIG, PRE], ids=['post', 'pre'])
def test_features_at_positions_are_those_of_all_tokens_there(config):
    params, tokens_BxL = random_params(config), random_tokens(config, DOCUMENTS_BxL.shape)
    positions_BxM = np.array([[0, 3], [0, 6], [2, 0]])
    for last in (1, 3):
        whole_BxLxE = encode(params, config, tokens_BxL, VALID_BxL, last=last)
        found_BxMxE = encode(params, config, tokens_BxL, VALID_BxL, positions_BxM=positions_BxM, last=last)
        expected_BxMxE = np.take_along_axis(np.asarray(whole_BxLxE), positions_BxM[..., None], axis=1)
        np.testing.assert_allclose(found_BxMxE, expected_BxMxE, atol=1e-6)


@pytest.mark.parametrize('last', [0, 5])
def test_more_layers_than_there_are_are_refused(last):
    with pytest.raises(ValueError, match=f'the last {last} layers are asked for, but model.layers is 4'):
        encode(random_params(CONFIG), CONFIG, *[np.ones((1, 4), np.int32)] * 2, last=last)


@pytest.mark.parametrize('features', [0, 2])
@pytest.mark.parametrize('kind', KINDS)
def test_outputs_are_the_formulas(kind, features):
    labels = {'regression': 1, 'span': 2}.get(kind, 5)
    width = CONFIG.width * max(features, 1)
    states_BxLxE = np.random.default_rng(1).normal(size=(3, 12, width)).astype(np.float32)
    head, lengths_B = random_head(kind, labels, features), VALID_BxL.sum(axis=1)
    found = apply_head(head, CONFIG, kind, labels, states_BxLxE, lengths_B, frozen=features > 0)
    for row, length in enumerate(lengths_B):
        x_LxE = states_BxLxE[row, :length].astype(np.float64)
        if kind in ('classification', 'regression'):
            x_LxE = np.tanh(x_LxE[0] @ head['pooler']['dense']['kernel'] + head['pooler']['dense']['bias'])
        elif kind == 'tagging' and features:
            for number in range(2):
                ways = [
                    lstm(head['tagger'][f'forward_{number}']['cell'], x_LxE),
                    lstm(head['tagger'][f'backward_{number}']['cell'], x_LxE[::-1])[::-1],
                ]
                x_LxE = np.concatenate(ways, axis=-1)
        expected = x_LxE @ head['output']['kernel'] + head['output']['bias']
        here = found[row] if expected.ndim == 1 else found[row][:length]
        np.testing.assert_allclose(here, expected, atol=1e-5)


def lstm(cell, x_LxE):
    """Hochreiter and Schmidhuber 1997 with a forget gate (Gers et al. 2000), a token at a time."""
    state = memory = np.zeros(CONFIG.width)
    states = []
    for x_E in x_LxE:
        gate = {
            g: x_E @ cell[f'i{g}']['kernel'] + state @ cell[f'h{g}']['kernel'] + cell[f'h{g}']['bias'] for g in 'ifgo'
        }
        squashed = {g: 1 / (1 + np.exp(-gate[g])) for g in 'ifo'}
        memory = squashed['f'] * memory + squashed['i'] * np.tanh(gate['g'])
        state = squashed['o'] * np.tanh(memory)
        states.append(state)
    return np.array(states)


@pytest.mark.parametrize('kind', KINDS)
def test_dropout_touches_the_output_of_all_but_span(kind):
    config = dataclasses.replace(CONFIG, dropout=0.5)
    states_BxLxD = np.random.default_rng(1).normal(size=(3, 12, 16)).astype(np.float32)
    head, lengths_B = random_head(kind, 2), VALID_BxL.sum(axis=1)
    keys = (None, key(0), key(0), key(1))
    whole, one, again, other = (
        np.asarray(apply_head(head, config, kind, 2, states_BxLxD, lengths_B, each)) for each in keys
    )
    np.testing.assert_array_equal(one, again)
    assert np.array_equal(whole, one) == np.array_equal(one, other) == (kind == 'span')


def test_initial_weights_are_those_of_each_leaf_by_its_path_and_an_lstm_has_its_own():
    head = init_head(key(4), CONFIG, 'tagging', 5, features=3)
    np.testing.assert_array_equal(head['output']['kernel'], draw(key(4), 'output/kernel', (32, 5), 0.02))
    tagger = head['tagger']
    assert tagger['forward_0']['cell']['ii']['kernel'].shape == (48, 16)
    recurrent = tagger['backward_1']['cell']['hf']['kernel']
    np.testing.assert_allclose(recurrent @ recurrent.T, np.eye(16), atol=1e-5)
    assert not np.array_equal(tagger['forward_0']['cell']['hf']['kernel'], recurrent)
    other = init_head(key(5), CONFIG, 'tagging', 5, features=3)
    assert not np.array_equal(other['tagger']['backward_1']['cell']['hf']['kernel'], recurrent)


@pytest.mark.peers
@pytest.mark.parametrize('kind', KINDS)
def test_outputs_are_those_of_transformers(kind):
    import torch
    import transformers

    from model.huggingface_names import to_params

    labels = {'regression': 1, 'span': 2}.get(kind, 5)
    theirs = dict(
        vocab_size=50, hidden_size=16, num_hidden_layers=4, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=20, num_labels=labels,
    )  # fmt: skip
    model_of = {
        'tagging': transformers.BertForTokenClassification,
        'span': transformers.BertForQuestionAnswering,
    }.get(kind, transformers.BertForSequenceClassification)
    torch.manual_seed(0)
    model = model_of(transformers.BertConfig(**theirs)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape))
    tensors = {name: value.detach().numpy() for name, value in model.named_parameters()}
    output = 'qa_outputs' if kind == 'span' else 'classifier'
    head = {'output': {'kernel': tensors[f'{output}.weight'].T, 'bias': tensors[f'{output}.bias']}}
    if kind in ('classification', 'regression'):
        dense = 'bert.pooler.dense'
        head['pooler'] = {'dense': {'kernel': tensors[f'{dense}.weight'].T, 'bias': tensors[f'{dense}.bias']}}
    params = to_params({name: tensor for name, tensor in tensors.items() if name.startswith('bert.')}, CONFIG)
    tokens_BxL = random_tokens(CONFIG, DOCUMENTS_BxL.shape)
    types_BxL = np.where(DOCUMENTS_BxL > 1, 1, 0)
    with torch.no_grad():
        inputs = (torch.from_numpy(a.astype(np.int64)) for a in (tokens_BxL, VALID_BxL, types_BxL))
        out = model(**dict(zip(('input_ids', 'attention_mask', 'token_type_ids'), inputs, strict=True)))
    if kind == 'span':
        expected = np.stack([out.start_logits.numpy(), out.end_logits.numpy()], axis=-1)
    else:
        expected = out.logits.numpy()
    hidden_BxLxD = encode(params, CONFIG, tokens_BxL, VALID_BxL, types_BxL)
    found = np.asarray(apply_head(head, CONFIG, kind, labels, hidden_BxLxD, VALID_BxL.sum(axis=1)))
    if expected.ndim == 3:
        found, expected = found[VALID_BxL > 0], expected[VALID_BxL > 0]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_of_what_the_mlm_head_reads_the_table_alone_is_cast():
    """So that gradients of it wait for each other in half the room; nothing else may lose digits."""
    config = dataclasses.replace(CONFIG, dtype='bfloat16')
    params = random_params(config)
    head = mlm.head_of(params, config)
    cast = {jax.tree_util.keystr(path): leaf.dtype for path, leaf in jax.tree_util.tree_leaves_with_path(head)}
    assert cast.pop("['embeddings']['token']['embedding']") == 'bfloat16'
    assert cast and set(cast.values()) == {np.dtype('float32')}
    hidden_BxMxD = jax.random.normal(key(5), (2, 3, config.width), config.dtype)
    expected = mlm.predict(params, config, hidden_BxMxD)
    np.testing.assert_array_equal(mlm.predict(head, config, hidden_BxMxD), expected)
