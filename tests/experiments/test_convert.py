"""BERT into a workdir and back."""

import dataclasses
import json

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tokenizers import BertWordPieceTokenizer, Tokenizer

from data.errors import UserError
from experiments import convert, exchange, fill_mask
from model import mlm
from model.config import ModelConfig
from model.electra import declared_head
from model.huggingface import write_bert
from model.parameters import draw_tree
from tests.data.test_sentencepiece import trained

SPECIAL = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
WORDS = 'the state of union is a strong ##er nation congress . , law people'
PIECES = [*SPECIAL, *WORDS.split()]


@pytest.fixture
def bert(tmp_path, request):
    """A folder as `transformers` saves it, with random weights."""
    folder, fields = tmp_path / 'bert', getattr(request, 'param', {})
    config = ModelConfig(layers=2, width=16, heads=2, feed_forward=32, max_length=32, vocab_size=len(PIECES), **fields)
    write_bert(folder, config, mlm.init(jax.random.key(3), config))
    (folder / 'vocab.txt').write_text('\n'.join(PIECES) + '\n')
    BertWordPieceTokenizer(str(folder / 'vocab.txt')).save(str(folder / 'tokenizer.json'))
    return folder


@pytest.mark.parametrize(
    'bert',
    [{}, dict(embedding_width=8, layers_share='all'), dict(embedding_width=8)],
    ids=['BERT', 'ALBERT', 'ELECTRA'],
    indirect=True,
)
def test_there_and_back_every_tensor_is_the_same(bert, tmp_path, capsys):
    convert.main([f'hf:{bert}', '--out', str(tmp_path / 'in')])
    convert.main([str(tmp_path / 'in'), '--out', f'hf:{tmp_path / "out"}'])
    before, after = load_file(bert / 'model.safetensors'), load_file(tmp_path / 'out' / 'model.safetensors')
    assert before.keys() == after.keys()
    for name in before:
        np.testing.assert_array_equal(before[name], after[name])
    there, back = (json.loads((folder / 'config.json').read_text()) for folder in (bert, tmp_path / 'out'))
    assert there == back
    assert (tmp_path / 'out' / 'tokenizer.json').read_bytes() == (bert / 'tokenizer.json').read_bytes()
    capsys.readouterr()
    fill_mask.main(['--workdir', str(tmp_path / 'in'), 'the state of the [MASK]'])
    assert capsys.readouterr().out.count('%') == 5


@pytest.mark.parametrize(('share', 'kind'), [('none', 'ElectraForPreTraining'), ('all', 'AlbertModel')])
def test_a_detector_leaves_where_transformers_has_a_place_for_it(bert, tmp_path, monkeypatch, share, kind):
    convert.main([f'hf:{bert}', '--out', str(tmp_path / 'in')])
    loaded = exchange.load_replica(tmp_path / 'in')
    model = dataclasses.replace(loaded.config.model, layers_share=share, embedding_width=8)
    params = {name: part for name, part in mlm.init(jax.random.key(0), model).items() if name != 'head'}
    trained = {**params, **draw_tree(jax.random.key(1), declared_head(model, 'detection'), 1.0)}
    replica = loaded._replace(config=dataclasses.replace(loaded.config, model=model), params=params, trained=trained)
    monkeypatch.setattr(exchange, 'load_replica', lambda *names: replica)
    convert.main([str(tmp_path / 'in'), '--out', f'hf:{tmp_path / "out"}'])
    assert json.loads((tmp_path / 'out/config.json').read_text())['architectures'] == [kind]
    detects = any(name.startswith('discriminator_') for name in load_file(tmp_path / 'out/model.safetensors'))
    assert detects == (share == 'none')


def test_a_vocab_txt_will_do_and_a_missing_head_is_said(bert, tmp_path, capsys):
    (bert / 'tokenizer.json').unlink()
    tensors = {k: v for k, v in load_file(bert / 'model.safetensors').items() if not k.startswith('cls.')}
    save_file(tensors, bert / 'model.safetensors')
    convert.main([f'hf:{bert}', '--out', str(tmp_path / 'in')])
    assert 'no MLM head' in capsys.readouterr().out


def test_a_tokenizer_of_our_own_leaves_as_a_file_of_theirs_too(tmp_path, capsys):
    folder, out = tmp_path / 'bert', tmp_path / 'out'
    config = ModelConfig(layers=1, width=16, heads=2, feed_forward=32, max_length=32, vocab_size=500)
    write_bert(folder, config, mlm.init(jax.random.key(3), config))
    trained('bpe').save(folder)
    convert.main([f'hf:{folder}', '--out', str(tmp_path / 'in')])
    convert.main([str(tmp_path / 'in'), '--out', f'hf:{out}'])
    assert 'tokenizer.json, tokenizer.model, tokenizer_config.json' in capsys.readouterr().out
    assert (out / 'tokenizer.model').read_bytes() == trained('bpe').content
    ids = Tokenizer.from_file(str(out / 'tokenizer.json')).encode('The Union', add_special_tokens=False).ids
    assert ids == trained('bpe').encode(['The Union'])[0].tolist()
    convert.main([f'hf:{out}', '--out', str(tmp_path / 'again')])
    assert (tmp_path / 'again/tokenizer/tokenizer.model').read_bytes() == trained('bpe').content


@pytest.mark.parametrize(
    ('name', 'content', 'says'),
    [
        ('vocab.txt', b'\xff\xfe', 'vocab.txt: not a WordPiece vocabulary'),
        ('vocab.txt', b'[PAD]\n', 'vocab.txt: not a WordPiece vocabulary'),
        ('tokenizer_config.json', b'{', 'tokenizer_config.json does not hold a JSON object'),
        ('tokenizer_config.json', b'[]', 'tokenizer_config.json does not hold a JSON object'),
    ],
)
def test_a_broken_vocabulary_is_named(name, content, says, bert, tmp_path):
    (bert / 'tokenizer.json').unlink()
    (bert / name).write_bytes(content)
    with pytest.raises(UserError, match=says):
        convert.main([f'hf:{bert}', '--out', str(tmp_path / 'in')])


@pytest.mark.parametrize(
    ('arguments', 'says'),
    [
        ([], 'needs a source'),
        (['{bert}', '--out', '{new}'], 'one of the two is hf:DIR'),
        (['hf:{bert}', '--out', 'hf:{new}'], 'one of the two is hf:DIR'),
        (['hf:{new}', '--out', '{other}'], 'no folder of transformers'),
        (['hf:{bert}', '--out', '{bert}'], 'is not empty'),
        (['{bert}', '--out', 'hf:{new}'], 'is not a workdir'),
        (['hf:{bert}', '--out', '{bert}/vocab.txt'], 'is a file'),
    ],
)
def test_mistakes_are_one_line(arguments, says, bert, tmp_path):
    places = {'bert': bert, 'new': tmp_path / 'new', 'other': tmp_path / 'other'}
    with pytest.raises(UserError, match=says) as error:
        convert.main([argument.format(**places) for argument in arguments])
    assert '\n' not in str(error.value)
    assert not (tmp_path / 'new').exists()


@pytest.mark.peers
def test_logits_are_equal_after_a_round_trip_through_transformers(tmp_path):
    import torch
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(PIECES), hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=64
    )
    model = BertForMaskedLM(config).eval()
    model.save_pretrained(tmp_path / 'theirs')
    (tmp_path / 'theirs' / 'vocab.txt').write_text('\n'.join(PIECES) + '\n')
    convert.main([f'hf:{tmp_path / "theirs"}', '--out', str(tmp_path / 'ours')])
    convert.main([str(tmp_path / 'ours'), '--out', f'hf:{tmp_path / "back"}'])
    again = BertForMaskedLM.from_pretrained(tmp_path / 'back').eval()
    tokens = torch.randint(0, len(PIECES), (3, 20))
    with torch.no_grad():
        assert torch.equal(model(tokens).logits, again(tokens).logits)
