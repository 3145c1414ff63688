"""A tokenizer.json: WordPiece and byte-level BPE made here with the `tokenizers` library."""

import functools
import json

import numpy as np
import pytest
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors, trainers

from data.clean import one_line
from data.errors import UserError
from data.huggingface_tokenizer import HuggingFaceTokenizer
from data.tokenizer import load_tokenizer
from tests.data.corpora import speeches

BERT = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
ROBERTA = ['<s>', '<pad>', '</s>', '<unk>', '<mask>']


@functools.cache
def made(kind: str) -> tokenizers.Tokenizer:
    """As on the Hub: with a template that adds specials, truncation and padding; 'split' keeps [MASK] in one piece."""
    if kind == 'byte-level':
        tokenizer = tokenizers.Tokenizer(models.BPE(unk_token='<unk>'))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        specials = [*ROBERTA[:4], AddedToken('<mask>', lstrip=True)]
        trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=specials, initial_alphabet=alphabet)
        cls, sep = '<s>', '</s>'
    else:
        tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token='[UNK]'))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=kind == 'uncased')
        split = pre_tokenizers.WhitespaceSplit() if kind == 'split' else pre_tokenizers.BertPreTokenizer()
        tokenizer.pre_tokenizer = split
        tokenizer.decoder = decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(vocab_size=400, special_tokens=BERT)
        cls, sep = '[CLS]', '[SEP]'
    tokenizer.train_from_iterator(speeches(6), trainer)
    ids = [(name, tokenizer.token_to_id(name)) for name in (cls, sep)]
    tokenizer.post_processor = processors.TemplateProcessing(single=f'{cls} $A {sep}', special_tokens=ids)
    tokenizer.enable_truncation(16)
    tokenizer.enable_padding(length=16)
    return tokenizer


KINDS = ['uncased', 'cased', 'split', 'byte-level']


@functools.cache
def ours(kind: str) -> HuggingFaceTokenizer:
    return HuggingFaceTokenizer(made(kind).to_str().encode(), kind)


@pytest.mark.parametrize('kind', KINDS)
def test_specials_are_found_by_name(kind):
    vocabulary, original = ours(kind).vocabulary, made(kind)
    names = ['<pad>', '<unk>', '<s>', '</s>', '<mask>'] if kind == 'byte-level' else BERT
    ids = [vocabulary.pad, vocabulary.unk, vocabulary.cls, vocabulary.sep, vocabulary.mask]
    assert ids == [original.token_to_id(name) for name in names] and ours(kind).pieces(ids) == names
    assert vocabulary.size == original.get_vocab_size()
    assert sorted([*ids, *vocabulary.ordinary]) == list(range(vocabulary.size))


@pytest.mark.parametrize('kind', KINDS)
def test_text_is_encoded_as_by_the_library_neither_cut_nor_padded(kind):
    plain = tokenizers.Tokenizer.from_str(made(kind).to_str())
    plain.no_truncation()
    plain.no_padding()
    texts = [one_line(text) for text in speeches(8)]
    space = ' ' if kind == 'byte-level' else ''
    for text, ids in zip(texts, ours(kind).encode(texts), strict=True):
        assert ids.dtype == np.int32 and len(ids) > 500
        assert ids.tolist() == plain.encode(space + text, add_special_tokens=False).ids
        if kind == 'byte-level':
            assert ours(kind).decode(ids) == text


SPELLED = st.lists(
    st.one_of(st.sampled_from([*BERT, *ROBERTA, '\x00[MASK]', ' ', 'the']), st.text(max_size=8)), max_size=8
).map(''.join)


@settings(deadline=None)
@given(SPELLED)
@example('The [MASK] of <mask> the </s> Union <s> [SEP] [CLS] [PAD] [UNK] <pad>')
def test_no_text_becomes_a_special_id(text):
    for kind in KINDS:
        (ids,) = ours(kind).encode([text])
        # A word of unknown letters is WordPiece's [UNK], as ever; byte-level BPE knows all.
        allowed = ours(kind).vocabulary.ordinary
        allowed = allowed if kind == 'byte-level' else [*allowed, ours(kind).vocabulary.unk]
        assert np.isin(ids, allowed).all()


def test_words_start_where_the_pieces_say_so():
    text = 'unquestionably citizens of states'
    for kind in KINDS:
        (ids,) = ours(kind).encode([text])
        words = np.split(ids, np.flatnonzero(ours(kind).starts_word[ids])[1:])
        assert len(ids) > 4 and [ours(kind).decode(word) for word in words] == text.split()


def test_added_and_other_special_tokens():
    tree = json.loads(made('cased').to_str())
    size = ours('cased').vocabulary.size
    options = dict(single_word=False, lstrip=False, rstrip=False, normalized=False)
    tree['added_tokens'] += [
        {'id': size, 'content': '<user>', 'special': True, **options},
        {'id': size + 1, 'content': 'covid19', 'special': False, **options},
    ]
    for token in tree['added_tokens']:
        token['special'] &= token['content'] != '[MASK]'  # the five are special whatever the file says
    tokenizer = HuggingFaceTokenizer(json.dumps(tree).encode(), 'test')
    assert tokenizer.vocabulary.size == size + 2
    assert size not in tokenizer.vocabulary.ordinary and size + 1 in tokenizer.vocabulary.ordinary
    (ids,) = tokenizer.encode(['the <user> covid19 [MASK]'])
    assert size not in ids and size + 1 in ids and tokenizer.vocabulary.mask not in ids
    assert tokenizer.decode([size, size + 1, tokenizer.vocabulary.mask]) == 'covid19'


def test_saved_and_loaded_it_is_the_same_file(tmp_path):
    ours('byte-level').save(tmp_path)
    assert load_tokenizer(tmp_path).vocabulary == ours('byte-level').vocabulary
    assert (tmp_path / 'tokenizer.json').read_text() == made('byte-level').to_str()


def _without_mask(tree):
    tree['model']['vocab'] = {'[M]' if piece == '[MASK]' else piece: i for piece, i in tree['model']['vocab'].items()}
    tree['added_tokens'] = [token for token in tree['added_tokens'] if token['content'] != '[MASK]']


def _metaspace(tree):
    tree['model'] = {'type': 'Unigram', 'unk_id': 0, 'vocab': [['<unk>', 0.0], ['▁a', -1.0]]}
    tree['pre_tokenizer'] = {'type': 'Metaspace', 'replacement': '▁', 'prepend_scheme': 'always', 'split': True}


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (_without_mask, r'file.json: has no \[MASK\] or <mask> piece'),
        (_metaspace, 'file.json: neither WordPiece nor byte-level BPE'),
        (lambda tree: tree.pop('model'), 'file.json: not a tokenizer.json that can be read'),
        (lambda tree: tree['model'].pop('vocab'), 'file.json: not a tokenizer.json that can be read'),
    ],
)
def test_a_file_that_will_not_do_is_refused_in_one_line(change, message):
    tree = json.loads(made('cased').to_str())
    change(tree)
    with pytest.raises(UserError, match=message) as error:
        HuggingFaceTokenizer(json.dumps(tree).encode(), 'file.json')
    assert '\n' not in str(error.value)


def test_a_file_that_is_not_json():
    for content in (b'', b'[1, 2]', b'\xff\xfe', b'null'):
        with pytest.raises(UserError, match='not a tokenizer.json that can be read'):
            HuggingFaceTokenizer(content, 'file.json')
