"""Sentences: what they are cut from, and their places in a store."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.clean import clean, paragraphs
from data.config import DataConfig
from data.prepare import prepare
from data.sentencepiece_tokenizer import SentencePieceTokenizer, train_sentencepiece
from data.sentences import encode_sentences, sentences
from tests.data.corpora import quiet, small_config, speeches, write_jsonl

CHINESE = '今天很好。我们走吧!你好吗?'
LETTERS = st.sampled_from([*'abcM.!?。!؟।"\'()“”1…\u200b\u0301😀天很', 'Mr.', 'e.g.', *4 * ' '])


@pytest.fixture(scope='module')
def tokenizer():
    texts = [paragraph for text in (*speeches(4), CHINESE * 9) for paragraph in paragraphs(clean(text).text)]
    return SentencePieceTokenizer(train_sentencepiece(texts, 'unigram', 420), 'here')


@settings(deadline=None, max_examples=200)
@given(st.lists(LETTERS, max_size=40).map(''.join), st.sampled_from(['en', 'de', 'zh', 'hi', 'zz']))
def test_sentences_joined_are_the_paragraph_and_so_are_their_tokens(tokenizer, text, language):
    for paragraph in paragraphs(clean(text).text):
        assert ''.join(sentences(paragraph, language)) == paragraph
        ((ids_T, counts),) = encode_sentences(tokenizer, [paragraph], language)
        np.testing.assert_array_equal(ids_T, tokenizer.encode([paragraph])[0])
        assert sum(counts) == len(ids_T) and all(counts)


def texts_of(tokenizer, paragraphs: list[str]) -> list[list[str]]:
    """The sentences of English paragraphs, decoded."""
    encoded = encode_sentences(tokenizer, paragraphs, 'en')
    return [list(map(tokenizer.decode, np.split(ids_T, np.cumsum(counts)[:-1]))) for ids_T, counts in encoded]


def test_abbreviations_end_no_sentence_and_no_space_is_needed_between_two(tokenizer):
    english = 'Mr. Smith went to Washington, D.C. on 3.5 horses. He came back! Did he?'
    assert texts_of(tokenizer, [english, CHINESE]) == [
        ['Mr. Smith went to Washington, D.C. on 3.5 horses.', 'He came back!', 'Did he?'],
        ['今天很好。', '我们走吧!', '你好吗?'],
    ]
    assert sentences('Das ist z. B. am 3. Mai. Ja.', 'de') == ['Das ist z. B. am 3. Mai. ', 'Ja.']


def test_a_store_has_every_sentence_of_every_paragraph(tmp_path):
    texts = [*speeches(4), f'{CHINESE}\n\nHello there. Good bye.']
    store = prepare(small_config(write_jsonl(tmp_path / 'a.jsonl', texts)), tmp_path / 'store', log=quiet)
    expected = {
        tuple(sentence.strip() for block in paragraphs(clean(text).text) for sentence in sentences(block, 'en'))
        for text in texts
    }
    found = set()
    for split in (store.train, store.heldout):
        assert split.sentence_offsets[0] == 0 and (np.diff(split.sentence_offsets) > 0).all()
        assert np.isin(split.paragraph_offsets, split.sentence_offsets).all()
        for start, end in zip(split.document_offsets, split.document_offsets[1:], strict=False):
            assert split.tokens[end - 1] == store.tokenizer.vocabulary.sep
            offsets = split.sentence_offsets[(split.sentence_offsets >= start) & (split.sentence_offsets <= end)]
            bounds = zip(offsets, offsets[1:], strict=False)
            found.add(tuple(store.tokenizer.decode(split.tokens[first:last]) for first, last in bounds))
        assert store.manifest['splits']['train' if split is store.train else 'heldout']['sentences'] == (
            len(split.sentence_offsets) - 1
        )
    assert found == expected


def test_a_language_is_a_code():
    with pytest.raises(ValueError, match="data.language is 'English': use an ISO 639 code"):
        DataConfig(language='English')
