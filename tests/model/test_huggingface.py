"""Reading folders of `transformers`: what older and larger ones hold, and what is refused and how."""

import json

import jax
import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from data.errors import UserError
from model import electra
from model.config import ModelConfig
from model.huggingface import read_bert, write_bert
from model.parameters import draw_tree
from tests.model.plain_encoder import random_params

CONFIG = ModelConfig(layers=2, width=8, heads=2, feed_forward=12, max_length=10, vocab_size=40)
PARAMS = random_params(CONFIG)
WORDS = 'bert.embeddings.word_embeddings.weight'
QUERY = 'bert.encoder.layer.1.attention.self.query.weight'


@pytest.fixture
def folder(tmp_path):
    write_bert(tmp_path, CONFIG, PARAMS)
    return tmp_path


def change_tensors(folder, change):
    tensors = load_file(folder / 'model.safetensors')
    change(tensors)
    save_file(tensors, folder / 'model.safetensors')


def change_config(folder, **changes):
    path = folder / 'config.json'
    fields = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({name: value for name, value in fields.items() if value is not ...}))


def assert_reads(folder, expected=PARAMS, config=CONFIG):
    """The folder holds these parameters, rows of padding ids apart."""
    found_config, found = read_bert(folder)
    assert found_config == config
    for (path, a), b in zip(jax.tree_util.tree_leaves_with_path(found), jax.tree.leaves(expected), strict=True):
        vocabulary = b.shape[0] == config.padded_vocab_size
        assert a.dtype == np.float32 and a.shape == b.shape
        used = slice(config.vocab_size if vocabulary else None)
        np.testing.assert_array_equal(a[used], b[used], err_msg=jax.tree_util.keystr(path))
        assert not vocabulary or not a[config.vocab_size :].any()


def test_reads_what_it_writes(folder):
    assert_reads(folder)


def test_whoever_may_read_the_one_file_may_read_the_other(folder):
    modes = {(folder / name).stat().st_mode for name in ('config.json', 'model.safetensors')}
    assert len(modes) == 1


def test_without_head_as_a_bert_model_has_it(tmp_path):
    headless = {name: part for name, part in PARAMS.items() if name != 'head'}
    write_bert(tmp_path, CONFIG, headless)
    assert 'embeddings.word_embeddings.weight' in load_file(tmp_path / 'model.safetensors')
    assert json.loads((tmp_path / 'config.json').read_text())['architectures'] == ['BertModel']
    assert_reads(tmp_path, headless)


def test_gamma_and_beta_of_older_files_are_read(folder):
    def rename(tensors):
        for name in [name for name in tensors if 'LayerNorm' in name]:
            older = name.replace('LayerNorm.weight', 'LayerNorm.gamma').replace('LayerNorm.bias', 'LayerNorm.beta')
            tensors[older] = tensors.pop(name)

    change_tensors(folder, rename)
    assert sum(name.endswith('gamma') for name in load_file(folder / 'model.safetensors')) == 2 * 2 + 2
    assert_reads(folder)


def test_the_tied_decoder_and_other_heads_of_older_files_are_left_out(folder):
    def add(tensors):
        tensors['cls.predictions.decoder.weight'] = tensors[WORDS].copy()
        tensors['cls.predictions.decoder.bias'] = tensors['cls.predictions.bias'].copy()
        tensors['cls.seq_relationship.weight'] = np.ones((2, 8), np.float32)
        tensors['bert.embeddings.position_ids'] = np.arange(10)[None]

    change_tensors(folder, add)
    assert_reads(folder)


def test_shards_are_joined(folder):
    tensors = load_file(folder / 'model.safetensors')
    names = ['model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors']
    where = {name: names[i % 2] for i, name in enumerate(sorted(tensors))}
    for shard in names:
        save_file({name: tensors[name] for name, at in where.items() if at == shard}, folder / shard)
    index = {'metadata': {}, 'weight_map': where}
    (folder / 'model.safetensors.index.json').write_text(json.dumps(index))
    (folder / 'model.safetensors').unlink()
    assert_reads(folder)
    (folder / names[1]).unlink()
    refuses(folder, f'has no {names[1]}')
    for broken in ('{}', '{"weight_map": []}', '{"weight_map": {"a": 3}}', '[]', '{'):
        (folder / 'model.safetensors.index.json').write_text(broken)
        refuses(folder, 'model.safetensors.index.json')


def test_half_precision_becomes_float32(folder):
    halves = jax.tree.map(lambda leaf: leaf.astype(ml_dtypes.bfloat16).astype(np.float32), PARAMS)

    def cast(tensors):
        tensors |= {name: tensor.astype(ml_dtypes.bfloat16) for name, tensor in tensors.items()}

    change_tensors(folder, cast)
    assert_reads(folder, halves)


def test_absent_fields_mean_what_transformers_means_by_them(folder):
    change_config(folder, type_vocab_size=..., layer_norm_eps=..., hidden_act=..., is_decoder=...)
    assert_reads(folder)


def refuses(folder, says):
    with pytest.raises(UserError) as error:
        read_bert(folder)
    assert says in str(error.value)
    assert '\n' not in str(error.value) and str(folder) in str(error.value)


def test_a_missing_file_is_named(folder, tmp_path):
    refuses(tmp_path / 'nowhere', 'is no folder of transformers: it has no config.json')
    (folder / 'model.safetensors').unlink()
    refuses(folder, 'has no model.safetensors: save the model with save_pretrained of transformers')
    (folder / 'config.json').unlink()
    refuses(folder, 'is no folder of transformers: it has no config.json')


@pytest.mark.parametrize('left', [0, 4, 200, -1])
def test_broken_safetensors(folder, left):
    path = folder / 'model.safetensors'
    path.write_bytes(path.read_bytes()[:left])
    refuses(folder, f'{path} cannot be read')


@pytest.mark.parametrize(
    ('text', 'says'),
    [('', 'cannot be read'), ('{"model_type":\n "bert",', 'cannot be read'), ('[1]', 'does not hold a JSON object')],
)
def test_a_broken_config(folder, text, says):
    (folder / 'config.json').write_text(text)
    refuses(folder, says)


@pytest.mark.parametrize(
    ('changes', 'says'),
    [
        (dict(model_type='xlnet'), "model_type is 'xlnet'; Cloze reads 'bert', 'albert', 'roberta', 'electra' alone"),
        (dict(model_type=...), 'model_type is None'),
        (dict(model_type='electra', embedding_size=-3), 'model.embedding_width is -3'),
        (dict(hidden_act='gelu_new'), "hidden_act is 'gelu_new'"),
        (dict(position_embedding_type='relative_key'), "position_embedding_type is 'relative_key'"),
        (dict(is_decoder=True), 'is_decoder is True'),
        (dict(num_attention_heads=3), 'model.width 8 is not a multiple of model.heads 3'),
        (dict(num_hidden_layers=0), 'model.layers is 0'),
        (dict(num_hidden_layers='two'), "num_hidden_layers is 'two'"),
        (dict(hidden_size=None), 'hidden_size is None'),
        (dict(intermediate_size=12.5), 'intermediate_size is 12.5'),
        (dict(vocab_size='many'), "vocab_size is 'many'"),
        (dict(layer_norm_eps='small'), "layer_norm_eps is 'small'"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else '',
)
def test_another_model_or_an_impossible_one(folder, changes, says):
    change_config(folder, **changes)
    refuses(folder, says)


@pytest.mark.parametrize(
    ('name', 'value', 'says'),
    [
        ('cls.predictions.decoder.weight', np.ones((40, 8), np.float32), "the decoder's weights are not the embedd"),
        ('bert.encoder.layer.0.adapter.weight', np.ones(3, np.float32), 'such as bert.encoder.layer.0.adapter.weight'),
        ('bert.encoder.layer.2.output.dense.bias', np.ones(8, np.float32), 'such as bert.encoder.layer.2.output.dense'),
        (QUERY, np.ones((8, 9), np.float32), f'{QUERY} has shape [8, 9], expected [8, 8], as config.json has it'),
        (WORDS, np.ones((41, 8), np.float32), f'{WORDS} has shape [41, 8], expected [40, 8]'),
        (QUERY, None, f'model.safetensors has no tensor {QUERY}'),
        ('cls.predictions.transform.dense.bias', None, 'has no tensor cls.predictions.transform.dense.bias'),
    ],
    ids=['untied', 'unknown', 'layers', 'shape', 'vocabulary', 'absent', 'head'],
)  # fmt: skip
def test_tensors_that_do_not_fit(folder, name, value, says):
    def change(tensors):
        tensors.pop(name, None)
        tensors |= {} if value is None else {name: value}

    change_tensors(folder, change)
    refuses(folder, says)


@pytest.mark.parametrize('changes', [dict(norm='pre'), dict(positions='rotary')])
def test_models_that_transformers_has_no_bert_for_are_not_written(tmp_path, changes):
    config = ModelConfig(**{**vars(CONFIG), **changes})
    with pytest.raises(UserError, match='is no BERT of transformers: only post and learned are') as error:
        write_bert(tmp_path / 'out', config, random_params(config))
    assert '\n' not in str(error.value) and not (tmp_path / 'out').exists()


ALBERT = ModelConfig(**{**vars(CONFIG), 'embedding_width': 6, 'layers_share': 'all'})
OURS = random_params(ALBERT)


def test_an_albert_is_read_as_it_is_written(tmp_path):
    write_bert(tmp_path, ALBERT, OURS)
    fields = json.loads((tmp_path / 'config.json').read_text())
    assert (fields['architectures'], fields['embedding_size']) == (['AlbertForMaskedLM'], 6)
    assert_reads(tmp_path, OURS, ALBERT)
    for changes, says in [
        (dict(hidden_act=...), "hidden_act is 'gelu_new'; Cloze reads 'gelu' alone"),
        (dict(num_hidden_groups=2), 'num_hidden_groups is 2'),
        (dict(embedding_size=8), 'embedding_size is hidden_size'),
    ]:
        before = (tmp_path / 'config.json').read_text()
        change_config(tmp_path, **changes)
        refuses(tmp_path, says)
        (tmp_path / 'config.json').write_text(before)


def test_a_roberta_is_read_without_the_places_of_padding(folder):
    names = [
        ('cls.predictions.transform.dense.', 'lm_head.dense.'),
        ('cls.predictions.transform.LayerNorm.', 'lm_head.layer_norm.'),
        ('cls.predictions.', 'lm_head.'),
        ('bert.', 'roberta.'),
    ]

    def rename(tensors):
        for name in list(tensors):
            other = name
            for bert, roberta in names:
                other = other.replace(bert, roberta)
            tensors[other] = tensors.pop(name)
        places = 'roberta.embeddings.position_embeddings.weight'
        tensors[places] = np.pad(tensors[places], [(2, 0), (0, 0)], constant_values=7)

    change_tensors(folder, rename)
    change_config(folder, model_type='roberta', max_position_embeddings=12, pad_token_id=1)
    assert_reads(folder)
    change_config(folder, pad_token_id=None)
    refuses(folder, 'pad_token_id is None, not a whole number')


@pytest.mark.parametrize('changes', [{}, dict(embedding_width=6)], ids=['one width', 'narrow tables'])
@pytest.mark.parametrize('left', ['head', 'detection', ''])
def test_an_electra_is_read_as_it_is_written(tmp_path, changes, left):
    """A generator has the head, a discriminator the detector, which is not read and makes a BERT's form ELECTRA's."""
    config = ModelConfig(**{**vars(CONFIG), **changes})
    params = random_params(config)
    headless = {name: part for name, part in params.items() if name != 'head'}
    kept = params if left == 'head' else headless
    detection = draw_tree(jax.random.key(0), electra.declared_head(config, 'detection'), 1.0)
    write_bert(tmp_path, config, {**kept, **(detection if left == 'detection' else {})})
    fields = json.loads((tmp_path / 'config.json').read_text())
    kind = 'Electra' if changes or left == 'detection' else 'Bert'
    names = {'head': 'ForMaskedLM', 'detection': 'ForPreTraining', '': 'Model'}
    assert fields['architectures'] == [kind + names[left]]
    assert fields.get('embedding_size', 8) == config.table_width
    if left == 'detection':
        tensors = load_file(tmp_path / 'model.safetensors')
        assert tensors['discriminator_predictions.dense_prediction.weight'].shape == (1, 8)
    assert_reads(tmp_path, kept, config)


def test_an_electra_has_no_pooler(tmp_path):
    config = ModelConfig(**{**vars(CONFIG), 'embedding_width': 6})
    params = random_params(config)
    pooler = {'dense': {'kernel': np.ones((8, 8), np.float32), 'bias': np.ones(8, np.float32)}}
    write_bert(tmp_path, config, {**params, 'pooler': pooler})
    assert not any('pooler' in name for name in load_file(tmp_path / 'model.safetensors'))
    assert_reads(tmp_path, params, config)


@pytest.mark.parametrize('changes', [dict(layers_share='all'), dict(layers_share='attention')])
def test_what_is_half_an_albert_is_not_written(tmp_path, changes):
    config = ModelConfig(**{**vars(CONFIG), **changes})
    with pytest.raises(UserError, match='is none of transformers: neither BERT nor ELECTRA .* nor ALBERT') as error:
        write_bert(tmp_path / 'out', config, random_params(config))
    assert '\n' not in str(error.value) and not (tmp_path / 'out').exists()
