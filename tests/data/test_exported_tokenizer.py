"""A SentencePiece tokenizer as tokenizer.json: the same ids, whatever the text."""

import json
import re

import numpy as np
import pytest
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st

from data.exported_tokenizer import export, exported
from tests.data.corpora import speeches
from tests.data.test_sentencepiece import trained

MODELS = ('unigram', 'bpe')
EXPORTED = {}
ODD = st.lists(
    st.one_of(
        st.sampled_from(['</s>', '<0x41>', '<0x', '▁', '▅', ' ', '\u00a0', '\u2028', '\r\n', 'e\u0301', 'the']),
        st.text(st.characters(exclude_categories=('Cs',)), max_size=10),
    ),
    max_size=8,
).map(''.join).filter(lambda text: not re.search(r'\[(PAD|UNK|CLS|SEP|MASK)\]', text))  # fmt: skip
"""Without the names of specials, which that library never reads as letters."""


def ids_of(model_type: str, texts) -> list[list[int]]:
    made = EXPORTED.setdefault(model_type, exported(trained(model_type)))
    return [each.ids for each in made.encode_batch(texts, add_special_tokens=False)]


@pytest.mark.parametrize('model_type', MODELS)
def test_the_same_ids_for_real_text(model_type):
    texts = [line for text in speeches(30) for line in text.splitlines()]
    theirs, ours = ids_of(model_type, texts), trained(model_type).encode(texts)
    assert sum(map(len, ours)) > 20_000
    assert theirs == [ids.tolist() for ids in ours]


@pytest.mark.parametrize('model_type', MODELS)
@settings(deadline=None, max_examples=300)
@given(text=ODD)
@example(text='▁▁a ▁b ▁')
@example(text='a<0x41> <<0x0A>>\ufeff\x07b')
@example(text='日本語 🙂👩‍👩‍👧 ﬁ İ ก็ไม่รู้ \U0010ffff')
@example(text='')
def test_the_same_ids_for_odd_text(model_type, text):
    assert ids_of(model_type, [text]) == [trained(model_type).encode([text])[0].tolist()], text


@pytest.mark.parametrize('model_type', MODELS)
def test_the_file_has_the_specials_and_decodes(model_type, tmp_path):
    export(trained(model_type), tmp_path)
    vocabulary = trained(model_type).vocabulary
    made = tokenizers.Tokenizer.from_file(str(tmp_path / 'tokenizer.json'))
    assert made.get_vocab_size() == vocabulary.size
    ids = made.encode('The [MASK] of the Union — 🙂').ids
    assert (ids[0], ids[-1], ids.count(vocabulary.mask)) == (vocabulary.cls, vocabulary.sep, 1)
    assert made.decode(made.encode('The state of the Union — 🙂').ids) == 'The state of the Union — 🙂'
    assert json.loads((tmp_path / 'tokenizer_config.json').read_text())['mask_token'] == '[MASK]'


@pytest.mark.peers
@pytest.mark.parametrize('model_type', MODELS)
def test_transformers_reads_it(model_type, tmp_path):
    from transformers import AutoTokenizer

    export(trained(model_type), tmp_path)
    (tmp_path / 'config.json').write_text(json.dumps({'model_type': 'bert'}))
    trained(model_type).save(tmp_path)
    theirs, text = AutoTokenizer.from_pretrained(tmp_path), speeches(1)[0]
    found = theirs(text, add_special_tokens=False)['input_ids']
    np.testing.assert_array_equal(found, trained(model_type).encode([text])[0])
    assert theirs.mask_token_id == trained(model_type).vocabulary.mask
    assert theirs('a', 'b')['input_ids'].count(trained(model_type).vocabulary.sep) == 2
